//! The command line of a measurement of operators.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use clap::error::ErrorKind;
use stowage_testbed::console::Output;
use stowage_testbed::control_plane::Programs;
use stowage_testbed::failure::Failure;
use stowage_testbed::words::{Words, words};

use super::phase::Phase;
use super::settings::{Settings, Subject};
use crate::measure::built::{built, places};
use crate::measure::stores::Program;

/// The program that is measured by default.
const OPERATOR: &str = "stowage-operator";

#[derive(Debug, Args)]
pub(crate) struct OperatorArgs {
    /// Operator to measure: a command with words separated by spaces. It gets the arguments of
    /// Stowage's contract (`run --kubeconfig …`), unless it contains {kubeconfig}, {namespace} or
    /// {gateway}, which are replaced. By default, stowage-operator in the directory of this program
    /// or in target/release.
    #[arg(long, env = "STOWAGE_OPERATOR_COMMAND", value_name = "COMMAND", value_parser = words)]
    operator_command: Option<Words>,
    /// Another operator, measured in turns with it.
    #[arg(long, env = "STOWAGE_AGAINST", value_name = "COMMAND", value_parser = words)]
    against: Option<Words>,
    /// File with the CustomResourceDefinitions that the operator serves; by default, those of this
    /// version.
    #[arg(long, env = "STOWAGE_CRDS", value_name = "FILE")]
    crds: Option<PathBuf>,
    /// File with the CustomResourceDefinitions that the other operator serves; by default, those of
    /// the first.
    #[arg(long, env = "STOWAGE_AGAINST_CRDS", value_name = "FILE", requires = "against")]
    against_crds: Option<PathBuf>,
    /// Number of measurements of each operator; the result is the median.
    #[arg(long, env = "STOWAGE_ROUNDS", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=99))]
    rounds: u16,
    /// Number of claims created at once.
    #[arg(long, env = "STOWAGE_CLAIMS", value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=99_999))]
    claims: u32,
    /// Number of namespaces for the claims.
    #[arg(long, env = "STOWAGE_NAMESPACES", value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    namespaces: u16,
    /// Phases to measure, separated by commas; they run in the order of the list below. The
    /// ceiling, a bare loop of the same writes and S3 calls, is shown in a separate column.
    #[arg(long, env = "STOWAGE_PHASES", value_name = "PHASES", value_enum, value_delimiter = ',', default_values_t = Phase::ALL)]
    phases: Vec<Phase>,
    /// Store: a program of versitygw or MinIO, `simulated`, or `auto`, which is versitygw or MinIO
    /// on the PATH, else the simulated one.
    #[arg(long, env = "STOWAGE_STORE", value_name = "PROGRAM", default_value = "auto")]
    store: String,
    /// Number of claims created beside purges, and beside a hanging store.
    #[arg(long, env = "STOWAGE_HEALTHY", value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=99_999))]
    healthy: u32,
    /// Number of claims that wait for the hanging store.
    #[arg(long, env = "STOWAGE_HUNG", value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=99_999))]
    hung: u32,
    /// Number of buckets emptied at once.
    #[arg(long, env = "STOWAGE_PURGES", value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=99_999))]
    purges: u32,
    /// Number of objects in each of them.
    #[arg(long, env = "STOWAGE_PURGE_OBJECTS", value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    purge_objects: u32,
    /// Duration of the idle phase, in seconds.
    #[arg(long, env = "STOWAGE_IDLE", value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    idle: u64,
    /// Longest time to wait for each expected event, in seconds. After that it is reported as
    /// missing, and the measurement continues.
    #[arg(long, env = "STOWAGE_TIMEOUT", value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=36_000))]
    timeout: u64,
    /// Format of stdout: a table, or one JSON document with the values of each round.
    #[arg(short, long, env = "STOWAGE_OUTPUT", value_name = "FORMAT", default_value = "text")]
    output: Output,
}

impl OperatorArgs {
    /// Validates the command line.
    ///
    /// # Errors
    /// Returns a usage error, or fails if a program is missing on this machine.
    pub(crate) fn settings(self) -> Result<Settings, Failure> {
        let mut phases = self.phases;
        phases.sort_unstable();
        phases.dedup();
        if phases.contains(&Phase::Ceiling) && !phases.contains(&Phase::Create) {
            let why = "the ceiling is a loop of what was asked while claims were made: --phases needs create with it\n";
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, why).into());
        }
        let command = match self.operator_command {
            Some(Words(command)) => command,
            None => vec![built(OPERATOR, "--operator-command", &places())?.display().to_string()],
        };
        let mut subjects = vec![Subject { command, definitions: self.crds.clone() }];
        subjects.extend(
            self.against.map(|Words(command)| Subject { command, definitions: self.against_crds.or(self.crds) }),
        );
        Ok(Settings {
            subjects,
            rounds: usize::from(self.rounds),
            claims: self.claims as usize,
            namespaces: (0..self.namespaces).map(|number| format!("bench-{number}")).collect(),
            phases,
            store: Program::find(&self.store, std::env::var_os("PATH").as_deref())?,
            programs: Programs::find().map_err(anyhow::Error::from)?,
            healthy: self.healthy as usize,
            hung: self.hung as usize,
            purges: self.purges as usize,
            purge_objects: self.purge_objects as usize,
            idle: Duration::from_secs(self.idle),
            timeout: Duration::from_secs(self.timeout),
            output: self.output,
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        bench: OperatorArgs,
    }

    fn read(arguments: &[&str]) -> Result<OperatorArgs, clap::Error> {
        Line::try_parse_from([&["bench"], arguments].concat()).map(|line| line.bench)
    }

    #[test]
    fn a_ceiling_needs_something_to_do_the_same_as() {
        let settings = read(&["--phases", "ceiling,idle", "--operator-command", "x"]).unwrap().settings();
        let why = settings.err().map(|why| why.to_string()).unwrap_or_default();
        assert!(why.contains("--phases needs create"), "{why}");
    }

    #[test]
    fn wrong_values_are_refused_with_what_was_expected() {
        for (arguments, expected) in [
            (["--phases", "moon"], "possible values: create, idle, restart"),
            (["--claims", "0"], "1..=99999"),
            (["--operator-command", " "], "a program is needed"),
            (["--against-crds", "x"], "--against"),
        ] {
            let why = read(&arguments).unwrap_err().to_string();
            assert!(why.contains(expected), "{arguments:?}: {why}");
        }
    }
}
