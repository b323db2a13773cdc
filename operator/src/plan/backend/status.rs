//! The status of a backend (spec §1).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

use crate::api::{ConditionType, S3BackendStatus, merge_conditions};

use super::health::Verdict;

/// The status that a backend should have.
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
