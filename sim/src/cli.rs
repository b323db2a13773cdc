//! The command line (spec §5).

mod again;
mod client;
#[cfg(feature = "proof")]
mod conformance;
#[cfg(feature = "proof")]
mod explore;
mod history;
mod kubeconfig;
#[cfg(feature = "proof")]
mod merge;
#[cfg(feature = "proof")]
mod model;
#[cfg(feature = "proof")]
mod mutants;
mod numbers;
#[cfg(feature = "proof")]
mod progress;
#[cfg(feature = "proof")]
mod proof;
#[cfg(not(feature = "proof"))]
#[path = "cli/without_proof.rs"]
mod proof;
#[cfg(feature = "proof")]
mod replay;
#[cfg(feature = "proof")]
mod report;
mod running;
mod serve;
mod signals;
mod up;

use std::io::{self, Write};
use std::path::PathBuf;

use anstream::{AutoStream, ColorChoice};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::demo::{self, DemoReport, DemoStep, Source, json, text};

/// The Stowage operator in a simulated world: a Kubernetes API, an S3 store and a gateway in one
/// process.
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
    /// Applies manifests to a simulated cluster that the production operator works on, then walks
    /// through the life of their claims and prints what a user would see: tables, events, the
    /// connection Secret, requests that the gateway answers and refuses, a key replaced under a
    /// tenant at work, what each kind of deletion takes and what it leaves behind. The S3Backends
    /// among the manifests are given simulated stores at their endpoints, which accept the
    /// credentials of their admin Secrets. Steps that the manifests give no occasion for are left
    /// out. A claim with a bucketName and deletionPolicy Delete on a backend with adoptionPolicy
    /// Any finds its bucket there already. Nothing outside of the process is touched.
    #[command(after_long_help = EXIT_CODES)]
    Demo(DemoArgs),
    /// Run a Kubernetes API, an S3 store, the gateway and the operator on this machine, for kubectl
    /// and S3 clients; until SIGTERM or Ctrl-C.
    #[command(after_long_help = up::HELP)]
    Up(Box<up::UpArgs>),
    /// Print how a claim's bucket is reached: the environment of an app, from the claim's Secret.
    Env(running::EnvArgs),
    /// Print what the operator of a running simulator calls: each call with its number, its answer
    /// and the fault that it met.
    Calls(running::CallsArgs),
    /// Have calls of a running simulator's operator go wrong.
    Fault {
        #[command(subcommand)]
        command: running::FaultCommand,
    },
    /// Move the time of a running simulator.
    Clock {
        #[command(subcommand)]
        command: running::ClockCommand,
    },
    /// Write down what was done in a running simulator since it began or was reset, and print the
    /// line that plays it again.
    ///
    /// The file has what people wrote to the Kubernetes API, moves of the clock, and when the
    /// operator started, each with the time since the step before. Values of Secrets are replaced.
    /// The line has the faults that befell calls of the operator, in the words of plans: the kind
    /// of the call and which of its kind it was. What this can't tell is said on stderr.
    #[command(after_long_help = history::HELP)]
    History(history::HistoryArgs),
    /// Empty a running simulator: it holds again what it began with, and its clock is the
    /// machine's.
    Reset(again::ResetArgs),
    /// Take all that a running simulator holds along in a file, or go on from one.
    Snapshot {
        #[command(subcommand)]
        command: again::SnapshotCommand,
    },
    /// Serve one of the simulated parts, or the faults, for an operator on a real cluster; until
    /// SIGTERM.
    #[command(after_long_help = serve::EXAMPLES)]
    Serve {
        #[command(subcommand)]
        command: serve::ServeCommand,
    },
    #[command(flatten)]
    Proof(proof::Command),
}

const EXIT_CODES: &str = "\
Examples:
  stowage-sim demo
  stowage-sim demo -f namespace.yaml -f backend.yaml -f claims.yaml
  cat everything.yaml | stowage-sim demo -f - -o json

With -o json: {steps: [{name, ok, millis, detail}], kubernetes_writes, s3_calls}.

Exit codes: 0 every step went as it should; 1 one did not, said in one sentence on stderr; 2 wrong usage.";

#[derive(Debug, Args)]
struct DemoArgs {
    /// Manifests to apply in place of the project's examples: files, directories, - for standard
    /// input; repeatable.
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
            Command::Up(args) => up::run(*args)?,
            Command::Env(args) => running::env(&args)?,
            Command::Calls(args) => running::calls(&args)?,
            Command::Fault { command } => running::fault(&command)?,
            Command::Clock { command } => running::clock(&command)?,
            Command::History(args) => history::history(&args)?,
            Command::Reset(args) => again::reset(&args)?,
            Command::Snapshot { command } => again::snapshot(&command)?,
            Command::Serve { command } => serve::run_serve(command)?,
            Command::Proof(command) => proof::run(command)?,
        }
        Ok(())
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

/// Prints each step as it ends. What goes wrong with the printing doesn't stop the tour, it is told
/// at its end.
fn print_text(source: &Source, color: ColorChoice) -> (DemoReport, io::Result<()>) {
    let mut out = AutoStream::new(io::stdout(), color);
    let mut written = text::write_introduction(&mut out);
    let mut number = 0;
    let report = demo::run(source, |step: &DemoStep| {
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
