//! What oracles find.

use std::fmt;

use super::Promise;
use super::state::HistoryStep;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which one.
    pub promise: Promise,
    /// What was seen, in one sentence with names and times; never a secret key.
    pub message: String,
    /// Index of the event in the history at which it shows; `None` for what only the end shows.
    pub event: Option<usize>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.message)
    }
}

/// What is to be said of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// The promises that were broken, in their order, and each in the order of events.
    pub violations: Vec<Violation>,
    /// Where a promise ended at one of the limits that the contract states (spec §3.2): no
    /// violations, but counted.
    pub limits: Vec<Violation>,
}

/// Findings on their way.
#[derive(Debug, Default)]
pub(super) struct Findings {
    violations: Vec<Violation>,
    limits: Vec<Violation>,
}

impl Findings {
    /// A promise is broken at this step.
    pub(super) fn broken(&mut self, promise: Promise, step: &HistoryStep<'_>, message: String) {
        self.violations.push(Violation {
            promise,
            message: format!("at {}, {message}", step.at),
            event: Some(step.index),
        });
    }

    /// A promise is broken as this says.
    pub(super) fn add(&mut self, violation: Violation) {
        self.violations.push(violation);
    }

    /// A promise is seen broken in the end.
    pub(super) fn broken_in_the_end(&mut self, promise: Promise, message: String) {
        self.violations.push(Violation { promise, message: format!("in the end, {message}"), event: None });
    }

    /// A promise is seen in the end to have ended, as the contract says it does.
    pub(super) fn limit_in_the_end(&mut self, promise: Promise, message: String) {
        self.limits.push(Violation { promise, message: format!("in the end, {message}"), event: None });
    }

    /// A promise ends here, as the contract says it does.
    pub(super) fn limit(&mut self, promise: Promise, step: &HistoryStep<'_>, message: String) {
        self.limits.push(Violation { promise, message: format!("at {}, {message}", step.at), event: Some(step.index) });
    }

    /// All of them, in the order of promises and events.
    pub(super) fn judgement(mut self) -> Judgement {
        let order = |found: &Violation| (found.promise, found.event.unwrap_or(usize::MAX));
        self.violations.sort_by_key(order);
        self.limits.sort_by_key(order);
        Judgement { violations: self.violations, limits: self.limits }
    }
}
