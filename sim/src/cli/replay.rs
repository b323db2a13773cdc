//! `stowage-sim replay`.

use std::io::{self, Write};

use anstream::AutoStream;
use clap::Args;
use clap::builder::BoolishValueParser;

use super::numbers::within;
use super::{Failure, Output, Printing, print_json, printed};
use crate::explorer::timeline::Timeline;
use crate::explorer::timeline::text::{self, Layout};
use crate::explorer::{Schedule, run};

pub(super) const EXAMPLES: &str = "\
Examples:
  stowage-sim replay 'create 1'
  stowage-sim replay 'rotate 1 kube:patch secrets@2 lost-answer'
  stowage-sim replay 'create 1 #17 crash(before); s3:CreateBucket@1 lost-answer' --all --width 240

With -o json: {line, unmet: [FAULT], violations: [{promise, words, message, event}], took, trace_hash,
events: [{at_ms, effect, life, fault, user, operator, kubernetes, store, gateway, tenant}]}; an event's
fields are there where they say something. A fault of the plan that met no call is told, and no error.

Exit codes: 0 every promise was kept; 1 one was broken, said in one sentence on stderr; 2 wrong usage.";

/// Width where there is no terminal to ask.
const WIDTH: u16 = 160;

/// What to play again.
#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    /// The line that a failure printed: 'SCENARIO SEED PLAN'. What follows ' -- ' in it is a
    /// remark.
    #[arg(value_name = "SCHEDULE", value_parser = |text: &str| text.parse::<Schedule>())]
    schedule: Schedule,
    /// Characters in a line, at least 80; the terminal's if not given, 160 where there is none.
    #[arg(long, env = "STOWAGE_WIDTH", value_name = "COLUMNS", value_parser = |text: &str| within(text, 80..=u16::MAX))]
    width: Option<u16>,
    /// Show each list, each watch, each Event and each use of a key in a line of its own.
    #[arg(long, env = "STOWAGE_ALL", value_parser = BoolishValueParser::new())]
    all: bool,
    /// Print what the hash is of, line by line, in place of the timeline: all that the schedule
    /// decides, contents of Secrets included.
    #[arg(long, env = "STOWAGE_TRANSCRIPT", value_parser = BoolishValueParser::new())]
    transcript: bool,
    #[command(flatten)]
    printing: Printing,
}

/// Plays one schedule, and prints what happened.
pub(super) fn run_replay(args: ReplayArgs) -> Result<(), Failure> {
    // Not clap's to refuse: for it a flag that the environment turns off is given, too.
    if args.transcript && args.printing.output == Output::Json {
        return Err(Failure::Usage("--transcript prints lines of text: not with -o json".to_owned()));
    }
    let outcome = run(&args.schedule);
    let timeline = Timeline::of(&args.schedule, &outcome);
    match args.printing.output {
        _ if args.transcript => printed(write!(io::stdout(), "{}", outcome.transcript()))?,
        Output::Json => print_json(&timeline)?,
        Output::Text => {
            let mut out = AutoStream::new(io::stdout(), args.printing.color.into());
            let width = args.width.or_else(|| terminal_size::terminal_size().map(|(width, _)| width.0.max(80)));
            let layout = Layout { width: width.unwrap_or(WIDTH).into(), all: args.all };
            printed(text::write(&mut out, &timeline, layout))?;
        }
    }
    match timeline.violations.first() {
        None => Ok(()),
        Some(broken) => {
            let message = broken.message.replace('\n', " ");
            Err(format!("{} is broken ({}): {message}", broken.promise, broken.words).into())
        }
    }
}
