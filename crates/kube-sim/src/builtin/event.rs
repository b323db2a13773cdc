//! Events of `events.k8s.io/v1` (`k8s.io/kubernetes/pkg/apis/core/validation/events.go`).

use serde_json::Value;

use crate::meta;
use crate::names;
use crate::status::FieldError;

/// Checks the rules that a schema cannot express.
pub(super) fn check(event: &Value, old: Option<&Value>, out: &mut Vec<FieldError>) {
    match old {
        None => check_new(event, out),
        Some(old) => check_update(event, old, out),
    }
}

/// Validation for the core group, which has few rules (`legacyValidateEvent`).
pub(super) fn check_core(event: &Value, out: &mut Vec<FieldError>) {
    if event["eventTime"].as_str().is_some_and(|time| !time.is_empty()) {
        check_regarding(event, out);
        check_texts(event, out);
        return;
    }
    let regarding = event["regarding"]["namespace"].as_str().unwrap_or_default();
    let own = meta::namespace(event);
    let agrees = if regarding.is_empty() { own == "default" } else { regarding == own };
    if !agrees {
        out.push(FieldError::invalid("involvedObject.namespace", regarding, "does not match event.namespace"));
    }
}

fn check_regarding(event: &Value, out: &mut Vec<FieldError>) {
    let regarding = event["regarding"]["namespace"].as_str().unwrap_or_default();
    // Events about cluster-scoped objects are in `default`. Other events are not required to be in
    // the namespace of their object.
    if regarding.is_empty() && !matches!(meta::namespace(event), "default" | "kube-system") {
        out.push(FieldError::invalid("involvedObject.namespace", "", "does not match event.namespace"));
    }
}

fn check_new(event: &Value, out: &mut Vec<FieldError>) {
    let text = |field: &str| event[field].as_str().unwrap_or_default();
    check_regarding(event, out);
    if text("eventTime").is_empty() {
        out.push(FieldError::required("eventTime", ""));
    }
    if !matches!(text("type"), "Normal" | "Warning") {
        out.push(FieldError::invalid("type", "", format!("has invalid value: {}", text("type"))));
    }
    check_series(event, out);
    check_texts(event, out);
}

/// Validates the strings of an event of the new API, recognized by its `eventTime`.
fn check_texts(event: &Value, out: &mut Vec<FieldError>) {
    let text = |field: &str| event[field].as_str().unwrap_or_default();
    if text("eventTime").is_empty() {
        return;
    }
    for field in ["reportingController", "reportingInstance", "action", "reason"] {
        if text(field).is_empty() {
            out.push(FieldError::required(field, ""));
        }
    }
    let controller = text("reportingController");
    for error in names::qualified_name(controller) {
        out.push(FieldError::invalid("reportingController", controller, error));
    }
    for (field, shown, limit) in [
        ("reportingInstance", "reportingInstance", 128),
        ("action", "action", 128),
        ("reason", "reason", 128),
        ("note", "message", 1024),
    ] {
        if text(field).len() > limit {
            out.push(FieldError::invalid(shown, "", format!("can have at most {limit} characters")));
        }
    }
}

fn check_series(event: &Value, out: &mut Vec<FieldError>) {
    let series = &event["series"];
    if !series.is_object() {
        return;
    }
    if series["count"].as_i64().is_none_or(|count| count < 2) {
        out.push(FieldError::invalid("series.count", "", "should be at least 2"));
    }
    if !series["lastObservedTime"].is_string() {
        out.push(FieldError::required("series.lastObservedTime", ""));
    }
}

fn check_update(event: &Value, old: &Value, out: &mut Vec<FieldError>) {
    check_regarding(event, out);
    check_series(event, out);
    check_texts(event, out);
    for (field, shown) in [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        if event[field] != old[field] {
            let structured = matches!(field, "regarding" | "related" | "eventTime");
            let value = if event[field].is_null() && !structured { "".into() } else { event[field].clone() };
            out.push(FieldError::immutable(shown, value));
        }
    }
}
