//! `stowage-sim explore` and `stowage-sim replay`.

use std::io::{self, Write};
use std::time::Duration;

use clap::Args;

use crate::explorer::{Campaign, Profile, Report, Schedule, Shard, explore, run, scenarios};

/// What to explore.
#[derive(Debug, Args)]
pub(super) struct ExploreArgs {
    /// The scenarios to play; all of them if none is named.
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<String>,
    /// How much to explore.
    #[arg(long, env = "STOWAGE_PROFILE", value_name = "PROFILE", default_value = "default")]
    profile: Profile,
    /// What everything that is drawn is drawn from.
    #[arg(long, env = "STOWAGE_SEED", value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Schedules to run at once; as many as there are processors if not given.
    #[arg(long, env = "STOWAGE_JOBS", value_name = "N")]
    jobs: Option<usize>,
    /// Begin no schedule after so many seconds.
    #[arg(long, env = "STOWAGE_TIME_LIMIT", value_name = "SECONDS")]
    time_limit: Option<u64>,
    /// Run one of N equal parts, counted from 0: for several machines.
    #[arg(long, env = "STOWAGE_SHARD", value_name = "I/N", value_parser = shard)]
    shard: Option<Shard>,
    /// Stop at the first broken promise.
    #[arg(long, env = "STOWAGE_FAIL_FAST")]
    fail_fast: bool,
}

/// What to play again.
#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    /// The line that a failure printed: 'SCENARIO SEED PLAN'.
    #[arg(value_name = "SCHEDULE", value_parser = |text: &str| text.parse::<Schedule>())]
    schedule: Schedule,
}

fn shard(text: &str) -> Result<Shard, String> {
    let read = || {
        let (index, of) = text.split_once('/')?;
        Some(Shard { index: index.parse().ok()?, of: of.parse().ok()? })
    };
    read()
        .filter(|shard| shard.index < shard.of)
        .ok_or_else(|| "expected I/N with I from 0 to N-1, such as 0/4".to_owned())
}

/// Explores, and prints what was found.
pub(super) fn explore_command(args: ExploreArgs) -> Result<(), String> {
    let mut chosen = Vec::new();
    for name in &args.scenarios {
        let known = || format!("there is no scenario `{name}`; there are: {}", scenarios::names().join(", "));
        chosen.push(scenarios::named(name).ok_or_else(known)?);
    }
    if chosen.is_empty() {
        chosen.extend(scenarios::ALL);
    }
    let campaign = Campaign {
        scenarios: chosen,
        profile: args.profile,
        seed: args.seed,
        jobs: args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into)),
        time_limit: args.time_limit.map(Duration::from_secs),
        shard: args.shard.unwrap_or(Shard::WHOLE),
        fail_fast: args.fail_fast,
    };
    let report = explore(&campaign, |_| {});
    let _ = print(&report);
    match report.failures.len() {
        0 => Ok(()),
        many => Err(format!("{many} schedules broke a promise")),
    }
}

fn print(report: &Report) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for (name, row) in &report.scenarios {
        writeln!(
            out,
            "{name:16} {:6} schedules over {:3} effects, {:4} of {:4} crash points, {} honest limits",
            row.schedules, row.effects, row.crash_points, row.crash_points_expected, row.limits
        )?;
    }
    writeln!(
        out,
        "{} schedules in {:.1} s: {:.0}/s with {} jobs",
        report.schedules,
        report.seconds,
        report.rate(),
        report.jobs
    )?;
    for failure in &report.failures {
        writeln!(out, "stowage-sim replay '{}' -- {}: {}", failure.line, failure.promise, failure.message)?;
        if let Some(shrunk) = &failure.shrunk {
            writeln!(out, "  shrunk: stowage-sim replay '{shrunk}'")?;
        }
    }
    Ok(())
}

/// Plays one schedule, and prints what happened.
pub(super) fn replay_command(args: ReplayArgs) -> Result<(), String> {
    let outcome = run(&args.schedule);
    let _ = writeln!(io::stdout(), "{}", outcome.history.trace);
    match outcome.violations.first() {
        None => Ok(()),
        Some(violation) => Err(format!("{}: {}: {}", violation.promise, violation.promise.words(), violation.message)),
    }
}
