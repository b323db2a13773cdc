//! The command line of a measurement.

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

/// What is measured where nothing else is named.
const OPERATOR: &str = "stowage-operator";

#[derive(Debug, Args)]
pub(crate) struct OperatorArgs {
    /// The operator that is measured, a command whose words are separated by spaces. It gets the
    /// arguments of Stowage's contract (`run --kubeconfig …`), unless {kubeconfig}, {namespace} or
    /// {gateway} stand in it, which are replaced. By default stowage-operator, from beside this
    /// program or from target/release.
    #[arg(long, env = "STOWAGE_OPERATOR_COMMAND", value_name = "COMMAND", value_parser = words)]
    operator_command: Option<Words>,
    /// Another one, measured in turns with it.
    #[arg(long, env = "STOWAGE_AGAINST", value_name = "COMMAND", value_parser = words)]
    against: Option<Words>,
    /// File with the definitions that the operator serves; by default this version's.
    #[arg(long, env = "STOWAGE_CRDS", value_name = "FILE")]
    crds: Option<PathBuf>,
    /// The same for the other one; by default as for the first.
    #[arg(long, env = "STOWAGE_AGAINST_CRDS", value_name = "FILE", requires = "against")]
    against_crds: Option<PathBuf>,
    /// How often each is measured; told is the median.
    #[arg(long, env = "STOWAGE_ROUNDS", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=99))]
    rounds: u16,
    /// How many claims are made at once.
    #[arg(long, env = "STOWAGE_CLAIMS", value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=99_999))]
    claims: u32,
    /// In how many namespaces.
    #[arg(long, env = "STOWAGE_NAMESPACES", value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    namespaces: u16,
    /// What is measured, separated by commas; it happens in the order of the list below. The
    /// ceiling, a bare loop of the same writes and S3 calls, is told in a column of its own.
    #[arg(long, env = "STOWAGE_PHASES", value_name = "PHASES", value_enum, value_delimiter = ',', default_values_t = Phase::ALL)]
    phases: Vec<Phase>,
    /// The store: a program of versitygw or MinIO, `simulated`, or `auto`, which is versitygw or
    /// MinIO from the PATH, else the simulated one.
    #[arg(long, env = "STOWAGE_STORE", value_name = "PROGRAM", default_value = "auto")]
    store: String,
    /// How many claims are made beside purges, and beside a store that hangs.
    #[arg(long, env = "STOWAGE_HEALTHY", value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=99_999))]
    healthy: u32,
    /// How many claims wait for the store that hangs.
    #[arg(long, env = "STOWAGE_HUNG", value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=99_999))]
    hung: u32,
    /// How many buckets are emptied at once.
    #[arg(long, env = "STOWAGE_PURGES", value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=99_999))]
    purges: u32,
    /// How many objects each of them holds.
    #[arg(long, env = "STOWAGE_PURGE_OBJECTS", value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    purge_objects: u32,
    /// How long nobody asks for anything, in seconds.
    #[arg(long, env = "STOWAGE_IDLE", value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    idle: u64,
    /// How long to wait at most for each thing that should happen, in seconds. What has not
    /// happened by then is told, and the measurement goes on.
    #[arg(long, env = "STOWAGE_TIMEOUT", value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=36_000))]
    timeout: u64,
    /// What is written to stdout: a table, or one document with the numbers of each round.
    #[arg(short, long, env = "STOWAGE_OUTPUT", value_name = "FORMAT", default_value = "text")]
    output: Output,
}

impl OperatorArgs {
    /// What the command line asks for.
    ///
    /// # Errors
    /// Wrong usage, or what is missing on this machine.
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
