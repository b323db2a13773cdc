//! Oracles: invariants of a controller that every run is judged by.

use faults::Call;

use crate::world::SimulatedWorld;

/// A promise of the controller, judged from its calls and from the final state.
///
/// An oracle knows nothing of the controller's code. Each run has a new one.
pub trait Oracle: Send {
    /// Returns the name of the promise in reports.
    fn name(&self) -> &'static str;

    /// Observes each call after the service has carried it out or refused it, for invariants that
    /// must hold at every moment.
    fn see(&mut self, _seen: &Seen<'_>) {}

    /// Judges the final state, when nothing changes any more and faults are over; returns one
    /// sentence per violation.
    fn judge(&mut self, end: &SimulatedWorld) -> Vec<String>;
}

/// A call of the process that reached its service.
#[derive(Debug)]
pub struct Seen<'a> {
    /// The number of the call in the run.
    pub number: u64,
    /// The call.
    pub call: &'a Call,
    /// The HTTP status of the service's answer.
    pub status: u16,
    /// The state of the world after the call.
    pub world: &'a SimulatedWorld,
}
