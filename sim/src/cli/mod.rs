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

/// The Stowage operator in a simulated environment: a Kubernetes API, an S3 store and a gateway in
/// one process.
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
    /// Applies manifests to a simulated cluster with the production operator, then goes through the
    /// lifecycle of their claims and prints what a user would see: tables, events, the connection
    /// Secret, requests that the gateway answers and refuses, the rotation of a key under a working
    /// tenant, and what each deletion policy removes and keeps. Each S3Backend in the manifests
    /// gets a simulated store at its endpoint, which accepts the credentials of its admin Secret.
    /// Steps that the manifests don't allow for are skipped. For a claim with a bucketName and
    /// deletionPolicy Delete, on a backend with adoptionPolicy Any, the bucket exists already.
    /// Nothing outside of the process is changed.
    #[command(after_long_help = EXIT_CODES)]
    Demo(DemoArgs),
    /// Run a Kubernetes API, an S3 store, the gateway and the operator on this machine, for kubectl
    /// and S3 clients, until SIGTERM or Ctrl-C.
    #[command(after_long_help = up::HELP)]
    Up(Box<up::UpArgs>),
    /// Print the connection to a claim's bucket: an app's environment variables, from the claim's
    /// Secret.
    Env(running::EnvArgs),
    /// Print the calls of a running simulator's operator: each with its number, its answer and its
    /// fault, if any.
    Calls(running::CallsArgs),
    /// Inject faults into the calls of a running simulator's operator.
    Fault {
        #[command(subcommand)]
        command: running::FaultCommand,
    },
    /// Move the time of a running simulator forward.
    Clock {
        #[command(subcommand)]
        command: running::ClockCommand,
    },
    /// Save the actions in a running simulator since its start or its last reset, and print a
    /// command that replays them.
    ///
    /// The file contains the writes of users to the Kubernetes API, the moves of the clock, and the
    /// starts of the operator, each with the time since the step before. Values of Secrets are
    /// replaced. The command contains the faults of the operator's calls as a plan: the kind of
    /// each call, and which call of its kind it was. Anything that this can't express is reported
    /// on stderr.
    #[command(after_long_help = history::HELP)]
    History(history::HistoryArgs),
    /// Reset a running simulator to its initial state; its clock shows the machine's time again.
    Reset(again::ResetArgs),
    /// Save the state of a running simulator to a file, or load it from one.
    Snapshot {
        #[command(subcommand)]
        command: again::SnapshotCommand,
    },
    /// Serve one of the simulated parts, or the fault proxy, for an operator on a real cluster,
    /// until SIGTERM.
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
    /// Manifests to apply instead of the project's examples: files, directories, or - for standard
    /// input; repeatable.
    #[arg(short, long = "filename", env = "STOWAGE_FILENAME", value_name = "FILE", num_args = 1..)]
    filename: Vec<PathBuf>,
    #[command(flatten)]
    printing: Printing,
}

impl Cli {
    /// Runs the command.
    ///
    /// # Errors
    /// Returns the failure of the command.
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

/// Prints each step as it ends. An error of stdout doesn't stop the tour; it is returned at the
/// end.
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

    /// A flag's environment variable is parsed by the flag's value parser.
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
