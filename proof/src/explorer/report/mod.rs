//! The report of a campaign: plain data that is written, read, merged and displayed.
//!
//! - [`Conclusion`]: the overall result, the same in all the following forms;
//! - [`document`]: the report as one JSON document, and its parser;
//! - [`merge`]: merges the documents of all shards of a campaign;
//! - [`text`] for people at a terminal, [`html`] for people with a browser, [`junit`] for machines
//!   that collect test results.

mod conclusion;
pub mod document;
mod drawings;
pub mod html;
pub mod junit;
mod keychart;
pub mod merge;
mod promises;
#[cfg(test)]
mod samples;
pub mod text;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub use conclusion::Conclusion;
pub use drawings::Drawings;
use explore::Shard;
pub use keychart::KeyChart;
use serde::{Deserialize, Serialize};
use stowage_world::effects::Fault;
pub use verdict::{Broken, Verdict};

use super::campaign::scope::{Campaign, Profile};
use super::cells::why_never;
use super::outcome::Outcome;
use super::scenario::{Scenario, ScenarioPhase};
use super::schedule::Schedule;
use super::transcript::Detail;

/// The report of a campaign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CampaignReport {
    /// Number of schedules that ran.
    pub schedules: u64,
    /// Real time in seconds; for several shards, that of the slowest.
    pub seconds: f64,
    /// Number of schedules that ran at once; for several shards, the sum.
    pub jobs: usize,
    /// Sum of the real time of all jobs, in seconds.
    pub job_seconds: f64,
    /// The model name of the processor.
    pub cpu: String,
    /// The extent of the exploration.
    pub profile: Profile,
    /// The seed of all random numbers.
    pub seed: u64,
    /// Hash of the sources of operator and simulator.
    pub build: String,
    /// The part of the campaign that was run.
    pub shard: Shard,
    /// True if all planned schedules were run.
    pub complete: bool,
    /// Number of schedules of all shards together, as far as they were counted.
    pub numbered: usize,
    /// Coverage of each scenario, by name.
    #[serde(with = "document::scenarios")]
    pub scenarios: BTreeMap<String, ScenarioCoverage>,
    /// Number of schedules in which each promise was judged, by name.
    pub judged: BTreeMap<String, u64>,
    /// Number of schedules in which a promise, by name, ended at a limit that the contract states
    /// (spec §3.2).
    pub limited: BTreeMap<String, u64>,
    /// Reasons of a claim's `Ready` that occurred.
    pub reasons: BTreeSet<String>,
    /// Schedules that broke a promise.
    pub failures: Vec<Failure>,
    /// Hash and line of each schedule, by its place in the campaign; kept only if the campaign asks
    /// for it.
    #[serde(skip)]
    pub hashes: BTreeMap<usize, String>,
}

/// The coverage of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioCoverage {
    /// The one-line summary of the scenario.
    pub about: String,
    /// The phase of a claim's life that faults meet.
    pub phase: ScenarioPhase,
    /// Hash of the fault-free run.
    pub hash: String,
    /// Number of schedules that ran.
    pub schedules: u64,
    /// Number of calls that faults could meet.
    pub effects: usize,
    /// Number of crashes that were tried and met their calls.
    pub crash_points: usize,
    /// Number of possible crashes: three for each call.
    pub crash_points_expected: usize,
    /// Number of pairs of call and fault that were left out because the contract can't promise
    /// anything for them (spec §3.2).
    pub limits: usize,
    /// Number of single faults, each planned for one call, that met none: the call was not where it
    /// is in the fault-free run.
    pub unmet: usize,
    /// Number of times that each fault, by name, met a call.
    pub faults: BTreeMap<String, u64>,
    /// The schedule that took the most real time.
    pub slowest: Option<Slow>,
    /// The schedule that took the most virtual time.
    pub longest: Option<Slow>,
}

/// A schedule and its duration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slow {
    /// The line that replays it.
    pub line: String,
    /// The duration in seconds.
    pub seconds: f64,
}

/// A schedule that broke a promise.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Failure {
    /// The line that replays it.
    pub line: String,
    /// Name of the promise.
    pub promise: String,
    /// A description of the violation.
    pub message: String,
    /// A smaller schedule that breaks the same promise, if one was found.
    pub shrunk: Option<String>,
}

impl CampaignReport {
    /// Creates the report of a campaign before its start.
    pub(super) fn new(campaign: &Campaign) -> Self {
        Self {
            schedules: 0,
            seconds: 0.0,
            jobs: campaign.jobs,
            job_seconds: 0.0,
            cpu: cpu(),
            profile: campaign.profile,
            seed: campaign.seed,
            build: env!("STOWAGE_SOURCES").to_owned(),
            shard: campaign.shard,
            complete: false,
            numbered: 0,
            scenarios: BTreeMap::new(),
            judged: BTreeMap::new(),
            limited: BTreeMap::new(),
            reasons: BTreeSet::new(),
            failures: Vec::new(),
            hashes: BTreeMap::new(),
        }
    }

    /// Returns the mean number of schedules per second and job. That is also meaningful for shards
    /// that ran one after the other, or on machines of different speed.
    pub fn rate(&self) -> f64 {
        if self.job_seconds > 0.0 { self.schedules as f64 / self.job_seconds } else { 0.0 }
    }

    /// Returns the number of times that a fault, by name, met a call in a phase.
    pub fn cells(&self) -> BTreeMap<(&str, ScenarioPhase), u64> {
        let mut cells = BTreeMap::new();
        for row in self.scenarios.values() {
            for (fault, count) in &row.faults {
                *cells.entry((fault.as_str(), row.phase)).or_default() += count;
            }
        }
        cells
    }

    /// Returns the expected cells: existing faults, in explored phases that have calls for them.
    pub fn cells_expected(&self) -> BTreeSet<(&'static str, ScenarioPhase)> {
        let phases: BTreeSet<ScenarioPhase> = self.scenarios.values().map(|row| row.phase).collect();
        let faults: BTreeSet<&str> = Fault::all_single().iter().map(|fault| fault.kind()).collect();
        let all = faults.iter().flat_map(|fault| phases.iter().map(|phase| (*fault, *phase)));
        all.filter(|(fault, phase)| why_never(fault, *phase).is_none()).collect()
    }

    /// Returns the number of expected cells that were met, and the number of all expected cells.
    ///
    /// A second fault may cause a call that the phase otherwise doesn't have; a fault that meets it
    /// counts for no expected cell.
    pub fn coverage(&self) -> (usize, usize) {
        let (met, expected) = (self.cells(), self.cells_expected());
        (expected.iter().filter(|cell| met.contains_key(cell)).count(), expected.len())
    }

    /// Records the verdict on a schedule.
    pub(super) fn note(&mut self, scenario: &str, verdict: &Verdict) {
        self.schedules += 1;
        self.reasons.extend(verdict.reasons.iter().cloned());
        for promise in &verdict.judged {
            *self.judged.entry(promise.clone()).or_default() += 1;
        }
        for promise in &verdict.limited {
            *self.limited.entry(promise.clone()).or_default() += 1;
        }
        let Some(row) = self.scenarios.get_mut(scenario) else { return };
        row.schedules += 1;
        for fault in &verdict.faults {
            *row.faults.entry(fault.clone()).or_default() += 1;
        }
    }
}

impl ScenarioCoverage {
    pub(super) fn new(scenario: &Scenario, undisturbed: &Outcome, crash_points_expected: usize, limits: usize) -> Self {
        Self {
            about: scenario.about.to_owned(),
            phase: scenario.phase,
            hash: undisturbed.hash(Detail::All),
            schedules: 0,
            effects: undisturbed.calls().count(),
            crash_points: 0,
            crash_points_expected,
            limits,
            unmet: 0,
            faults: BTreeMap::new(),
            slowest: None,
            longest: None,
        }
    }
}

impl Slow {
    /// Replaces the kept schedule if this one took longer.
    pub(super) fn keep(kept: &mut Option<Self>, took: Duration, line: impl FnOnce() -> String) {
        let seconds = took.as_secs_f64();
        if kept.as_ref().is_none_or(|kept| kept.seconds < seconds) {
            *kept = Some(Self { line: line(), seconds });
        }
    }
}

impl Failure {
    /// Returns the shell command that replays the schedule.
    pub fn command(&self) -> String {
        replay(&self.line)
    }

    /// Returns the shell command that replays the smaller schedule, if there is one.
    pub fn smaller_command(&self) -> Option<String> {
        self.shrunk.as_deref().map(replay)
    }

    pub(super) fn of(schedule: &Schedule, broken: &Broken) -> Self {
        Self {
            line: schedule.to_string(),
            promise: broken.promise.clone(),
            message: broken.message.clone(),
            shrunk: None,
        }
    }
}

/// Quotes the line for a shell; no line contains a quote.
fn replay(line: &str) -> String {
    format!("stowage-proof replay '{line}'")
}

/// Returns the model name of the processor, from the kernel.
fn cpu() -> String {
    let known = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = known.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}
