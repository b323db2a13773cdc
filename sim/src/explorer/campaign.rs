//! A campaign: many schedules on several threads, and what came of them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::effects::Plan;

use super::plans::{Singles, singles};
use super::report::{Failure, Report, ScenarioReport, Slow};
use super::run::{Outcome, run};
use super::scenario::Scenario;
use super::schedule::Schedule;
use super::shrink::shrink;
use super::{corpus, quick};

/// What is to be explored.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The scenarios, in the order in which they are explored.
    pub scenarios: Vec<&'static Scenario>,
    /// How much.
    pub profile: Profile,
    /// What everything that is drawn is drawn from.
    pub seed: u64,
    /// Schedules that run at once, each on a thread of its own; at least 1.
    pub jobs: usize,
    /// No schedule is begun after this.
    pub time_limit: Option<Duration>,
    /// Which part of the schedules is run.
    pub shard: Shard,
    /// Whether to stop at the first failure.
    pub fail_fast: bool,
    /// Whether to keep the trace hash of each schedule.
    pub hashes: bool,
}

/// How much is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Every fault in every phase once, in under a minute.
    Quick,
    /// Every single fault and crash at every effect of every scenario.
    Default,
    /// Pairs of them as well.
    Deep,
}

/// One of so many equal parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Shard {
    /// Which, counted from 0.
    pub index: usize,
    /// Of how many.
    pub of: usize,
}

impl Shard {
    /// All there is.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    fn has(self, number: usize) -> bool {
        number % self.of == self.index
    }
}

impl fmt::Display for Shard {
    /// `0/4`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

impl FromStr for Shard {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = || {
            let (index, of) = text.split_once('/')?;
            Some(Self { index: index.parse().ok()?, of: of.parse().ok()? })
        };
        read().filter(|shard| shard.index < shard.of).ok_or("expected I/N with I from 0 to N-1, such as 0/4")
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

impl TryFrom<String> for Shard {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// How far a campaign is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Schedules that are done.
    pub done: usize,
    /// Schedules that there are.
    pub total: usize,
    /// Failures so far.
    pub failures: usize,
    /// Pairs of fault and phase that were met so far.
    pub cells: usize,
    /// Pairs of fault and phase that there are.
    pub cells_total: usize,
}

/// Something to run.
struct Task {
    schedule: Schedule,
    crash: bool,
}

/// What came of a task.
struct Done {
    task: usize,
    outcome: Outcome,
    took: Duration,
}

/// Runs a campaign; tells of its progress on the caller's thread.
pub fn explore(campaign: &Campaign, mut progress: impl FnMut(Progress)) -> Report {
    let start = Instant::now();
    let mut report = Report::new(campaign);
    let tasks = plan(campaign, &mut report);
    let mine: Vec<&Task> =
        tasks.iter().enumerate().filter(|(n, _)| campaign.shard.has(*n)).map(|(_, task)| task).collect();
    let deadline = campaign.time_limit.map(|limit| start + limit);
    let cells_total = report.cells_expected().len();
    let mut done = 0;
    report.complete = at_once(campaign.jobs, &mine, deadline, |result| {
        let Done { task, outcome, took } = result;
        done += 1;
        let (place, task) = (task, mine[task]);
        if campaign.hashes {
            report.hashes.insert(place, format!("{} {}", outcome.hash, task.schedule));
        }
        note(&mut report, task, &outcome, took);
        if let Some(violation) = outcome.violations.first() {
            report.failures.push(Failure::of(&task.schedule, violation));
        }
        let (failures, cells) = (report.failures.len(), report.cells().len());
        progress(Progress { done, total: mine.len(), failures, cells, cells_total });
        !(campaign.fail_fast && !report.failures.is_empty())
    });
    for failure in report.failures.iter_mut().take(MOST_SHRUNK) {
        failure.shrunk = shrink(&failure.line);
    }
    report.seconds = start.elapsed().as_secs_f64();
    report
}

/// Failures that are shrunk; the others are most likely the same.
const MOST_SHRUNK: usize = 10;

/// What there is to run: the corpus, then every scenario undisturbed, then the plans of the profile.
fn plan(campaign: &Campaign, report: &mut Report) -> Vec<Task> {
    let undisturbed = undisturbed(campaign);
    let known =
        corpus::schedules().into_iter().filter(|it| campaign.scenarios.iter().any(|s| s.name == it.scenario.name));
    let mut tasks: Vec<Task> = known.map(|schedule| Task { schedule, crash: false }).collect();
    for (scenario, outcome) in campaign.scenarios.iter().copied().zip(&undisturbed) {
        let schedule = |plan| Schedule { scenario, seed: campaign.seed, plan };
        tasks.push(Task { schedule: schedule(Plan::default()), crash: false });
        let Singles { plans, crashes_expected, limits, .. } = singles(outcome);
        let plans = if campaign.profile == Profile::Quick { quick::choose(plans, campaign.seed) } else { plans };
        let row = ScenarioReport::new(scenario, outcome, crashes_expected, limits);
        report.scenarios.insert(scenario.name.to_owned(), row);
        tasks.extend(plans.into_iter().map(|plan| Task { crash: is_crash(&plan), schedule: schedule(plan) }));
    }
    tasks
}

fn is_crash(plan: &Plan) -> bool {
    matches!(plan.entries.as_slice(), [entry] if matches!(entry.fault, crate::effects::Fault::Crash(_)))
}

/// Every scenario without faults.
fn undisturbed(campaign: &Campaign) -> Vec<Outcome> {
    let schedule = |scenario| Schedule { scenario, seed: campaign.seed, plan: Plan::default() };
    let tasks: Vec<Task> =
        campaign.scenarios.iter().map(|scenario| Task { schedule: schedule(scenario), crash: false }).collect();
    let tasks: Vec<&Task> = tasks.iter().collect();
    let mut outcomes = BTreeMap::new();
    at_once(campaign.jobs, &tasks, None, |done| {
        outcomes.insert(done.task, done.outcome);
        true
    });
    outcomes.into_values().collect()
}

/// Runs tasks on so many threads, in their order; hands each result to `receive` until that says no. `false` if not
/// all were run.
fn at_once(jobs: usize, tasks: &[&Task], deadline: Option<Instant>, mut receive: impl FnMut(Done) -> bool) -> bool {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, results) = mpsc::channel();
    let mut received = 0;
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            let (sender, next, stop) = (sender.clone(), &next, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) && deadline.is_none_or(|deadline| Instant::now() < deadline) {
                    let task = next.fetch_add(1, Ordering::Relaxed);
                    let Some(found) = tasks.get(task) else { return };
                    let start = Instant::now();
                    let outcome = run(&found.schedule);
                    if sender.send(Done { task, outcome, took: start.elapsed() }).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for done in results {
            received += 1;
            if !receive(done) {
                stop.store(true, Ordering::Relaxed);
            }
        }
    });
    received == tasks.len()
}

fn note(report: &mut Report, task: &Task, outcome: &Outcome, took: Duration) {
    let name = task.schedule.scenario.name;
    report.note(name, outcome);
    let Some(row) = report.scenarios.get_mut(name) else { return };
    row.crash_points += usize::from(task.crash);
    let line = || task.schedule.to_string();
    Slow::keep(&mut row.slowest, took, line);
    Slow::keep(&mut row.longest, outcome.took, line);
}
