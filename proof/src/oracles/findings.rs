//! Findings of the oracles.

use std::fmt;

use super::Promise;
use super::state::HistoryStep;

/// A violation of a promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The promise.
    pub promise: Promise,
    /// A description in one sentence with names and times; never contains a secret key.
    pub message: String,
    /// Index of the event in the history that shows it; `None` if only the end does.
    pub event: Option<usize>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.message)
    }
}

/// The judgement of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Violations, in the order of promises, and for each in the order of events.
    pub violations: Vec<Violation>,
    /// Violations excused by a limit that the contract states (spec §3.2): they are counted, but
    /// don't fail a run.
    pub limits: Vec<Violation>,
}

/// Findings during the judgement.
#[derive(Debug, Default)]
pub(super) struct Findings {
    violations: Vec<Violation>,
    limits: Vec<Violation>,
}

impl Findings {
    /// Adds a violation at this step.
    pub(super) fn broken(&mut self, promise: Promise, step: &HistoryStep<'_>, message: String) {
        self.violations.push(Violation {
            promise,
            message: format!("at {}, {message}", step.at),
            event: Some(step.index),
        });
    }

    /// Adds this violation.
    pub(super) fn add(&mut self, violation: Violation) {
        self.violations.push(violation);
    }

    /// Adds a violation that the end shows.
    pub(super) fn broken_in_the_end(&mut self, promise: Promise, message: String) {
        self.violations.push(Violation { promise, message: format!("in the end, {message}"), event: None });
    }

    /// Adds a limit of a promise that the end shows.
    pub(super) fn limit_in_the_end(&mut self, promise: Promise, message: String) {
        self.limits.push(Violation { promise, message: format!("in the end, {message}"), event: None });
    }

    /// Adds a limit of a promise at this step.
    pub(super) fn limit(&mut self, promise: Promise, step: &HistoryStep<'_>, message: String) {
        self.limits.push(Violation { promise, message: format!("at {}, {message}", step.at), event: Some(step.index) });
    }

    /// Returns all findings, in the order of promises and events.
    pub(super) fn judgement(mut self) -> Judgement {
        let order = |found: &Violation| (found.promise, found.event.unwrap_or(usize::MAX));
        self.violations.sort_by_key(order);
        self.limits.sort_by_key(order);
        Judgement { violations: self.violations, limits: self.limits }
    }
}
