//! The `stowage-proof replay` command.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anstream::AutoStream;
use clap::Args;
use clap::builder::BoolishValueParser;
use serde::Serialize;
use stowage_world::deeds::Deeds;
use stowage_world::effects::Plan;
use terminal::numbers::within;
use terminal::quoted;
use terminal::{Failure, Output, Printing, print_json, printed};

use crate::explorer::retold::{Ended, Retold, retell};
use crate::explorer::timeline::Timeline;
use crate::explorer::timeline::text::{self, Layout};
use crate::explorer::{Detail, Schedule, run};

pub(super) const EXAMPLES: &str = "\
Examples:
  stowage-proof replay 'create 1'
  stowage-proof replay 'rotate 1 kube:patch secrets@2 lost-answer'
  stowage-proof replay 'create 1 #17 crash(before); s3:CreateBucket@1 lost-answer' --all --width 240
  stowage-proof replay --history seen.yaml 's3:CreateBucket@1 lost-answer'

With -o json: {line, unmet: [FAULT], violations: [{promise, words, message, event}], took, trace_hash,
events: [{at_ms, effect, life, fault, user, operator, kubernetes, store, gateway, tenant}]}; an event's
fields are there where they say something. A fault of the plan that met no call is told, and no error.
With --history there are also {ended: [{resource, name, phase}], refused: [STEP], elsewhere: [FAULT], rested,
caveats: [SENTENCE]}. A step that is refused is told, and no error; so is a fault that met another call than where it
was seen. Where it never came to rest, only what needs no end is judged.

Exit codes: 0 every promise was kept; 1 one was broken, said in one sentence on stderr; 2 wrong usage.";

/// Width of a line if stdout is not a terminal.
const WIDTH: u16 = 160;

/// Maximum size of a history file, in bytes.
const LARGEST: u64 = 16 << 20;

/// Arguments of `stowage-proof replay`.
#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    /// Line that a failure printed: 'SCENARIO SEED PLAN'. Text after ' -- ' is a comment. With
    /// --history, only the PLAN, or nothing.
    #[arg(value_name = "SCHEDULE", required_unless_present = "history", value_parser = words)]
    schedule: Option<Words>,
    /// Play a history of a running simulator, as written by `stowage-sim history`.
    #[arg(long, env = "STOWAGE_HISTORY", value_name = "FILE")]
    history: Option<PathBuf>,
    /// Seed of every random choice, with --history.
    #[arg(long, env = "STOWAGE_SEED", value_name = "N", default_value_t = 1, value_parser = seed)]
    seed: u64,
    /// Characters per line, at least 80. Defaults to the terminal's width, or 160 without a
    /// terminal.
    #[arg(long, env = "STOWAGE_WIDTH", value_name = "COLUMNS", value_parser = |text: &str| within(text, 80..=u16::MAX))]
    width: Option<u16>,
    /// Show each list, each watch, each Event and each use of a key on its own line.
    #[arg(long, env = "STOWAGE_ALL", value_parser = BoolishValueParser::new())]
    all: bool,
    /// Print the input of the hash, line by line, instead of the timeline: everything that the
    /// schedule decides, including contents of Secrets.
    #[arg(long, env = "STOWAGE_TRANSCRIPT", value_parser = BoolishValueParser::new())]
    transcript: bool,
    #[command(flatten)]
    printing: Printing,
}

/// A schedule, or a plan for a history.
#[derive(Clone, Debug)]
enum Words {
    Schedule(Schedule),
    /// Faults to inject into a history.
    Plan(Plan),
}

impl FromStr for Words {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // No scenario has a name that begins like this.
        let is_plan = ["#", "kube:", "s3:"].iter().any(|it| text.trim_start().starts_with(it));
        if is_plan {
            text.parse().map(Self::Plan).map_err(|error| error.to_string())
        } else {
            text.parse().map(Self::Schedule).map_err(|error: crate::explorer::ScheduleError| error.to_string())
        }
    }
}

fn words(text: &str) -> Result<Words, String> {
    text.parse()
}

fn seed(text: &str) -> Result<u64, String> {
    within(text, 0..=u64::MAX)
}

/// Results of a history, as JSON.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    timeline: &'a Timeline,
    ended: Vec<Ended>,
    refused: &'a [String],
    elsewhere: &'a [String],
    rested: bool,
    caveats: Vec<String>,
}

/// Plays one schedule or one history, and prints the timeline.
pub(super) fn run_replay(args: ReplayArgs) -> Result<(), Failure> {
    // Checked here, because clap also counts a flag that the environment turns off as given.
    if args.transcript && args.printing.output == Output::Json {
        return Err(Failure::Usage("--transcript prints lines of text: not with -o json".to_owned()));
    }
    match (&args.history, &args.schedule) {
        (None, Some(Words::Schedule(schedule))) => play_schedule(&args, schedule),
        (Some(file), Some(Words::Plan(plan))) => play_history(&args, file, plan),
        (Some(file), None) => play_history(&args, file, &Plan::default()),
        (Some(_), Some(Words::Schedule(schedule))) => {
            Err(Failure::Usage(format!("with --history a PLAN alone is expected: `{schedule}` is a schedule")))
        }
        (None, Some(Words::Plan(_)) | None) => {
            Err(Failure::Usage("a plan alone is played with --history FILE: expected `SCENARIO SEED PLAN`".to_owned()))
        }
    }
}

fn play_schedule(args: &ReplayArgs, schedule: &Schedule) -> Result<(), Failure> {
    let outcome = run(schedule);
    let timeline = Timeline::of(schedule, &outcome);
    match args.printing.output {
        _ if args.transcript => printed(write!(io::stdout(), "{}", outcome.transcript(Detail::All)))?,
        Output::Json => print_json(&timeline)?,
        Output::Text => print_text(args, &timeline)?,
    }
    verdict(&timeline)
}

fn play_history(args: &ReplayArgs, file: &Path, plan: &Plan) -> Result<(), Failure> {
    let deeds = read(file)?;
    let retold = retell(&deeds, args.seed, plan);
    let plan_of_line = if plan.is_empty() { String::new() } else { format!(" {}", quoted(&plan.to_string())) };
    let line = format!("--history {} --seed {}{plan_of_line}", quoted(&file.to_string_lossy()), args.seed);
    let timeline = retold.timeline(line, plan);
    let (caveats, elsewhere) = (deeds.caveats(), retold.elsewhere(&deeds, plan));
    match args.printing.output {
        _ if args.transcript => printed(write!(io::stdout(), "{}", retold.outcome.transcript(Detail::All)))?,
        Output::Json => {
            let (ended, rested) = (retold.ended(), retold.rested);
            let (refused, elsewhere) = (&retold.refused, &elsewhere);
            print_json(&Document { timeline: &timeline, ended, refused, elsewhere, rested, caveats })?;
        }
        Output::Text => {
            print_text(args, &timeline)?;
            printed(write_end(&mut io::stdout(), &retold, &elsewhere, &caveats))?;
        }
    }
    verdict(&timeline)
}

/// Reads a history from a file.
fn read(file: &Path) -> Result<Deeds, Failure> {
    let mut text = String::new();
    let opened = File::open(file).and_then(|it| it.take(LARGEST + 1).read_to_string(&mut text));
    opened.map_err(|error| Failure::Usage(format!("can't read {}: {error}", file.display())))?;
    if text.len() as u64 > LARGEST {
        return Err(Failure::Usage(format!("{} is no history: it has more than {LARGEST} bytes", file.display())));
    }
    Deeds::read(&text).map_err(|why| Failure::Usage(format!("{} is no history: {why}", file.display())))
}

fn print_text(args: &ReplayArgs, timeline: &Timeline) -> Result<(), String> {
    let mut out = AutoStream::new(io::stdout(), args.printing.color.into());
    let width = args.width.or_else(|| terminal_size::terminal_size().map(|(width, _)| width.0.max(80)));
    let layout = Layout { width: width.unwrap_or(WIDTH).into(), all: args.all };
    printed(text::write(&mut out, timeline, layout))
}

/// Writes the final phase of each object that users created, and the differences to the original
/// run.
fn write_end(out: &mut impl Write, retold: &Retold, elsewhere: &[String], caveats: &[String]) -> io::Result<()> {
    for Ended { resource, name, phase } in retold.ended() {
        let phase = if phase.is_empty() { "not looked at" } else { &phase };
        writeln!(out, "{resource} {name}: {phase}")?;
    }
    if !retold.rested {
        writeln!(out, "it did not come to rest in two hours, so the end is not judged")?;
    }
    elsewhere.iter().try_for_each(|met| writeln!(out, "met another call: {met}"))?;
    retold.refused.iter().try_for_each(|step| writeln!(out, "refused here: {step}"))?;
    caveats.iter().try_for_each(|caveat| writeln!(out, "of the history: {caveat}"))
}

fn verdict(timeline: &Timeline) -> Result<(), Failure> {
    match timeline.violations.first() {
        None => Ok(()),
        Some(broken) => {
            let message = broken.message.replace('\n', " ");
            Err(format!("{} is broken ({}): {message}", broken.promise, broken.words).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use rstest::rstest;

    use super::super::Cli;
    use super::*;

    #[rstest]
    #[case(&["create 1"], true)]
    #[case(&["--history", "f"], true)]
    #[case(&["--history", "f", "s3:CreateBucket@1 lost-answer"], true)]
    #[case(&["--history", "f", "s3:CreateBucket@1 lost"], false)]
    #[case(&["creat 1"], false)]
    #[case(&[], false)]
    fn a_schedule_or_a_history_is_taken(#[case] words: &[&str], #[case] taken: bool) {
        assert_eq!(Cli::try_parse_from([&["stowage-proof", "replay"], words].concat()).is_ok(), taken);
    }

    #[rstest]
    #[case(&["#1 hang"], "a plan alone is played with --history")]
    #[case(&["--history", "f", "create 1"], "`create 1` is a schedule")]
    #[case(&["--history", "/no/such/file"], "can't read /no/such/file")]
    fn what_does_not_go_together_is_wrong_usage(#[case] words: &[&str], #[case] why: &str) {
        let cli = Cli::try_parse_from([&["stowage-proof", "replay"], words].concat()).expect("it is good usage so far");
        let Err(Failure::Usage(told)) = cli.execute() else { panic!("it can't be played") };
        assert!(told.contains(why), "{told}");
    }
}
