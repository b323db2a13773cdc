//! A run as people read it: who did what when, side by side, with the faults and the broken
//! promises where they show.
//!
//! Plain data, in the order of events. `words` says what changed, [`text`] prints it in columns;
//! never a secret key.

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
