//! Oracles: what must hold, whatever goes wrong.

use faults::Call;

use crate::world::SimulatedWorld;

/// A promise of the controller, judged from what it does and from how all stands in the end.
///
/// An oracle knows nothing of the controller's code. It is made anew for each run.
pub trait Oracle: Send {
    /// What the promise is called in a report.
    fn name(&self) -> &'static str;

    /// Is told of each call once it is carried out or refused by the service: for what must hold at
    /// every moment.
    fn see(&mut self, _seen: &Seen<'_>) {}

    /// Judges how all stands when nothing happens any more: what is broken, a sentence each. Faults
    /// are over by then.
    fn judge(&mut self, end: &SimulatedWorld) -> Vec<String>;
}

/// A call of the process that has reached its service.
#[derive(Debug)]
pub struct Seen<'a> {
    /// Its number in the run.
    pub number: u64,
    /// What it is.
    pub call: &'a Call,
    /// The status of the service's answer.
    pub status: u16,
    /// How all stands after it.
    pub world: &'a SimulatedWorld,
}
