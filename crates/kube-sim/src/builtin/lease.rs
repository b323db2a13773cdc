//! Leases (`k8s.io/kubernetes/pkg/apis/coordination`).

use serde_json::Value;

use crate::status::FieldError;

/// Checks the rules that a schema cannot express.
pub(super) fn check(lease: &Value, out: &mut Vec<FieldError>) {
    let spec = &lease["spec"];
    if let Some(seconds) = spec["leaseDurationSeconds"].as_i64().filter(|seconds| *seconds <= 0) {
        out.push(FieldError::invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"));
    }
    if let Some(times) = spec["leaseTransitions"].as_i64().filter(|times| *times < 0) {
        out.push(FieldError::invalid("spec.leaseTransitions", times, "must be greater than or equal to 0"));
    }
}
