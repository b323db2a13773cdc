//! The command line (spec §5).

mod again;
mod client;
mod history;
mod running;
mod serve;
mod up;

use std::io;
use std::path::PathBuf;

use anstream::{AutoStream, ColorChoice};
use clap::{Args, Parser, Subcommand};
use terminal::{Failure, Output, Printing, print_json, printed};

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
