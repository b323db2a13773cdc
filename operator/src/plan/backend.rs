//! What a probe says about a backend, and the status that follows (spec §1).

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

use crate::api::{BackendReason, ConditionType, S3BackendStatus, merge_conditions};

/// Failed periodic probes in a row that a Ready backend is forgiven.
const TOLERATED_FAILURES: u32 = 2;

/// Longest from a failed probe to the next, jitter aside: about as long it takes until a store is
/// found to be back. Two operators at once make less than twenty probes in half an hour by that.
const LONGEST_WAIT: Duration = Duration::from_secs(240);

/// What a probe showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Reason of the `Ready` condition; `EndpointReachable` is the one that makes it True.
    pub reason: BackendReason,
    /// Message: stable, without request ids or times.
    pub message: String,
}

impl Verdict {
    /// Whether the backend can be used.
    pub fn is_ready(&self) -> bool {
        self.reason == BackendReason::EndpointReachable
    }
}

/// What this process knows of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// The generation that was probed.
    pub generation: i64,
    /// What counts.
    pub verdict: Verdict,
    /// Failed probes in a row.
    pub failures: u32,
}

impl Health {
    /// What a status lets know where nothing is remembered: that the backend was Ready in this very
    /// generation, or nothing.
    pub fn from_status(status: &S3BackendStatus, generation: i64) -> Option<Self> {
        let ready = status.conditions.iter().find(|condition| condition.type_ == ConditionType::Ready.as_str())?;
        let holds = ready.status == "True" && ready.observed_generation == Some(generation);
        let verdict = Verdict { reason: BackendReason::EndpointReachable, message: ready.message.clone() };
        holds.then_some(Self { generation, verdict, failures: 0 })
    }

    /// Takes in a probe. `before` is what was known of the same backend, if anything; one failed
    /// *periodic* probe does not turn a Ready backend into not-Ready, a run of them does.
    pub fn after(before: Option<&Health>, generation: i64, periodic: bool, verdict: Verdict) -> Self {
        let before = before.filter(|health| health.generation == generation);
        let failures = if verdict.is_ready() { 0 } else { before.map_or(0, |health| health.failures) + 1 };
        let tolerated = before.filter(|health| periodic && health.verdict.is_ready() && failures <= TOLERATED_FAILURES);
        Self { generation, verdict: tolerated.map_or(verdict, |health| health.verdict.clone()), failures }
    }

    /// When to probe again: at `interval`, sooner and at growing distances after a failure.
    pub fn next_probe(&self, interval: Duration) -> Duration {
        match self.failures {
            0 => interval,
            failures => Duration::from_secs(1 << failures.min(16)).min(LONGEST_WAIT).min(interval),
        }
    }
}

/// The status that a backend should have.
pub fn status(
    current: &S3BackendStatus,
    generation: i64,
    verdict: &Verdict,
    bucket_count: i64,
    now: Timestamp,
) -> S3BackendStatus {
    let now = Time(now);
    let condition = |type_: ConditionType, holds: bool| Condition {
        type_: type_.as_str().to_owned(),
        status: if holds { "True" } else { "False" }.to_owned(),
        observed_generation: Some(generation),
        reason: verdict.reason.to_string(),
        message: verdict.message.clone(),
        last_transition_time: now.clone(),
    };
    let mut conditions = vec![condition(ConditionType::Ready, verdict.is_ready())];
    if !verdict.is_ready() {
        let type_ = if verdict.reason.stalls() { ConditionType::Stalled } else { ConditionType::Reconciling };
        conditions.push(condition(type_, true));
    }
    S3BackendStatus {
        observed_generation: Some(generation),
        bucket_count: Some(bucket_count),
        conditions: merge_conditions(&current.conditions, conditions, &now),
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

    // covers: 1.backend.probe.hysteresis
    #[test]
    fn a_status_that_says_ready_of_this_very_generation_is_as_good_as_a_memory() {
        let ready = status(&S3BackendStatus::default(), 2, &good(), 0, Timestamp::UNIX_EPOCH);
        let known = Health::from_status(&ready, 2).expect("it says so");
        assert_eq!(known, Health::after(None, 2, false, good()));
        assert!(Health::after(Some(&known), 2, true, bad()).verdict.is_ready());
        assert_eq!(Health::from_status(&ready, 3), None, "of another generation");
        let not_ready = status(&ready, 2, &bad(), 0, Timestamp::UNIX_EPOCH);
        assert_eq!(Health::from_status(&not_ready, 2), None);
        assert_eq!(Health::from_status(&S3BackendStatus::default(), 2), None, "nobody has looked at it yet");
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

    // covers: 1.status.atRest
    #[test]
    fn a_status_that_says_the_same_keeps_its_times() {
        let first = status(&S3BackendStatus::default(), 1, &good(), 0, Timestamp::UNIX_EPOCH);
        let later = Timestamp::from_second(1_000).unwrap();
        assert_eq!(status(&first, 1, &good(), 0, later), first);
        assert_ne!(status(&first, 1, &bad(), 0, later).conditions[0].last_transition_time, Time(Timestamp::UNIX_EPOCH));
    }
}
