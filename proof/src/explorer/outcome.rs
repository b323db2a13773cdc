//! What came of a schedule that was played.

use std::any::Any;
use std::time::Duration;

use explore::plans::Undisturbed;
use stowage_world::effects::{Call, Fault, GatewayCalls, Line, StowageFault};
use stowage_world::history::{Facts, History};

use crate::oracles::{Promise, Violation};

/// What came of a schedule.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Effects before faults could happen.
    pub before: u64,
    /// Effects until it had come to its end.
    pub until: u64,
    /// Effects until it was at rest; those that are later show that it is.
    pub rested: u64,
    /// Everything that happened.
    pub history: History,
    /// How all stood in the end.
    pub end: Facts,
    /// Faults of the plan that met a call.
    pub faults: Vec<Fault>,
    /// What the gateways called, where their calls are numbered.
    pub gateway: GatewayCalls,
    /// Promises that were broken.
    pub violations: Vec<Violation>,
    /// What looks like a broken promise and is one of the limits that the contract states (spec
    /// §3.2).
    pub limits: Vec<Violation>,
    /// Virtual time from the start of the world to its rest.
    pub took: Duration,
    /// Whether it came to what the user wanted, rather than to what others' hands may make of it.
    pub reached: bool,
}

impl Outcome {
    /// Whether the plan could have met a call of this number.
    pub fn could_meet(&self, number: u64) -> bool {
        number > self.before && number <= self.until
    }

    /// The run as one in which nothing went wrong, to read plans off.
    pub(super) fn undisturbed(&self) -> Undisturbed<'_, StowageFault> {
        Undisturbed { lines: self.history.trace.lines(), before: self.before, until: self.until }
    }

    /// The calls until it was at rest.
    pub fn lines(&self) -> &[Line] {
        let lines = self.history.trace.lines();
        lines.get(..usize::try_from(self.rested).unwrap_or(lines.len())).unwrap_or(lines)
    }

    /// The calls that the plan could have met, with their numbers: those from when faults could
    /// begin to the end.
    pub fn calls(&self) -> impl Iterator<Item = (u64, &Call)> {
        let lines = self.history.trace.lines().iter();
        lines.filter(|line| self.could_meet(line.number)).map(|line| (line.number, &line.call))
    }

    /// What comes of a run that ends in a panic.
    pub(super) fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        let message = format!("a panic: {}", text.unwrap_or("without words"));
        Self {
            before: 0,
            until: 0,
            rested: 0,
            history: History::default(),
            end: Facts::default(),
            faults: Vec::new(),
            gateway: GatewayCalls::default(),
            violations: vec![Violation { promise: Promise::L1, message, event: None }],
            limits: Vec::new(),
            took: Duration::ZERO,
            reached: false,
        }
    }
}
