//! The readable form of a run: the actions of all actors side by side, with the faults and the
//! violations.
//!
//! It is plain data, in the order of events. `words` describes changes, [`text`] prints the
//! timeline in columns. No secret key is ever included.

mod build;
mod columns;
mod moments;
mod row;
#[cfg(test)]
pub(super) mod samples;
pub mod text;
mod words;

use serde::Serialize;

use super::outcome::Outcome;
use super::schedule::Schedule;
use super::transcript::Detail;

pub use moments::clock;
pub(super) use moments::since_start;
pub use row::{Row, Weight};

/// The readable form of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timeline {
    /// The line that replays it.
    pub line: String,
    /// Faults of the plan that met no call, such as `#99 hang`.
    pub unmet: Vec<String>,
    /// Violations of promises.
    pub violations: Vec<Broken>,
    /// Virtual time of the run, in seconds.
    pub took: f64,
    /// Hash of the run.
    pub trace_hash: String,
    /// All events of the run.
    pub events: Vec<Row>,
}

/// A violation of a promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// The name of the promise.
    pub promise: &'static str,
    /// The text of the promise.
    pub words: &'static str,
    /// A description of the violation.
    pub message: String,
    /// Index of the event that shows it; `None` if only the end does.
    pub event: Option<usize>,
}

impl Timeline {
    /// Creates the timeline of a run.
    pub fn of(schedule: &Schedule, outcome: &Outcome) -> Self {
        Self::by_line(schedule.to_string(), unmet(schedule, outcome), outcome)
    }

    /// Creates the timeline of a run that this line replays, and in which these faults met no call.
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

    /// Returns the violations that an event shows.
    pub fn broken_at(&self, event: usize) -> impl Iterator<Item = &Broken> {
        self.violations.iter().filter(move |broken| broken.event == Some(event))
    }
}

/// Returns the faults that met no call, with those of the gateways' calls after a bar.
fn unmet(schedule: &Schedule, outcome: &Outcome) -> Vec<String> {
    let by_operator = outcome.history.trace.unmet(&schedule.plan);
    let by_gateways = outcome.gateway.trace.unmet(&schedule.gateway);
    let by_gateways = by_gateways.entries.iter().map(|entry| format!("| {entry}"));
    by_operator.entries.iter().map(ToString::to_string).chain(by_gateways).collect()
}
