//! The count of the claims that are bound on a backend: when it is taken again.

use std::time::Duration;

use crate::api::{BucketClaimStatus, Phase};

use super::uptime::Uptime;

/// Claims come in bursts. The count follows the first change of one at this distance.
const COUNT_INTERVAL: Duration = Duration::from_secs(2);

/// The claims on a backend, as last counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BucketCount {
    /// How many were bound.
    pub(super) claims: i64,
    /// When to count again, once something may have changed since.
    due: Option<Uptime>,
    /// The status has shown it since the last probe.
    is_told: bool,
}

impl BucketCount {
    /// A count that was just taken.
    pub(super) fn taken(claims: i64, is_told: bool) -> Self {
        Self { claims, due: None, is_told }
    }

    /// Whether a count of so many is no news: the one before came to the same, and was told.
    pub(super) fn is_told(&self, claims: i64) -> bool {
        self.is_told && self.claims == claims
    }

    /// The same, which the next count tells again.
    pub(super) fn told_again(self) -> Self {
        Self { is_told: false, ..self }
    }

    /// What a pass that does not count makes of it. A claim may have changed, so it is to be taken
    /// again: at a distance, so that a burst of claims makes one.
    pub(super) fn scheduled(&self, now: Uptime) -> Self {
        Self { due: self.due.or(Some(now + COUNT_INTERVAL)), ..self.clone() }
    }

    /// How long until the count is to be taken again; `None` = now.
    pub(super) fn wait(&self, now: Uptime) -> Option<Duration> {
        let wait = self.scheduled(now).due.map(|due| now.until(due));
        wait.filter(|wait| !wait.is_zero())
    }
}

/// Whether a claim of this status counts as a bucket on the backend.
pub fn is_bound_on(status: &BucketClaimStatus, backend: &str) -> bool {
    status.phase == Some(Phase::Bound) && status.backend.as_ref().is_some_and(|on| on.name == backend)
}
