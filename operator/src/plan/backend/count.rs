//! Count of the claims that are bound on a backend, and its schedule.

use std::time::Duration;

use crate::api::{BucketClaimStatus, Phase};

use super::uptime::Uptime;

/// Delay of a count after the first change of a claim, because claims come in bursts.
const COUNT_INTERVAL: Duration = Duration::from_secs(2);

/// Last count of the claims on a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BucketCount {
    /// Number of bound claims.
    pub(super) claims: i64,
    /// Time of the next count, once something may have changed.
    due: Option<Uptime>,
    /// True if the status has shown this count since the last probe.
    is_told: bool,
}

impl BucketCount {
    /// Creates a count that was just taken.
    pub(super) fn taken(claims: i64, is_told: bool) -> Self {
        Self { claims, due: None, is_told }
    }

    /// Returns true if this number equals the previous count, and that was reported.
    pub(super) fn is_told(&self, claims: i64) -> bool {
        self.is_told && self.claims == claims
    }

    /// Marks the count as not reported, so that the next one is reported again.
    pub(super) fn told_again(self) -> Self {
        Self { is_told: false, ..self }
    }

    /// Schedules another count for a pass that does not count, because a claim may have changed.
    /// The delay combines a burst of claims into one count.
    pub(super) fn scheduled(&self, now: Uptime) -> Self {
        Self { due: self.due.or(Some(now + COUNT_INTERVAL)), ..self.clone() }
    }

    /// Returns the time until the next count, or `None` for now.
    pub(super) fn wait(&self, now: Uptime) -> Option<Duration> {
        let wait = self.scheduled(now).due.map(|due| now.until(due));
        wait.filter(|wait| !wait.is_zero())
    }
}

/// Returns true if a claim with this status counts as a bucket on the backend.
pub fn is_bound_on(status: &BucketClaimStatus, backend: &str) -> bool {
    status.phase == Some(Phase::Bound) && status.backend.as_ref().is_some_and(|on| on.name == backend)
}
