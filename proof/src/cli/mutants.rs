//! The `stowage-proof mutants` command.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use terminal::numbers::{seconds, within};
use terminal::{Failure, printed};

use crate::mutants::{
    FOLDER, Limits, Mutant, MutantOutcome, Trial, Verdict, catalogue, document, load, markdown, text, trouble,
};

pub(super) const EXIT_CODES: &str = "\
Examples:
  stowage-proof mutants
  stowage-proof mutants forbidden-is-absent remade-at-one
  stowage-proof mutants --record
  stowage-proof mutants --list -o json

With -o json: {mutants: [{name, killed, fault, seconds, promise, message, test, met, …}], killed, total,
median_seconds}; with --list {mutants: [{name, bug, from, promises, scenarios, plan, test}]}.

Exit codes: 0 every mutant is killed; 1 one is not, or breaks no promise that it was made for, or does not apply or
build, or of all of them none breaks some promise; 2 wrong usage.";

/// Arguments of `stowage-proof mutants`.
#[derive(Debug, Args)]
pub(super) struct MutantsArgs {
    /// Mutants to try; all if none is named.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Only list the mutants with their bugs, as text or as JSON; build nothing.
    #[arg(long, env = "STOWAGE_LIST", value_parser = BoolishValueParser::new())]
    list: bool,
    /// Output format: a table, one JSON document, or a page in Markdown. Progress is written to
    /// stderr.
    #[arg(short, long, env = "STOWAGE_OUTPUT", value_name = "FORMAT", default_value = "text")]
    output: Output,
    /// Directory of the project's sources. Defaults to the nearest parent directory that has them.
    #[arg(long, env = "STOWAGE_WORKSPACE", value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Directory for the copy of the sources and its builds, some gigabytes, which are kept between
    /// runs. Defaults to mutants/ in cargo's target directory.
    #[arg(long, env = "STOWAGE_SCRATCH", value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// Seconds to explore the scenarios that a mutant's header names, and the same again for all
    /// scenarios.
    #[arg(long, env = "STOWAGE_TIME_LIMIT", value_name = "SECONDS", default_value_t = 120, value_parser = seconds)]
    time_limit: u64,
    /// Write the schedule that killed a mutant into its patch, unless it is there already. The next
    /// run replays it first.
    #[arg(long, env = "STOWAGE_RECORD", value_parser = BoolishValueParser::new())]
    record: bool,
    /// Number of schedules to explore at once. Defaults to the exploration's own default.
    #[arg(long, env = "STOWAGE_JOBS", value_name = "N", value_parser = |text: &str| within(text, 1..=u16::MAX))]
    jobs: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A table for people.
    Text,
    /// `{mutants: [{name, killed, fault, seconds}]}`.
    Json,
    /// A page with what each mutant is, and what killed it.
    Markdown,
}

/// Tries the mutants.
///
/// # Errors
/// Returns an error message with the failure, or with the mutants that survived.
pub(super) fn run_mutants(args: MutantsArgs) -> Result<(), Failure> {
    if args.list && args.output == Output::Markdown {
        return Err(Failure::Usage("--list prints text or JSON; the page is of a run".into()));
    }
    let workspace = args.workspace.map_or_else(find_workspace, Ok)?;
    let mutants = select(load(&workspace)?, &args.names).map_err(Failure::Usage)?;
    if args.list {
        let lines = || mutants.iter().map(|mutant| format!("{}: {}\n", mutant.name, mutant.bug)).collect();
        return Ok(print(&match args.output {
            Output::Json => format!("{:#}\n", catalogue(&mutants)),
            Output::Text | Output::Markdown => lines(),
        })?);
    }
    let place = args.scratch.unwrap_or_else(|| target_folder(&workspace).join("mutants"));
    let limits = Limits { jobs: args.jobs, time_limit: args.time_limit };
    let trial = Trial { workspace: &workspace, place: &place, limits: &limits };
    let total = mutants.len();
    let mut number = 0;
    let report = trial.run(
        &mutants,
        |what| tell(&format!("{what} …")),
        |outcome| {
            number += 1;
            tell(&format!("{number}/{total} {}", sentence(outcome)));
            if args.record
                && let Err(problem) = record(outcome, &workspace)
            {
                tell(&problem);
            }
        },
    )?;
    print(&match args.output {
        Output::Text => text(&report),
        Output::Json => format!("{:#}\n", document(&report)),
        Output::Markdown => markdown(&report),
    })?;
    trouble(&report, args.names.is_empty()).map_or(Ok(()), |why| Err(why.into()))
}

/// Writes the schedule that killed a mutant into its patch, unless it is there already.
fn record(outcome: &MutantOutcome, workspace: &Path) -> Result<(), String> {
    match outcome.kill() {
        Some(kill) if outcome.mutant.plan() != Some(kill.fault()) => outcome.mutant.record(workspace, kill.fault()),
        _ => Ok(()),
    }
}

fn sentence(outcome: &MutantOutcome) -> String {
    let name = &outcome.mutant.name;
    let (seconds, build) = (outcome.seconds, outcome.build.as_secs_f64());
    match &outcome.verdict {
        Verdict::Killed(kill) => {
            format!("{name}: {} after {seconds:.2} s (built in {build:.0} s): {}", kill.promise, kill.fault())
        }
        Verdict::FailedTest(words) => format!("{name}: its test fails (built in {build:.0} s): {words}"),
        Verdict::Survived if outcome.mutant.test().is_some() => format!("{name}: its test passes all the same"),
        Verdict::Survived => format!("{name}: survives {} schedules in {seconds:.0} s", outcome.schedules),
        Verdict::Failed(why) => format!("{name}: not tried: {why}"),
    }
}

fn select(mutants: Vec<Mutant>, names: &[String]) -> Result<Vec<Mutant>, String> {
    if let Some(name) = names.iter().find(|name| mutants.iter().all(|mutant| mutant.name != **name)) {
        return Err(format!("there is no mutant {name}; --list names them"));
    }
    Ok(mutants.into_iter().filter(|mutant| names.is_empty() || names.contains(&mutant.name)).collect())
}

fn find_workspace() -> Result<PathBuf, String> {
    let here = std::env::current_dir().map_err(|error| format!("can't tell the current folder: {error}"))?;
    let found = here.ancestors().find(|folder| folder.join(FOLDER).is_dir()).map(Path::to_owned);
    found.ok_or_else(|| format!("no folder from {} upwards has {FOLDER}; see --workspace", here.display()))
}

/// Cargo's target directory, so that `cargo clean` also removes the scratch copy.
fn target_folder(workspace: &Path) -> PathBuf {
    let given = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    workspace.join(given.unwrap_or_else(|| "target".into()))
}

fn print(text: &str) -> Result<(), String> {
    printed(write!(io::stdout(), "{text}"))
}

/// Writes progress to stderr. A failed write is ignored, because progress is not a result.
fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
