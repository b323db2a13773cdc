//! Faults that last: from the call that they are planned for on, they meet every call that they
//! concern.

use tokio::time::Instant;

use super::call::Call;
use super::fault::Fault;
use super::row::{Lasts, Vocabulary};

/// A fault that lasts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lasting<V> {
    fault: Fault<V>,
    /// Its end; `None` for the end of the run.
    until: Option<Instant>,
}

impl<V: Vocabulary> Lasting<V> {
    /// What begins with this fault, if it is one that meets later calls.
    pub(super) fn of(fault: Fault<V>) -> Option<Self> {
        match fault.lasts() {
            Lasts::For(time) => Some(Self { fault, until: Some(Instant::now() + time) }),
            Lasts::ToTheEnd => Some(Self { fault, until: None }),
            Lasts::ItsCall | Lasts::Beyond | Lasts::WholeRun => None,
        }
    }

    /// The fault, if it meets this call now.
    pub(super) fn met_by(&self, call: &Call) -> Option<Fault<V>> {
        let lasts = self.until.is_none_or(|until| Instant::now() < until);
        Some(self.fault).filter(|fault| lasts && fault.concerns(call))
    }
}
