//! Verdict about a backend, and tolerance for failed probes (spec §1).

use std::time::Duration;

use crate::api::{BackendReason, ConditionType, InvalidSpec, S3BackendStatus};

use super::step::Probed;

/// Number of consecutive failed periodic probes that are tolerated for a Ready backend.
const TOLERATED_FAILURES: u32 = 2;

/// Maximum wait from a failed probe to the next, without jitter. It bounds how long a recovered
/// store goes unnoticed, and keeps two concurrent operators below twenty probes in half an hour.
const LONGEST_WAIT: Duration = Duration::from_secs(240);

/// Result of a look at a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Reason of the `Ready` condition. `EndpointReachable` is the one that makes it True.
    pub(super) reason: BackendReason,
    /// Message of the condition. Stable: without request ids or times.
    pub(super) message: String,
}

impl Verdict {
    /// Returns the verdict on an invalid spec, which another version of the CRD admitted.
    pub(super) fn on_invalid(spec: &InvalidSpec) -> Self {
        let template = spec.field == "spec.bucketNameTemplate";
        let reason = if template { BackendReason::TemplateInvalid } else { BackendReason::BackendError };
        Self { reason, message: spec.to_string() }
    }

    /// Returns the verdict on Secrets that no client can be created from.
    pub(super) fn on_secrets(why: &str) -> Self {
        Self { reason: BackendReason::CredentialsInvalid, message: why.to_owned() }
    }

    /// Returns the verdict on the answer to a probe.
    pub(super) fn on_probe(probed: &Probed) -> Self {
        let (reason, message) = match probed {
            Probed::Succeeded => (BackendReason::EndpointReachable, "ListBuckets with the admin credentials succeeds"),
            Probed::NoAnswer(why) => (BackendReason::EndpointUnreachable, why.as_str()),
            Probed::Denied(why) => (BackendReason::CredentialsInvalid, why.as_str()),
            Probed::Failed(why) => (BackendReason::BackendError, why.as_str()),
        };
        Self { reason, message: message.to_owned() }
    }

    /// Returns true if the backend can be used.
    pub(super) fn is_ready(&self) -> bool {
        self.reason == BackendReason::EndpointReachable
    }
}

/// State of a backend, with the number of consecutive failures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Health {
    /// Generation that was probed.
    pub(super) generation: i64,
    /// Verdict that counts.
    pub(super) verdict: Verdict,
    /// Number of consecutive failed probes.
    failures: u32,
}

impl Health {
    /// Derives the health from a status, when no memory exists. Returns `None` unless the status
    /// says that the backend is Ready in this generation.
    pub(super) fn from_status(status: &S3BackendStatus, generation: i64) -> Option<Self> {
        let ready = status.conditions.iter().find(|condition| condition.type_ == ConditionType::Ready.as_str())?;
        let holds = ready.status == "True" && ready.observed_generation == Some(generation);
        let verdict = Verdict { reason: BackendReason::EndpointReachable, message: ready.message.clone() };
        holds.then_some(Self { generation, verdict, failures: 0 })
    }

    /// Records a probe. `before` is the previous health of the same backend, if known. A single
    /// failed *periodic* probe does not make a Ready backend not Ready, but several in a row do.
    pub(super) fn after(before: Option<&Health>, generation: i64, periodic: bool, verdict: Verdict) -> Self {
        let before = before.filter(|health| health.generation == generation);
        let failures = if verdict.is_ready() { 0 } else { before.map_or(0, |health| health.failures) + 1 };
        let tolerated = before.filter(|health| periodic && health.verdict.is_ready() && failures <= TOLERATED_FAILURES);
        Self { generation, verdict: tolerated.map_or(verdict, |health| health.verdict.clone()), failures }
    }

    /// Returns the time until the next probe: `interval`, or less with a growing backoff after
    /// failures.
    pub(super) fn next_probe(&self, interval: Duration) -> Duration {
        match self.failures {
            0 => interval,
            failures => Duration::from_secs(1 << failures.min(16)).min(LONGEST_WAIT).min(interval),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Verdict {
        Verdict { reason: BackendReason::EndpointReachable, message: "reachable".into() }
    }

    fn bad() -> Verdict {
        Verdict { reason: BackendReason::EndpointUnreachable, message: "no answer".into() }
    }

    // covers: 1.backend.probe.hysteresis
    #[test]
    fn one_failed_periodic_probe_is_tolerated_a_run_of_them_is_not() {
        let mut health = Health::after(None, 1, false, good());
        for _ in 0..TOLERATED_FAILURES {
            health = Health::after(Some(&health), 1, true, bad());
            assert!(health.verdict.is_ready());
        }
        health = Health::after(Some(&health), 1, true, bad());
        assert_eq!(health.verdict, bad());
        assert!(Health::after(Some(&health), 1, true, good()).verdict.is_ready());
    }

    // covers: 1.backend.probe.edit
    #[test]
    fn a_probe_after_an_edit_counts_at_once() {
        let ready = Health::after(None, 1, false, good());
        assert_eq!(Health::after(Some(&ready), 2, false, bad()).verdict, bad());
        assert_eq!(Health::after(Some(&ready), 1, false, bad()).verdict, bad());
    }

    #[test]
    fn probes_after_failures_come_sooner_and_at_growing_distances() {
        let interval = Duration::from_secs(600);
        let mut health = Health::after(None, 1, false, good());
        assert_eq!(health.next_probe(interval), interval);
        let mut last = Duration::ZERO;
        for _ in 0..12 {
            health = Health::after(Some(&health), 1, true, bad());
            assert!(health.next_probe(interval) >= last);
            last = health.next_probe(interval);
        }
        assert_eq!(last, LONGEST_WAIT);
        let short = Duration::from_secs(60);
        assert_eq!(health.next_probe(short), short, "never later than without a failure");
    }
}
