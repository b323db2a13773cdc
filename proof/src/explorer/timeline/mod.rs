//! A run as people read it: who did what when, side by side, with the faults and the broken
//! promises where they show.
//!
//! Plain data, in the order of events. `words` says what changed, [`text`] prints it in columns;
//! never a secret key.

mod build;
mod columns;
#[cfg(test)]
pub(super) mod samples;
pub mod text;
mod words;

use serde::Serialize;

use super::run::Outcome;
use super::schedule::Schedule;
use super::transcript::Detail;

pub(super) use build::since_start;

/// A run as people read it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timeline {
    /// The line that replays it.
    pub line: String,
    /// The faults of its plan that met no call: `#99 hang`.
    pub unmet: Vec<String>,
    /// The promises that were broken.
    pub violations: Vec<Broken>,
    /// Virtual time that it took, in seconds.
    pub took: f64,
    /// Hash of the run.
    pub trace_hash: String,
    /// Everything that happened.
    pub events: Vec<Row>,
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// Its name.
    pub promise: &'static str,
    /// What it says.
    pub words: &'static str,
    /// What was seen.
    pub message: String,
    /// Index of the event at which it shows; `None` for what only the end shows.
    pub event: Option<usize>,
}

/// Something that happened: in the columns of those who had a part in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Virtual milliseconds since the start of the run.
    pub at_ms: i64,
    /// How much it tells.
    pub weight: Weight,
    /// Number of the operator's call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<u64>,
    /// The life of the operator that made the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub life: Option<u32>,
    /// The fault that the plan gave the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// What users do.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// What the operator asks for, and what it hears if that isn't what was answered.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub operator: String,
    /// What the Kubernetes API answers, and what changes there.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kubernetes: String,
    /// What the store answers, and what changes there.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub store: String,
    /// What the gateway answers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub gateway: String,
    /// What tenants do.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tenant: String,
}

/// How much a row tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// Lists, watches and Events: folded unless all is asked for.
    Routine,
    /// A tenant's use of a key: folded with the same use before.
    Use,
    /// Something that is always shown.
    #[default]
    Told,
    /// A new part of the run begins.
    Part,
}

impl Timeline {
    /// The timeline of a run.
    pub fn of(schedule: &Schedule, outcome: &Outcome) -> Self {
        Self::by_line(schedule.to_string(), unmet(schedule, outcome), outcome)
    }

    /// The timeline of a run that this line replays, and in which these faults met no call.
    pub(super) fn by_line(line: String, unmet: Vec<String>, outcome: &Outcome) -> Self {
        let (events, places) = build::rows(&outcome.history);
        let violations = outcome.violations.iter().map(|violation| Broken {
            promise: violation.promise.name(),
            words: violation.promise.words(),
            message: violation.message.clone(),
            event: violation.event.and_then(|event| places.get(event).copied()),
        });
        Self {
            line,
            unmet,
            violations: violations.collect(),
            took: outcome.took.as_secs_f64(),
            trace_hash: outcome.hash(Detail::All),
            events,
        }
    }

    /// The promises that show broken at an event.
    pub fn broken_at(&self, event: usize) -> impl Iterator<Item = &Broken> {
        self.violations.iter().filter(move |broken| broken.event == Some(event))
    }
}

/// The faults that met no call, those of the gateways' calls behind a bar.
fn unmet(schedule: &Schedule, outcome: &Outcome) -> Vec<String> {
    let by_operator = outcome.history.trace.unmet(&schedule.plan);
    let by_gateways = outcome.gateway.trace.unmet(&schedule.gateway);
    let by_gateways = by_gateways.entries.iter().map(|entry| format!("| {entry}"));
    by_operator.entries.iter().map(ToString::to_string).chain(by_gateways).collect()
}

impl Row {
    /// The columns in the order in which they are shown.
    pub const COLUMNS: [&'static str; 6] = ["user", "operator", "Kubernetes", "store", "gateway", "tenant"];

    /// What stands in each column.
    pub fn cells(&self) -> [&str; 6] {
        [&self.user, &self.operator, &self.kubernetes, &self.store, &self.gateway, &self.tenant]
    }

    /// Whether it may be left out where people look at what matters.
    pub fn is_routine(&self) -> bool {
        self.weight == Weight::Routine && self.fault.is_none()
    }

    /// Whether it is the same use of a key as another.
    pub fn repeats(&self, other: &Self) -> bool {
        self.weight == Weight::Use
            && other.weight == Weight::Use
            && (&self.tenant, &self.gateway) == (&other.tenant, &other.gateway)
    }
}
