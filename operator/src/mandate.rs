//! Permission of this process to change anything in the cluster or at a store, checked right before
//! each write is sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::Uptime;

/// The changes that a process may make.
#[derive(Clone, Debug)]
pub enum Mandate {
    /// Any change.
    Always,
    /// No change (`--read-only`).
    ReadOnly,
    /// Any change while this process leads (`--leader-elect`).
    Leading(Tenure),
}

/// The reason why a change is not permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoMandate {
    /// Changes are never permitted.
    #[error("this operator changes nothing (--read-only)")]
    ReadOnly,
    /// Another operator may be the leader by now.
    #[error("this operator no longer leads (--leader-elect)")]
    NotLeading,
}

impl Mandate {
    /// Permits one change.
    ///
    /// # Errors
    /// If changes are not permitted now.
    pub fn permit(&self) -> Result<Permit, NoMandate> {
        match self {
            Self::Always => Ok(Permit(None)),
            Self::ReadOnly => Err(NoMandate::ReadOnly),
            Self::Leading(tenure) => tenure.permit(),
        }
    }
}

/// A change that may be in progress.
///
/// Call [`Permit::over`] once the call has an answer or its deadline has passed. If a permit is
/// dropped without that, the end of its change is unknown.
#[derive(Debug)]
#[must_use]
pub struct Permit(Option<Tenure>);

impl Permit {
    /// Records that the change is no longer in progress, whether it took effect or not.
    pub fn over(self) {
        if let Some(Tenure(tenure)) = self.0 {
            tenure.over.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The confirmed time as leader. Clones share their state.
#[derive(Clone, Debug)]
pub struct Tenure(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    uptime: Uptime,
    /// End of the confirmed time, by that clock.
    until: Mutex<Duration>,
    /// Number of changes begun, and of those that are over.
    begun: AtomicU64,
    over: AtomicU64,
}

impl Tenure {
    /// Creates a tenure that is confirmed until this moment.
    pub fn until(moment: Duration, uptime: Uptime) -> Self {
        Self(Arc::new(Inner { uptime, until: Mutex::new(moment), begun: AtomicU64::new(0), over: AtomicU64::new(0) }))
    }

    /// Extends the tenure until this moment.
    pub fn extend(&self, moment: Duration) {
        *self.0.until.lock() = moment;
    }

    /// Returns true if every change that was begun is over.
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
