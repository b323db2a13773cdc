//! Whether this process may change anything, in the cluster or at a store. Every write asks, right
//! before it is sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::Uptime;

/// What a process may change.
#[derive(Clone, Debug)]
pub enum Mandate {
    /// Whatever it decides on.
    Always,
    /// Nothing (`--read-only`).
    ReadOnly,
    /// Whatever it decides on, while it leads (`--leader-elect`).
    Leading(Tenure),
}

/// Why nothing may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoMandate {
    /// Never.
    #[error("this operator changes nothing (--read-only)")]
    ReadOnly,
    /// Another operator may lead by now.
    #[error("this operator no longer leads (--leader-elect)")]
    NotLeading,
}

impl Mandate {
    /// Lets one change begin.
    ///
    /// # Errors
    /// When none may.
    pub fn permit(&self) -> Result<Permit, NoMandate> {
        match self {
            Self::Always => Ok(Permit(None)),
            Self::ReadOnly => Err(NoMandate::ReadOnly),
            Self::Leading(tenure) => tenure.permit(),
        }
    }
}

/// A change that may be under way. Whoever has its answer, or has waited for as long as a call may
/// take, says so by [`Permit::over`]; of one that is dropped before, nobody knows when it is over.
#[derive(Debug)]
#[must_use]
pub struct Permit(Option<Tenure>);

impl Permit {
    /// The change has happened or not: it is no longer under way.
    pub fn over(self) {
        if let Some(Tenure(tenure)) = self.0 {
            tenure.over.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The time for which a process leads, as far as it is confirmed. Clones are the same tenure.
#[derive(Clone, Debug)]
pub struct Tenure(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    uptime: Uptime,
    /// Until when it is confirmed, by that clock.
    until: Mutex<Duration>,
    /// Changes that were begun, and those of them that are over.
    begun: AtomicU64,
    over: AtomicU64,
}

impl Tenure {
    /// One that is confirmed until this moment.
    pub fn until(moment: Duration, uptime: Uptime) -> Self {
        Self(Arc::new(Inner { uptime, until: Mutex::new(moment), begun: AtomicU64::new(0), over: AtomicU64::new(0) }))
    }

    /// Goes on until this moment.
    pub fn extend(&self, moment: Duration) {
        *self.0.until.lock() = moment;
    }

    /// Whether every change that was begun is over.
    pub fn is_settled(&self) -> bool {
        self.0.begun.load(Ordering::Relaxed) == self.0.over.load(Ordering::Relaxed)
    }

    fn permit(&self) -> Result<Permit, NoMandate> {
        if self.0.uptime.now() >= *self.0.until.lock() {
            return Err(NoMandate::NotLeading);
        }
        self.0.begun.fetch_add(1, Ordering::Relaxed);
        Ok(Permit(Some(self.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uptime(now: &Arc<Mutex<Duration>>) -> Uptime {
        let now = now.clone();
        Uptime::new(move || *now.lock())
    }

    // covers: 3.6.elect.fence
    #[test]
    fn a_leader_changes_nothing_after_its_time() {
        let now = Arc::new(Mutex::new(Duration::from_secs(5)));
        let tenure = Tenure::until(Duration::from_secs(10), uptime(&now));
        let mandate = Mandate::Leading(tenure.clone());
        assert!(mandate.permit().is_ok());
        *now.lock() = Duration::from_secs(10);
        assert_eq!(mandate.permit().map(|_| ()), Err(NoMandate::NotLeading));
        tenure.extend(Duration::from_secs(11));
        assert!(mandate.permit().is_ok());
    }

    // covers: 3.6.elect.release
    #[test]
    fn a_change_that_nobody_saw_the_end_of_is_under_way() {
        let tenure = Tenure::until(Duration::from_secs(10), uptime(&Arc::default()));
        let mandate = Mandate::Leading(tenure.clone());
        mandate.permit().expect("it leads").over();
        assert!(tenure.is_settled());
        drop(mandate.permit().expect("it leads"));
        assert!(!tenure.is_settled());
    }

    #[test]
    fn who_may_change_nothing_is_told_so() {
        assert_eq!(Mandate::ReadOnly.permit().map(|_| ()), Err(NoMandate::ReadOnly));
        assert!(Mandate::Always.permit().is_ok());
    }
}
