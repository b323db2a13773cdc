//! The `stowage-proof model` command.

use std::io;
use std::num::NonZeroUsize;
use std::time::Duration;

use clap::Args;
use terminal::Interrupt;
use terminal::numbers::{seconds, within};
use terminal::{Failure, Output, print_json, printed};

use crate::model;

pub(super) const EXIT_CODES: &str = "\
Examples:
  stowage-proof model
  stowage-proof model one-claim-crashes rotation-late --jobs 1
  stowage-proof model --time-limit 60 -o json

With -o json: {states, depth, seconds, complete, violations: [{world, promise, message, detail, trace}],
worlds: [{name, explored, complete, states, depth, seconds}]}, and more beside these.

Exit codes: 0 no promise was broken by what was explored; 1 one was, or of some world nothing was explored
within --time-limit, said in one sentence on stderr; 2 wrong usage; 130 SIGINT or SIGTERM cut it short, and
no promise was broken by what was explored.";

#[derive(Debug, Args)]
pub(super) struct ModelArgs {
    /// Worlds to explore; all if none is given.
    #[arg(value_name = "WORLD", value_parser = clap::builder::PossibleValuesParser::new(model::world_names()))]
    worlds: Vec<String>,
    /// Number of threads that explore a world together. Defaults to the number of cores.
    #[arg(long, env = "STOWAGE_JOBS", value_name = "N", value_parser = |text: &str| within(text, NonZeroUsize::MIN..=NonZeroUsize::MAX))]
    jobs: Option<NonZeroUsize>,
    /// Stop after this many seconds, which all worlds share, and report that the exploration is
    /// incomplete.
    #[arg(long, env = "STOWAGE_TIME_LIMIT", value_name = "SECONDS", value_parser = seconds)]
    time_limit: Option<u64>,
    /// Stop after this many states of a world, and report that the exploration is incomplete.
    #[arg(long, env = "STOWAGE_MAX_STATES", value_name = "N", value_parser = |text: &str| within(text, 1..=usize::MAX))]
    max_states: Option<usize>,
    /// Output format: text for people, or one JSON document for machines.
    #[arg(short, long, env = "STOWAGE_OUTPUT", value_name = "FORMAT", default_value = "text")]
    output: Output,
}

/// Checks the planner, and prints the results.
pub(super) fn run_model(args: ModelArgs) -> Result<(), Failure> {
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
