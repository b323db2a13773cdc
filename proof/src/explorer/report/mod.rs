//! What a campaign found: plain data that is written down, read again, merged and shown.
//!
//! - [`Conclusion`]: what it comes to in a word, the same in all that follow;
//! - [`document`]: the report as one JSON document, and read back from it;
//! - [`merge`]: the documents of all shards of a campaign as one;
//! - [`text`] for people at a terminal, [`html`] for people with a browser, [`junit`] for machines
//!   that collect tests.

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

/// What a campaign found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CampaignReport {
    /// Schedules that ran.
    pub schedules: u64,
    /// Real time that it took; of several shards, that of the one that took longest.
    pub seconds: f64,
    /// Schedules that ran at once; of several shards, of all of them.
    pub jobs: usize,
    /// Real time that its jobs took, in sum.
    pub job_seconds: f64,
    /// The processor, as it calls itself.
    pub cpu: String,
    /// How much was explored.
    pub profile: Profile,
    /// What everything that was drawn was drawn from.
    pub seed: u64,
    /// What operator and simulator were built of, as a number: that of other sources is another.
    pub build: String,
    /// Which part of the campaign it was.
    pub shard: Shard,
    /// Whether all was run that was to be.
    pub complete: bool,
    /// Schedules that all shards share among them, as far as they were counted.
    pub numbered: usize,
    /// Each scenario by its name.
    #[serde(with = "document::scenarios")]
    pub scenarios: BTreeMap<String, ScenarioCoverage>,
    /// In how many schedules each promise was judged, by its name.
    pub judged: BTreeMap<String, u64>,
    /// In how many schedules a promise, by its name, ended at one of the limits that the contract
    /// states (spec §3.2).
    pub limited: BTreeMap<String, u64>,
    /// Reasons that a claim's `Ready` had.
    pub reasons: BTreeSet<String>,
    /// Schedules that broke a promise.
    pub failures: Vec<Failure>,
    /// Hash and line of each schedule, by its place in the campaign; kept only where the campaign
    /// asks for it.
    #[serde(skip)]
    pub hashes: BTreeMap<usize, String>,
}

/// What was explored of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioCoverage {
    /// What it is about.
    pub about: String,
    /// The phase of a claim's life that faults meet.
    pub phase: ScenarioPhase,
    /// Hash of its run without faults.
    pub hash: String,
    /// Schedules that ran.
    pub schedules: u64,
    /// Effects that faults could meet.
    pub effects: usize,
    /// Crashes that were tried, and met their calls.
    pub crash_points: usize,
    /// Crashes that there are: three for each effect.
    pub crash_points_expected: usize,
    /// Pairs of effect and fault that were left out because the contract can't promise anything
    /// (spec §3.2).
    pub limits: usize,
    /// Single faults, each planned for one call, that met none: it was not where the run without
    /// faults had it.
    pub unmet: usize,
    /// How often each fault, by its name, met a call.
    pub faults: BTreeMap<String, u64>,
    /// The schedule that took most real time.
    pub slowest: Option<Slow>,
    /// The schedule that took most virtual time.
    pub longest: Option<Slow>,
}

/// A schedule, and how long it took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slow {
    /// The line that replays it.
    pub line: String,
    /// How long.
    pub seconds: f64,
}

/// A schedule that broke a promise.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Failure {
    /// The line that replays it.
    pub line: String,
    /// Name of the promise.
    pub promise: String,
    /// What was seen.
    pub message: String,
    /// A smaller schedule that breaks the same promise.
    pub shrunk: Option<String>,
}

impl CampaignReport {
    /// The report of a campaign that is about to begin.
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

    /// Schedules that one job played in a second, in the mean: shards that ran one after the other,
    /// or on machines of different speeds, have one too.
    pub fn rate(&self) -> f64 {
        if self.job_seconds > 0.0 { self.schedules as f64 / self.job_seconds } else { 0.0 }
    }

    /// How often a fault, by its name, met a call in a phase.
    pub fn cells(&self) -> BTreeMap<(&str, ScenarioPhase), u64> {
        let mut cells = BTreeMap::new();
        for row in self.scenarios.values() {
            for (fault, count) in &row.faults {
                *cells.entry((fault.as_str(), row.phase)).or_default() += count;
            }
        }
        cells
    }

    /// The cells that there are: faults that exist, in phases that were explored and that have
    /// calls for them.
    pub fn cells_expected(&self) -> BTreeSet<(&'static str, ScenarioPhase)> {
        let phases: BTreeSet<ScenarioPhase> = self.scenarios.values().map(|row| row.phase).collect();
        let faults: BTreeSet<&str> = Fault::all_single().iter().map(|fault| fault.kind()).collect();
        let all = faults.iter().flat_map(|fault| phases.iter().map(|phase| (*fault, *phase)));
        all.filter(|(fault, phase)| why_never(fault, *phase).is_none()).collect()
    }

    /// How many of the cells that there are were met, and how many there are. A second fault may
    /// bring a call to a phase that has none by itself; what meets that is of no cell that there
    /// is.
    pub fn coverage(&self) -> (usize, usize) {
        let (met, expected) = (self.cells(), self.cells_expected());
        (expected.iter().filter(|cell| met.contains_key(cell)).count(), expected.len())
    }

    /// Notes what a schedule showed.
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
    /// Keeps the longer one of what is there and this.
    pub(super) fn keep(kept: &mut Option<Self>, took: Duration, line: impl FnOnce() -> String) {
        let seconds = took.as_secs_f64();
        if kept.as_ref().is_none_or(|kept| kept.seconds < seconds) {
            *kept = Some(Self { line: line(), seconds });
        }
    }
}

impl Failure {
    /// The command that plays it again, for a shell.
    pub fn command(&self) -> String {
        replay(&self.line)
    }

    /// The command that plays the smaller schedule again, where there is one.
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

/// No line has a quote in it.
fn replay(line: &str) -> String {
    format!("stowage-proof replay '{line}'")
}

/// The processor, as the kernel calls it.
fn cpu() -> String {
    let known = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = known.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}
