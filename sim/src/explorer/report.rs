//! What a campaign found: plain data that can be written down, read again, and merged.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::effects::Fault;
use crate::history::facts::condition;
use crate::history::{History, What};
use crate::oracles::Violation;

use super::campaign::{Campaign, Profile};
use super::run::Outcome;
use super::scenario::{Phase, Scenario};
use super::schedule::Schedule;

/// What a campaign found.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// How much was explored.
    pub profile: Profile,
    /// What everything that was drawn was drawn from.
    pub seed: u64,
    /// Schedules that ran at once.
    pub jobs: usize,
    /// Schedules that ran.
    pub schedules: u64,
    /// Real time that it took.
    pub seconds: f64,
    /// The processor, as it calls itself.
    pub cpu: String,
    /// Whether all was run that was to be.
    pub complete: bool,
    /// Each scenario by its name.
    pub scenarios: BTreeMap<String, ScenarioReport>,
    /// How often a fault, by its name, met a call in a phase.
    pub cells: BTreeMap<(String, Phase), u64>,
    /// Reasons that a claim's `Ready` had.
    pub reasons: BTreeSet<String>,
    /// Schedules that broke a promise.
    pub failures: Vec<Failure>,
}

/// What was explored of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioReport {
    /// What it is about.
    pub about: String,
    /// Schedules that ran.
    pub schedules: u64,
    /// Effects that faults could meet.
    pub effects: usize,
    /// Crashes that were tried.
    pub crash_points: usize,
    /// Crashes that there are: three for each effect.
    pub crash_points_expected: usize,
    /// Pairs of effect and fault that were left out because the contract can't promise anything (spec §3.2).
    pub limits: usize,
    /// The schedule that took most real time.
    pub slowest: Option<Slow>,
    /// The schedule that took most virtual time.
    pub longest: Option<Slow>,
}

/// A schedule, and how long it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Slow {
    /// The line that replays it.
    pub line: String,
    /// How long.
    pub seconds: f64,
}

/// A schedule that broke a promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The line that replays it.
    pub line: String,
    /// Name of the promise.
    pub promise: String,
    /// What was seen.
    pub message: String,
    /// A smaller schedule that breaks a promise too.
    pub shrunk: Option<String>,
}

impl Report {
    /// The report of a campaign that is about to begin.
    pub(super) fn new(campaign: &Campaign) -> Self {
        Self {
            profile: campaign.profile,
            seed: campaign.seed,
            jobs: campaign.jobs,
            schedules: 0,
            seconds: 0.0,
            cpu: cpu(),
            complete: false,
            scenarios: BTreeMap::new(),
            cells: BTreeMap::new(),
            reasons: BTreeSet::new(),
            failures: Vec::new(),
        }
    }

    /// Schedules in a second.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.schedules as f64 / self.seconds } else { 0.0 }
    }

    /// The cells that there are: faults that exist, in phases that were explored.
    pub fn cells_expected(&self) -> BTreeSet<(String, Phase)> {
        let phases: BTreeSet<Phase> = self.cells.keys().map(|(_, phase)| *phase).collect();
        let faults: BTreeSet<String> = Fault::all_single().iter().map(|fault| fault.name().to_owned()).collect();
        faults.iter().flat_map(|fault| phases.iter().map(|phase| (fault.clone(), *phase))).collect()
    }

    pub(super) fn note_reasons(&mut self, history: &History) {
        for event in &history.events {
            if let What::Stored(stored) = &event.what
                && stored.plural == "bucketclaims"
                && let Some(claim) = &stored.new
            {
                let reason = condition(claim, "Ready");
                if !self.reasons.contains(reason) {
                    self.reasons.insert(reason.to_owned());
                }
            }
        }
    }
}

impl ScenarioReport {
    pub(super) fn new(scenario: &Scenario, undisturbed: &Outcome, crash_points_expected: usize, limits: usize) -> Self {
        Self {
            about: scenario.about.to_owned(),
            schedules: 0,
            effects: undisturbed.calls().count(),
            crash_points: 0,
            crash_points_expected,
            limits,
            slowest: None,
            longest: None,
        }
    }
}

impl Slow {
    /// Keeps the longer one of what is there and this.
    pub(super) fn keep(kept: &mut Option<Self>, took: Duration, line: impl FnOnce() -> String) {
        let seconds = took.as_secs_f64();
        if kept.as_ref().is_none_or(|kept| kept.seconds < seconds) {
            *kept = Some(Self { line: line(), seconds });
        }
    }
}

impl Failure {
    pub(super) fn of(schedule: &Schedule, violation: &Violation) -> Self {
        Self {
            line: schedule.to_string(),
            promise: violation.promise.to_string(),
            message: violation.message.clone(),
            shrunk: None,
        }
    }
}

/// The processor, as the kernel calls it.
fn cpu() -> String {
    let known = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = known.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}
