//! The status of a backend (spec §1).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

use crate::api::{ConditionType, S3BackendStatus, merge_conditions};

use super::health::Verdict;

/// Returns the wanted status of a backend.
pub(super) fn status(
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

/// Returns true if a status describes the backend in this generation.
pub(super) fn is_of(status: &S3BackendStatus, generation: i64) -> bool {
    let is_ready = |condition: &&Condition| condition.type_ == ConditionType::Ready.as_str();
    let ready = status.conditions.iter().find(is_ready);
    status.observed_generation == Some(generation)
        && ready.is_some_and(|ready| ready.observed_generation == Some(generation))
}

#[cfg(test)]
mod tests {
    use super::super::health::Health;
    use super::super::step::Probed;
    use super::*;

    fn good() -> Verdict {
        Verdict::on_probe(&Probed::Succeeded)
    }

    fn bad() -> Verdict {
        Verdict::on_probe(&Probed::NoAnswer("no answer".to_owned()))
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

    // covers: 1.status.atRest
    #[test]
    fn a_status_that_says_the_same_keeps_its_times() {
        let first = status(&S3BackendStatus::default(), 1, &good(), 0, Timestamp::UNIX_EPOCH);
        let later = Timestamp::from_second(1_000).unwrap();
        assert_eq!(status(&first, 1, &good(), 0, later), first);
        assert_ne!(status(&first, 1, &bad(), 0, later).conditions[0].last_transition_time, Time(Timestamp::UNIX_EPOCH));
    }
}
