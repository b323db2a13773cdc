//! The [`Outcome`] of one run of a scenario with a plan of faults.

use std::any::Any;
use std::time::Duration;

use explore::plans::Undisturbed;
use stowage_world::effects::{Call, Fault, GatewayCalls, Line, StowageFault};
use stowage_world::history::{Facts, History};

use crate::oracles::{Promise, Violation};

/// The outcome of a schedule: a scenario, a seed and a plan of faults.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Number of calls when the plan began to apply. Earlier ones set up the world.
    pub before: u64,
    /// Number of calls when the run reached an end that its scenario allows. The plan does not
    /// apply to later ones.
    pub until: u64,
    /// Number of effects when the run was at rest; later ones show that it is.
    pub rested: u64,
    /// All events of the run.
    pub history: History,
    /// The final state.
    pub end: Facts,
    /// Faults of the plan that met a call.
    pub faults: Vec<Fault>,
    /// Calls of the gateways. Empty in worlds that don't number them.
    pub gateway: GatewayCalls,
    /// Violations of promises.
    pub violations: Vec<Violation>,
    /// Violations that are excused by a documented limit of the contract (spec §3.2).
    pub limits: Vec<Violation>,
    /// Virtual time from the start of the world to its rest.
    pub took: Duration,
    /// True if the run reached what the user wanted, rather than an end that other actors' changes
    /// may lead to.
    pub reached: bool,
}

impl Outcome {
    /// Returns true if the plan could have had a fault at the call of this number.
    pub fn could_meet(&self, number: u64) -> bool {
        number > self.before && number <= self.until
    }

    /// Returns the calls to derive plans from. The run must have been one without faults.
    pub(super) fn undisturbed(&self) -> Undisturbed<'_, StowageFault> {
        Undisturbed { lines: self.history.trace.lines(), before: self.before, until: self.until }
    }

    /// Returns the calls until the run was at rest.
    pub fn lines(&self) -> &[Line] {
        let lines = self.history.trace.lines();
        lines.get(..usize::try_from(self.rested).unwrap_or(lines.len())).unwrap_or(lines)
    }

    /// Returns the calls that the plan could have had a fault at, with their numbers.
    pub fn calls(&self) -> impl Iterator<Item = (u64, &Call)> {
        let lines = self.history.trace.lines().iter();
        lines.filter(|line| self.could_meet(line.number)).map(|line| (line.number, &line.call))
    }

    /// Returns the outcome of a run that ended in a panic.
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
