//! The tour as one JSON document for machines (spec §5). Fields may be added, never renamed.

use serde_json::{Value, json};

use super::step::{DemoReport, DemoStep};

/// Returns the document: `steps` with `name`, `ok`, `millis` and `detail`; `kubernetes_writes` and
/// `s3_calls` of the operator; `millis` of the whole tour.
pub fn document(report: &DemoReport) -> Value {
    let step =
        |step: &DemoStep| json!({"name": step.name, "ok": step.ok, "millis": step.millis, "detail": step.detail});
    json!({
        "steps": report.steps.iter().map(step).collect::<Vec<Value>>(),
        "kubernetes_writes": report.kubernetes_writes,
        "s3_calls": report.s3_calls,
        "millis": report.millis,
    })
}
