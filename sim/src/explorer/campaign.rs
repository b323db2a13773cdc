//! A campaign: many schedules on several threads, and what came of them.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::effects::{Fault, Plan};

use super::corpus;
use super::plans::{Singles, lasting, pairs, preemptions, singles, triples};
use super::quick::Quick;
use super::report::{Failure, Report, ScenarioReport, Slow};
use super::run::Outcome;
use super::scenario::Scenario;
use super::schedule::Schedule;
use super::shrink::shrink;
use super::workers::{Done, at_once};

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
    /// In which order single faults come.
    pub order: Order,
    /// How many random plans of three faults to run; as many as the profile says if absent.
    pub random: Option<usize>,
    /// Whether to keep the trace hash of each schedule.
    pub hashes: bool,
}

/// In which order the single faults of several scenarios come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One scenario after the other, one fault after the other.
    Listed,
    /// Drawn from the seed: whatever breaks a promise in many places is met soon.
    Shuffled,
}

/// How much is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Every fault in every phase once, in under a minute.
    Quick,
    /// Every single fault and crash at every effect of every scenario, faults that last, calls that are overtaken, some
    /// random triples.
    Default,
    /// Pairs as well, but for those that are independent, and many random triples.
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

/// Seeds of a scenario that are tried where they decide the order of a user's acts.
const ORDERS: u64 = 24;
/// Random triples that are made at a time: it bounds what is kept.
const CHUNK: usize = 10_000;
/// Of the pairs that are left out as independent, every so many-th is run nevertheless.
const SAMPLED: usize = 50;
/// Failures that are shrunk; the others are most likely the same.
const MOST_SHRUNK: usize = 10;

/// Runs a campaign; tells of its progress on the caller's thread.
pub fn explore(campaign: &Campaign, progress: impl FnMut(Progress)) -> Report {
    let start = Instant::now();
    let report = Report::new(campaign);
    let deadline = campaign.time_limit.map(|limit| start + limit);
    let mut work = Work {
        campaign,
        report,
        deadline,
        progress,
        planned: 0,
        done: 0,
        numbered: 0,
        quick: Quick::new(campaign.seed),
    };
    work.report.complete = work.all();
    work.report.numbered = work.numbered;
    let mut report = work.report;
    for failure in report.failures.iter_mut().take(MOST_SHRUNK) {
        failure.shrunk = shrink(&failure.line);
    }
    report.seconds = start.elapsed().as_secs_f64();
    report
}

/// A campaign under way.
struct Work<'a, P> {
    campaign: &'a Campaign,
    report: Report,
    deadline: Option<Instant>,
    progress: P,
    /// Schedules that this shard has to run, as far as they are known.
    planned: usize,
    /// Schedules that ran.
    done: usize,
    /// Schedules that all shards share, as far as they are known.
    numbered: usize,
    quick: Quick,
}

impl<P: FnMut(Progress)> Work<'_, P> {
    /// Everything, in order: the corpus, each scenario, random plans. `false` if something was left out.
    fn all(&mut self) -> bool {
        let undisturbed = self.undisturbed();
        if undisturbed.len() < self.campaign.scenarios.len() {
            return false;
        }
        for (scenario, outcome) in self.campaign.scenarios.iter().copied().zip(&undisturbed) {
            let Singles { crashes_expected, limits, .. } = singles(outcome);
            let row = ScenarioReport::new(scenario, outcome, crashes_expected, limits);
            self.report.scenarios.insert(scenario.name.to_owned(), row);
        }
        let chosen = |schedule: &Schedule| self.campaign.scenarios.iter().any(|s| s.name == schedule.scenario.name);
        let corpus: Vec<Schedule> = corpus::schedules().into_iter().filter(chosen).collect();
        self.run_mine(corpus, |_, _| {})
            && (self.campaign.order == Order::Listed || self.singles_shuffled(&undisturbed))
            && self
                .campaign
                .scenarios
                .iter()
                .copied()
                .zip(&undisturbed)
                .all(|(scenario, outcome)| self.scenario(scenario, outcome))
            && self.random(&undisturbed)
    }

    /// Every scenario without faults, then the single faults of all of them, in an order that is drawn.
    fn singles_shuffled(&mut self, undisturbed: &[Outcome]) -> bool {
        let of_all = || self.campaign.scenarios.iter().copied().zip(undisturbed);
        let first: Vec<Schedule> = of_all().map(|(scenario, _)| self.schedule(scenario, Plan::default())).collect();
        let single = |(scenario, outcome)| {
            let plans = singles(outcome).plans.into_iter().chain(lasting(outcome));
            plans.map(|plan| self.schedule(scenario, plan)).collect::<Vec<_>>()
        };
        let mut rest: Vec<Schedule> = of_all().flat_map(single).collect();
        fastrand::Rng::with_seed(self.campaign.seed).shuffle(&mut rest);
        self.run_mine(first.into_iter().chain(rest).collect(), |_, _| {})
    }

    /// Every scenario without faults; fewer if the time is over.
    fn undisturbed(&self) -> Vec<Outcome> {
        let all: Vec<Schedule> =
            self.campaign.scenarios.iter().map(|scenario| self.schedule(scenario, Plan::default())).collect();
        let mut outcomes = std::collections::BTreeMap::new();
        at_once(self.campaign.jobs, &all, self.deadline, |done| {
            outcomes.insert(done.index, done.outcome);
            true
        });
        outcomes.into_values().collect()
    }

    /// What the profile wants of one scenario.
    fn scenario(&mut self, scenario: &'static Scenario, undisturbed: &Outcome) -> bool {
        let mut plans = vec![Plan::default()];
        let singles = singles(undisturbed).plans;
        match self.campaign.profile {
            Profile::Quick => plans.extend(self.quick.choose(singles, scenario.phase)),
            Profile::Default | Profile::Deep => {
                if self.campaign.order == Order::Listed {
                    plans.extend(singles);
                    plans.extend(lasting(undisturbed));
                }
                plans.extend(preemptions(undisturbed));
            }
        }
        let mut schedules: Vec<Schedule> = plans.into_iter().map(|plan| self.schedule(scenario, plan)).collect();
        if scenario.has_orders() && self.campaign.profile != Profile::Quick {
            let seeds = (1..=ORDERS).map(|more| self.campaign.seed.wrapping_add(more));
            schedules.extend(seeds.map(|seed| Schedule { scenario, seed, plan: Plan::default() }));
        }
        let deep = self.campaign.profile == Profile::Deep;
        let end = deep.then(|| crate::oracles::canonical(&undisturbed.end));
        let mut seconds: Vec<Plan> = Vec::new();
        let complete = self.run_mine(schedules, |schedule, outcome| {
            if let (Some(end), [_]) = (&end, schedule.plan.entries.as_slice()) {
                let alike = outcome.reached && end.difference(&crate::oracles::canonical(&outcome.end)).is_none();
                let (kept, left_out) = pairs(undisturbed, &schedule.plan, outcome, alike);
                seconds.extend(kept);
                seconds.extend(left_out.into_iter().step_by(SAMPLED));
            }
        });
        // The firsts were this shard's own, so their seconds are.
        let seconds = seconds.into_iter().map(|plan| self.schedule(scenario, plan)).collect();
        complete && self.run_all(seconds, |_, _| {})
    }

    /// Random triples, in chunks, of all scenarios in turn.
    fn random(&mut self, undisturbed: &[Outcome]) -> bool {
        let each = match self.campaign.profile {
            Profile::Quick => 0,
            Profile::Default => 100,
            Profile::Deep => 5_000,
        };
        let mut left = self.campaign.random.unwrap_or(each * undisturbed.len());
        let mut random = fastrand::Rng::with_seed(self.campaign.seed);
        while left > 0 {
            let chunk = left.min(CHUNK);
            let share = chunk.div_ceil(undisturbed.len());
            let mut schedules = Vec::new();
            for (scenario, outcome) in self.campaign.scenarios.iter().copied().zip(undisturbed) {
                let plans = triples(outcome, &mut random, share);
                schedules.extend(plans.into_iter().map(|plan| self.schedule(scenario, plan)));
            }
            schedules.truncate(chunk);
            if !self.run_mine(schedules, |_, _| {}) {
                return false;
            }
            left -= chunk;
        }
        true
    }

    fn schedule(&self, scenario: &'static Scenario, plan: Plan) -> Schedule {
        Schedule { scenario, seed: self.campaign.seed, plan }
    }

    /// Runs this shard's part of schedules that all shards know.
    fn run_mine(&mut self, schedules: Vec<Schedule>, see: impl FnMut(&Schedule, &Outcome)) -> bool {
        let from = self.numbered;
        self.numbered += schedules.len();
        let mine = schedules.into_iter().enumerate().filter(|(index, _)| self.campaign.shard.has(from + index));
        let mine = mine.map(|(_, schedule)| schedule).collect();
        self.run_all(mine, see)
    }

    /// Runs schedules, and takes down what comes of them. `false` if not all were run.
    fn run_all(&mut self, schedules: Vec<Schedule>, mut see: impl FnMut(&Schedule, &Outcome)) -> bool {
        let first = self.planned;
        self.planned += schedules.len();
        let (jobs, deadline) = (self.campaign.jobs, self.deadline);
        at_once(jobs, &schedules, deadline, |done| {
            if let Some(schedule) = schedules.get(done.index) {
                see(schedule, &done.outcome);
                self.take_down(first + done.index, schedule, &done);
            }
            !self.campaign.fail_fast || self.report.failures.is_empty()
        })
    }

    fn take_down(&mut self, place: usize, schedule: &Schedule, done: &Done) {
        self.done += 1;
        let (report, name) = (&mut self.report, schedule.scenario.name);
        if self.campaign.hashes {
            report.hashes.insert(place, format!("{} {schedule}", done.outcome.hash));
        }
        report.note(name, &done.outcome);
        if let Some(row) = report.scenarios.get_mut(name) {
            row.crash_points += usize::from(is_crash(&schedule.plan));
            Slow::keep(&mut row.slowest, done.took, || schedule.to_string());
            Slow::keep(&mut row.longest, done.outcome.took, || schedule.to_string());
        }
        if let Some(violation) = done.outcome.violations.first() {
            report.failures.push(Failure::of(schedule, violation));
        }
        let (failures, cells, cells_total) =
            (report.failures.len(), report.cells().len(), report.cells_expected().len());
        (self.progress)(Progress { done: self.done, total: self.planned, failures, cells, cells_total });
    }
}

/// Whether it is one of the crash points that are counted: one crash at one effect.
fn is_crash(plan: &Plan) -> bool {
    matches!(plan.entries.as_slice(), [entry] if matches!(entry.fault, Fault::Crash(_)) && is_numbered(entry))
}

fn is_numbered(entry: &crate::effects::Entry) -> bool {
    matches!(entry.effect, crate::effects::EffectPattern::Number(_))
}
