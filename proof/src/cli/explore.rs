//! The `stowage-proof explore` command.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use anstream::AutoStream;
use clap::Args;
use clap::builder::BoolishValueParser;
use serde_json::json;
use terminal::Interrupt;
use terminal::numbers::{seconds, within};
use terminal::{Failure, Output, Printing, print_json, printed};

use super::progress::Progress;
use super::report::{prepare, publish, verdict};
use crate::explorer::{Campaign, CampaignReport, Detail, Order, Profile, Scenario, Shard, explore, scenarios};

pub(super) const EXAMPLES: &str = "\
Examples:
  stowage-proof explore
  stowage-proof explore create rotate --profile quick
  stowage-proof explore --profile deep --time-limit 3600 --report out
  stowage-proof explore --profile deep --shard 0/8 -o json > shard-0.json
  stowage-proof explore --list

With -o json: {schedules, seconds, jobs, complete, cells: {covered, total}, failures: [{line, promise, message}],
scenarios: [{name, schedules, effects, crash_points, crash_points_expected}], gaps: [TEXT]}, and more beside
these; gaps are what has to be met and was not.

Exit codes: 0 every promise was kept by what was run, also where --time-limit cut that short; 1 one was
broken, or all was run and something that has to be met was not (a fault in a phase, a crash point, the
call of a single fault, a reason of Ready), or no schedule was run within --time-limit, or the report can't be written; 2 wrong
usage; 130 SIGINT or SIGTERM cut it short, and no promise was broken by what was run.";

/// Arguments of `stowage-proof explore`.
#[derive(Debug, Args)]
pub(super) struct ExploreArgs {
    /// Scenarios to play; all if none is named. See --list.
    #[arg(value_name = "SCENARIO", value_parser = scenario)]
    scenarios: Vec<&'static Scenario>,
    /// Extent of the exploration.
    #[arg(long, env = "STOWAGE_PROFILE", value_name = "PROFILE", default_value = "default")]
    profile: Profile,
    /// Seed of every random choice, from 0 to 18446744073709551615.
    #[arg(long, env = "STOWAGE_SEED", value_name = "N", default_value_t = 1, value_parser = |text: &str| within(text, 0..=u64::MAX))]
    seed: u64,
    /// Number of schedules to run at once, at least 1. Defaults to the number of processors.
    #[arg(long, env = "STOWAGE_JOBS", value_name = "N", value_parser = |text: &str| within(text, 1..=u16::MAX))]
    jobs: Option<u16>,
    /// Start no schedule after this many seconds. No limit by default.
    #[arg(long, env = "STOWAGE_TIME_LIMIT", value_name = "SECONDS", value_parser = seconds)]
    time_limit: Option<u64>,
    /// Run one of N equal parts, counted from 0, to use several machines. See `stowage-proof
    /// merge`.
    #[arg(long, env = "STOWAGE_SHARD", value_name = "I/N", default_value_t = Shard::WHOLE)]
    shard: Shard,
    /// Number of additional random plans of three faults, over all scenarios together. Defaults to
    /// 100 per scenario in the default profile and 5000 per scenario in the deep one.
    #[arg(long, env = "STOWAGE_RANDOM", value_name = "N", value_parser = |text: &str| within(text, 0..=usize::MAX))]
    random: Option<usize>,
    /// Stop at the first broken promise.
    #[arg(long, env = "STOWAGE_FAIL_FAST", value_parser = BoolishValueParser::new())]
    fail_fast: bool,
    /// Run the single faults of all scenarios in a random order drawn from the seed, so that a bug
    /// which breaks a promise in many places is found early. Only with --profile default: deep
    /// builds pairs on the single faults, and quick selects few of them.
    #[arg(long, env = "STOWAGE_SHUFFLE", value_parser = BoolishValueParser::new())]
    shuffle: bool,
    /// Write index.html, junit.xml and report.json into this directory. It is created if needed.
    #[arg(long, env = "STOWAGE_REPORT", value_name = "DIR")]
    report: Option<PathBuf>,
    /// Print `HASH SCENARIO SEED PLAN` for each schedule instead of the report. Two processes must
    /// print the same lines. With `behaviour`, texts of conditions and Events are not part of the
    /// hash, and scenarios are numbered instead of named, so that two versions can be compared.
    #[arg(
        long,
        env = "STOWAGE_HASHES",
        value_name = "WHAT",
        num_args = 0..=1,
        require_equals = true,
        default_value = "none",
        default_missing_value = "all",
        hide_default_value = true
    )]
    hashes: Hashes,
    /// List the scenarios with their descriptions, and explore nothing.
    #[arg(long, env = "STOWAGE_LIST", value_parser = BoolishValueParser::new())]
    list: bool,
    #[command(flatten)]
    printing: Printing,
}

/// Output of `--hashes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Hashes {
    /// No hashes; print the report.
    #[value(aliases = ["off", "no", "false", "0"])]
    None,
    /// Hashes of everything.
    #[value(aliases = ["on", "yes", "true", "1"])]
    All,
    /// Hashes of everything except texts for people and names of scenarios.
    Behaviour,
}

impl Hashes {
    fn detail(self) -> Option<Detail> {
        match self {
            Self::None => None,
            Self::All => Some(Detail::All),
            Self::Behaviour => Some(Detail::Behaviour),
        }
    }
}

fn scenario(name: &str) -> Result<&'static Scenario, String> {
    scenarios::named(name)
        .ok_or_else(|| format!("there is no such scenario; there are: {}", scenarios::names().join(", ")))
}

/// Explores, and prints the results.
pub(super) fn run_explore(args: ExploreArgs) -> Result<(), Failure> {
    let scenarios = if args.scenarios.is_empty() { scenarios::ALL.to_vec() } else { once_each(args.scenarios) };
    // Checked here, because clap also counts a flag that the environment turns off as given.
    if args.hashes != Hashes::None && (args.list || args.report.is_some() || args.printing.output == Output::Json) {
        return Err(Failure::Usage("--hashes prints nothing else: not with --list, --report or -o json".to_owned()));
    }
    if args.list {
        return Ok(list(&scenarios, args.printing)?);
    }
    if args.shuffle && args.profile != Profile::Default {
        return Err(Failure::Usage("--shuffle is for --profile default alone".to_owned()));
    }
    prepare(args.report.as_deref())?;
    let campaign = Campaign {
        scenarios,
        profile: args.profile,
        seed: args.seed,
        jobs: args.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, Into::into), usize::from),
        time_limit: args.time_limit.map(Duration::from_secs),
        shard: args.shard,
        fail_fast: args.fail_fast,
        order: if args.shuffle { Order::Shuffled } else { Order::Listed },
        random: args.random,
        hashes: args.hashes.detail(),
    };
    let (mut progress, interrupt) = (Progress::begin(), Interrupt::listen());
    let report = explore(&campaign, |now| {
        progress.tell(now);
        if interrupt.asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    progress.end();
    let ended = match args.hashes {
        Hashes::None => publish(&report, args.report.as_deref(), args.printing),
        Hashes::All | Hashes::Behaviour => print_hashes(&report).and_then(|()| verdict(&report)),
    };
    let interrupted = interrupt.asked() && !report.complete;
    match ended {
        // After an interrupt, it is no error that no schedule was run.
        Err(why) if !interrupted || report.schedules > 0 => Err(why.into()),
        _ if interrupted => Err(Failure::Interrupted(format!("interrupted after {} schedules", report.schedules))),
        _ => Ok(()),
    }
}

/// Removes repeated scenarios and keeps the order.
fn once_each(mut scenarios: Vec<&'static Scenario>) -> Vec<&'static Scenario> {
    let mut seen = BTreeSet::new();
    scenarios.retain(|scenario| seen.insert(scenario.name));
    scenarios
}

fn print_hashes(report: &CampaignReport) -> Result<(), String> {
    let mut out = io::stdout().lock();
    printed(report.hashes.values().try_for_each(|line| writeln!(out, "{line}")))
}

fn list(scenarios: &[&Scenario], printing: Printing) -> Result<(), String> {
    let document = |it: &&Scenario| json!({"name": it.name, "phase": it.phase, "about": it.about});
    if printing.output == Output::Json {
        return print_json(&json!({"scenarios": scenarios.iter().map(document).collect::<Vec<_>>()}));
    }
    let mut out = AutoStream::new(io::stdout(), printing.color.into());
    let width = scenarios.iter().map(|it| it.name.len()).max().unwrap_or_default();
    printed(scenarios.iter().try_for_each(|it| writeln!(out, "{:width$}  {:8}  {}", it.name, it.phase, it.about)))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use k8s_openapi::api::batch::v1::Job;
    use rstest::rstest;

    use super::super::{Cli, Command};
    use super::*;

    fn parse(arguments: &[&str]) -> Result<ExploreArgs, String> {
        match Cli::try_parse_from([&["stowage-proof", "explore"][..], arguments].concat()) {
            Ok(Cli { command: Command::Explore(args) }) => Ok(args),
            Ok(other) => panic!("it is another command: {other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn everything_has_a_default() {
        let args = parse(&[]).expect("it is good usage");
        assert_eq!((args.profile, args.seed, args.shard), (Profile::Default, 1, Shard::WHOLE));
        assert!(args.scenarios.is_empty() && args.jobs.is_none() && args.report.is_none());
    }

    #[test]
    fn scenarios_are_named_one_by_one() {
        let args = parse(&["create", "rotate", "--shard", "3/8", "--jobs", "2"]).expect("it is good usage");
        assert_eq!(args.scenarios.iter().map(|it| it.name).collect::<Vec<_>>(), ["create", "rotate"]);
        assert_eq!((args.shard, args.jobs), (Shard { index: 3, of: 8 }, Some(2)));
    }

    #[test]
    fn a_scenario_that_is_named_twice_is_explored_once() {
        let args = parse(&["rotate", "create", "rotate"]).expect("it is good usage");
        let names: Vec<&str> = once_each(args.scenarios).iter().map(|it| it.name).collect();
        assert_eq!(names, ["rotate", "create"]);
    }

    #[rstest]
    #[case(&["creat"], "there are: create, ")]
    #[case(&["--shard", "4/4"], "expected I/N with I from 0 to N-1 and N up to 65535, such as 0/4")]
    #[case(&["--shard", "0/65536"], "N up to 65535")]
    #[case(&["--profile", "deepest"], "possible values: quick, singles, default, deep")]
    #[case(&["--jobs", "0"], "expected a number from 1 to 65535")]
    #[case(&["--seed", "abc"], "expected a number from 0 to 18446744073709551615")]
    #[case(&["--time-limit", "soon"], "expected whole seconds, at least 1")]
    #[case(&["--time-limit", "0"], "expected whole seconds, at least 1")]
    fn wrong_values_are_refused_with_what_was_expected(#[case] arguments: &[&str], #[case] problem: &str) {
        let error = parse(arguments).expect_err("it is wrong usage");
        assert!(error.contains(problem), "{error}");
    }

    #[test]
    fn the_pods_of_the_job_share_a_run_among_them() {
        let job: Job =
            serde_saphyr::from_str(include_str!("../../../docs/guide/explore-job.yaml")).expect("it is a Job");
        let spec = job.spec.expect("it has a spec");
        let container = &spec.template.spec.expect("it has pods").containers[0];
        let written = container.args.clone().expect("it has arguments");
        assert_eq!(spec.completion_mode.as_deref(), Some("Indexed"));
        let pods = spec.completions.expect("it says how many");
        for index in 0..pods {
            let filled: Vec<String> =
                written.iter().map(|it| it.replace("$(JOB_COMPLETION_INDEX)", &index.to_string())).collect();
            let filled: Vec<&str> = filled.iter().map(String::as_str).collect();
            let args = parse(&filled[1..]).expect("it is good usage");
            assert_eq!(args.shard.to_string(), format!("{index}/{pods}"));
            assert_eq!((args.profile, args.printing.output), (Profile::Deep, Output::Json));
        }
        assert_eq!(container.command.as_deref(), Some(&["/stowage-proof".to_owned()][..]));
        assert_eq!(written[0], "explore");
    }
}
