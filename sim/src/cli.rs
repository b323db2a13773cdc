//! The command line (spec §5).

mod conformance;
mod explore;
mod kubeconfig;
mod merge;
pub(crate) mod numbers;
mod progress;
mod replay;
mod report;
mod serve;
mod signals;

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use clap::{Args, Parser, Subcommand, ValueEnum};

use self::numbers::{seconds, within};
use self::signals::Interrupt;
use crate::demo::{self, Report, Source, Step, json, text};
use crate::model;
use crate::mutants::{self, MutantsArgs};

/// The Stowage operator in a simulated world: a Kubernetes API, an S3 store and a gateway in one process.
#[derive(Debug, Parser)]
#[command(name = "stowage-sim", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Take the guided tour: manifests become buckets, step by step, in a few seconds.
    ///
    /// Applies manifests to a simulated cluster that the production operator works on, then walks through the life
    /// of their claims and prints what a user would see: tables, events, the connection Secret, requests that the
    /// gateway answers and refuses, a key replaced under a tenant at work, what each kind of deletion takes and what it
    /// leaves behind. The S3Backends among the manifests are given simulated stores at their endpoints, which accept
    /// the credentials of their admin Secrets. Steps that the manifests give no occasion for are left out. A claim with
    /// a bucketName and deletionPolicy Delete on a backend with adoptionPolicy Any finds its bucket there already.
    /// Nothing outside of the process is touched.
    #[command(after_long_help = EXIT_CODES)]
    Demo(DemoArgs),
    /// Play scenarios under every fault, and judge what comes of it.
    ///
    /// A scenario is what people do to one claim or a few. It is played once undisturbed, which numbers every call of the
    /// production operator, and then again and again with a fault at each call that the fault makes sense for. All of
    /// it happens in this process, with simulated time; each run is judged by every promise of the operator. A run that
    /// broke one is a line that `stowage-sim replay` plays again, and is made as small as it can be.
    #[command(after_long_help = explore::EXAMPLES)]
    Explore(explore::ExploreArgs),
    /// Play one schedule again, and show what happens.
    ///
    /// Prints who did what when: users, the operator's calls by their numbers, what the Kubernetes API and the store
    /// answered and what changed there, the gateway, the tenants. Faults are marked, and a broken promise stands where
    /// it shows and at the end. The same line gives the same run, always.
    #[command(after_long_help = replay::EXAMPLES)]
    Replay(replay::ReplayArgs),
    /// Merge the JSON documents of all shards of an exploration into one.
    ///
    /// Each shard is `stowage-sim explore --shard I/N -o json`, on whatever machine. Documents that don't belong
    /// together are refused: of another profile, seed, set of scenarios or build, a shard twice or missing.
    #[command(after_long_help = merge::EXAMPLES)]
    Merge(merge::MergeArgs),
    /// Put known bugs into the operator, one at a time, and see whether the exploration finds each.
    ///
    /// Applies each patch of sim/mutants to a copy of the sources, builds that, and explores it until a promise is
    /// broken: first the scenarios that the patch names, then all. Needs the sources and cargo; they are only read. The
    /// first run builds everything once, which takes minutes, each mutant some twenty seconds.
    #[command(after_long_help = MUTANTS_EXIT_CODES)]
    Mutants(MutantsArgs),
    /// Check the planner exhaustively over small worlds; print states, depth and time.
    ///
    /// Puts the production planner into worlds with a claim or two, their Secrets, a store, caches that lag, operators
    /// that crash, answers that get lost, people who edit and tamper, and goes through every state that such a world can
    /// come into. In each of them the safety promises must hold, and from each of them everything must come to rest as
    /// it should once nothing goes wrong any more. A broken promise is told with the shortest way to it.
    #[command(after_long_help = MODEL_EXIT_CODES)]
    Model(ModelArgs),
    /// Serve one of the simulated parts, or the faults, for an operator on a real cluster; until SIGTERM.
    #[command(after_long_help = serve::EXAMPLES)]
    Serve {
        #[command(subcommand)]
        command: serve::ServeCommand,
    },
    /// Ask a real server and the simulator the same, at random, and print every difference.
    ///
    /// Operations are made from the seed, a few dozen to a sequence, each in a place of its own. Both sides get
    /// them one after the other; answers are compared whole, but for UIDs, versions and times. Differences that are
    /// known and justified (docs/fidelity.md) are counted; any other is made small and printed, with the line that
    /// plays it again. The project's definitions are put on the cluster and stay; all else is removed. A store is asked
    /// over HTTP, in buckets that are made for it and removed.
    #[command(after_long_help = conformance::EXAMPLES)]
    Conformance(conformance::ConformanceArgs),
}

const MODEL_EXIT_CODES: &str = "\
Examples:
  stowage-sim model
  stowage-sim model one-claim-crashes rotation-late --jobs 1
  stowage-sim model --time-limit 60 -o json

With -o json: {states, depth, seconds, complete, violations: [{world, promise, message, detail, trace}],
worlds: [{name, explored, complete, states, depth, seconds}]}, and more beside these.

Exit codes: 0 no promise was broken by what was explored; 1 one was, or of some world nothing was explored
within --time-limit, said in one sentence on stderr; 2 wrong usage; 130 SIGINT or SIGTERM cut it short, and
no promise was broken by what was explored.";

#[derive(Debug, Args)]
struct ModelArgs {
    /// Worlds to explore; all, if none is given.
    #[arg(value_name = "WORLD", value_parser = clap::builder::PossibleValuesParser::new(model::world_names()))]
    worlds: Vec<String>,
    /// Threads that explore a world together; all cores, if it is not given.
    #[arg(long, env = "STOWAGE_JOBS", value_name = "N", value_parser = |text: &str| within(text, NonZeroUsize::MIN..=NonZeroUsize::MAX))]
    jobs: Option<NonZeroUsize>,
    /// Stop after so many seconds, of which each world has its share, and say that not everything was explored.
    #[arg(long, env = "STOWAGE_TIME_LIMIT", value_name = "SECONDS", value_parser = seconds)]
    time_limit: Option<u64>,
    /// Stop after so many states of a world, and say that not everything was explored.
    #[arg(long, env = "STOWAGE_MAX_STATES", value_name = "N", value_parser = |text: &str| within(text, 1..=usize::MAX))]
    max_states: Option<usize>,
    /// What to print: text for people, or one JSON document for machines.
    #[arg(short, long, env = "STOWAGE_OUTPUT", value_name = "FORMAT", default_value = "text")]
    output: Output,
}

const EXIT_CODES: &str = "\
Examples:
  stowage-sim demo
  stowage-sim demo -f namespace.yaml -f backend.yaml -f claims.yaml
  cat everything.yaml | stowage-sim demo -f - -o json

With -o json: {steps: [{name, ok, millis, detail}], kubernetes_writes, s3_calls}.

Exit codes: 0 every step went as it should; 1 one did not, said in one sentence on stderr; 2 wrong usage.";

const MUTANTS_EXIT_CODES: &str = "\
Examples:
  stowage-sim mutants
  stowage-sim mutants forbidden-is-absent remade-at-one
  stowage-sim mutants -o markdown > docs/mutants.md
  stowage-sim mutants --list -o json

With -o json: {mutants: [{name, killed, fault, seconds, promise, message, met, …}], killed, total,
median_seconds}; with --list {mutants: [{name, bug, from, promises, scenarios}]}.

Exit codes: 0 every mutant is killed; 1 one is not, or breaks no promise that it was made for, or does not apply or
build, or of all of them none breaks some promise; 2 wrong usage.";

#[derive(Debug, Args)]
struct DemoArgs {
    /// Manifests to apply in place of the project's examples: files, directories, - for standard input; repeatable.
    #[arg(short, long = "filename", env = "STOWAGE_FILENAME", value_name = "FILE", num_args = 1..)]
    filename: Vec<PathBuf>,
    #[command(flatten)]
    printing: Printing,
}

/// How a command prints what it found.
#[derive(Clone, Copy, Debug, Args)]
struct Printing {
    /// What to print: text for people, or one JSON document for machines.
    #[arg(short, long, env = "STOWAGE_OUTPUT", value_name = "FORMAT", default_value = "text")]
    output: Output,
    /// When to use colours; auto: on a terminal, unless NO_COLOR is set.
    #[arg(long, env = "STOWAGE_COLOR", value_name = "WHEN", default_value = "auto")]
    color: Color,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Text,
    /// One document and nothing else.
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl From<Color> for ColorChoice {
    fn from(color: Color) -> Self {
        match color {
            Color::Auto => Self::Auto,
            Color::Always => Self::Always,
            Color::Never => Self::Never,
        }
    }
}

/// Why a command did not come to a good end, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It can't do what it was asked to; 2 to the shell, as what clap refuses.
    Usage(String),
    /// It failed, or found what it looks for; 1 to the shell.
    Found(String),
    /// It was asked to end before it was through; 130 to the shell, as what SIGINT ends.
    Interrupted(String),
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self::Found(why)
    }
}

impl Cli {
    /// Does what the command line says.
    ///
    /// # Errors
    /// What failed.
    pub fn execute(self) -> Result<(), Failure> {
        match self.command {
            Command::Demo(args) => run_demo(args)?,
            Command::Explore(args) => explore::run_explore(args)?,
            Command::Replay(args) => replay::run_replay(args)?,
            Command::Merge(args) => merge::run_merge(args)?,
            Command::Mutants(args) => mutants::execute(args)?,
            Command::Model(args) => run_model(args)?,
            Command::Serve { command } => serve::run_serve(command)?,
            Command::Conformance(args) => conformance::run_conformance(&args)?,
        }
        Ok(())
    }
}

fn run_model(args: ModelArgs) -> Result<(), Failure> {
    let interrupt = Interrupt::listen();
    let options = model::Options {
        worlds: args.worlds,
        jobs: args.jobs,
        time_limit: args.time_limit.map(Duration::from_secs),
        max_states: args.max_states,
        asked: interrupt.flag(),
    };
    let mut written = Ok(());
    let text = args.output == Output::Text;
    let report = model::run(&options, |world| {
        if text && written.is_ok() {
            written = model::write_world(&mut io::stdout(), world);
        }
    })?;
    match args.output {
        Output::Text => printed(written.and_then(|()| model::write_summary(&mut io::stdout(), &report)))?,
        Output::Json => print_json(&model::document(&report))?,
    }
    if let Some((world, violation)) = report.violations().next() {
        return Err(format!("world {world} breaks {}", violation.promise).into());
    }
    if interrupt.asked() && !report.complete() {
        return Err(Failure::Interrupted(format!("interrupted after {} states", report.states())));
    }
    match report.unexplored().collect::<Vec<_>>()[..] {
        [] => Ok(()),
        ref worlds => Err(format!("nothing was explored in the time left of {}", worlds.join(", ")).into()),
    }
}

fn run_demo(args: DemoArgs) -> Result<(), String> {
    let source = if args.filename.is_empty() { Source::Examples } else { Source::Paths(args.filename) };
    let report = match args.printing.output {
        Output::Text => {
            let (report, written) = print_text(&source, args.printing.color.into());
            printed(written)?;
            report
        }
        Output::Json => {
            let report = demo::run(&source, |_| {});
            print_json(&json::document(&report))?;
            report
        }
    };
    report.failure().map_or(Ok(()), |step| Err(step.detail.clone()))
}

/// Whether what was to be printed was. Who reads no further is no failure.
fn printed(written: io::Result<()>) -> Result<(), String> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(format!("can't write to stdout: {error}")),
        _ => Ok(()),
    }
}

/// Prints a document as JSON.
fn print_json(document: &impl serde::Serialize) -> Result<(), String> {
    let text = serde_json::to_string_pretty(document).map_err(io::Error::from);
    printed(text.and_then(|text| writeln!(io::stdout(), "{text}")))
}

/// Prints each step as it ends. What goes wrong with the printing doesn't stop the tour, it is told at its end.
fn print_text(source: &Source, color: ColorChoice) -> (Report, io::Result<()>) {
    let mut out = AutoStream::new(io::stdout(), color);
    let mut written = text::write_introduction(&mut out);
    let mut number = 0;
    let report = demo::run(source, |step: &Step| {
        number += 1;
        if written.is_ok() {
            written = text::write_step(&mut out, number, step);
        }
    });
    let written = written.and_then(|()| text::write_summary(&mut out, &report));
    (report, written)
}

#[cfg(test)]
mod tests {
    use clap::builder::{BoolishValueParser, ValueParser};
    use clap::{ArgAction, CommandFactory};

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn files_can_be_given_one_by_one_or_together() {
        let cli = Cli::try_parse_from(["stowage-sim", "demo", "-f", "a", "b", "-f", "-", "-o", "json"]);
        let Command::Demo(args) = cli.expect("it is good usage").command else { panic!("another command") };
        assert_eq!(args.filename, ["a", "b", "-"].map(PathBuf::from));
        assert_eq!(args.printing.output, Output::Json);
    }

    #[test]
    fn a_comparison_needs_something_to_compare_with() {
        let parse = |more: &[&str]| Cli::try_parse_from(["stowage-sim", "conformance"].iter().chain(more));
        assert!(parse(&["--kubeconfig", "F", "--operations", "100", "-o", "json"]).is_ok());
        assert!(parse(&["--kubeconfig", "F", "--from", "1", "--sequence", "2"]).is_err());
        assert!(parse(&["--seed", "1"]).is_err());
        let store = ["--s3", "http://127.0.0.1:9000", "--s3-access-key", "A", "--s3-secret-key-file", "F"];
        assert!(parse(&store).is_ok());
        assert!(parse(&store[..4]).is_err());
        assert!(parse(&[&store[..], &["--kubeconfig", "F"]].concat()).is_err());
    }

    #[test]
    fn worlds_of_the_model_are_known_by_name() {
        let cli = Cli::try_parse_from(["stowage-sim", "model", "one-claim-crashes", "--jobs", "1", "-o", "json"]);
        assert!(cli.is_ok());
        assert!(Cli::try_parse_from(["stowage-sim", "model", "no-such-world"]).is_err());
    }

    #[test]
    fn bounds_that_leave_nothing_are_refused() {
        for (flag, problem) in [
            ("--time-limit", "expected whole seconds, at least 1"),
            ("--max-states", "expected a number from 1 to "),
            ("--jobs", "expected a number from 1 to "),
        ] {
            let error = Cli::try_parse_from(["stowage-sim", "model", flag, "0"]).expect_err("it is wrong usage");
            assert!(error.to_string().contains(problem), "{error}");
        }
    }

    /// What is set in the environment is given to this flag's parser.
    #[test]
    fn flags_of_the_environment_are_yes_or_no_in_any_words() {
        let command = Cli::command();
        for subcommand in command.get_subcommands() {
            for flag in subcommand.get_arguments().filter(|it| matches!(it.get_action(), ArgAction::SetTrue)) {
                let boolish = format!("{:?}", ValueParser::from(BoolishValueParser::new()));
                let parser = format!("{:?}", flag.get_value_parser());
                assert_eq!(parser, boolish, "{} {}", subcommand.get_name(), flag.get_id());
            }
        }
    }
}
