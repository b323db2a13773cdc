//! Lasting faults, which apply from the planned call on to every call that they affect.

use tokio::time::Instant;

use super::call::Call;
use super::fault::Fault;
use super::row::{Lasts, Vocabulary};

/// A lasting fault.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lasting<V> {
    fault: Fault<V>,
    /// Time at which the fault ends; `None` for the end of the run.
    until: Option<Instant>,
}

impl<V: Vocabulary> Lasting<V> {
    /// Starts this fault if it affects later calls.
    pub(super) fn of(fault: Fault<V>) -> Option<Self> {
        match fault.lasts() {
            Lasts::For(time) => Some(Self { fault, until: Some(Instant::now() + time) }),
            Lasts::ToTheEnd => Some(Self { fault, until: None }),
            Lasts::ItsCall | Lasts::Beyond | Lasts::WholeRun => None,
        }
    }

    /// Returns the fault if it affects this call now.
    pub(super) fn met_by(&self, call: &Call) -> Option<Fault<V>> {
        let lasts = self.until.is_none_or(|until| Instant::now() < until);
        Some(self.fault).filter(|fault| lasts && fault.concerns(call))
    }
}
