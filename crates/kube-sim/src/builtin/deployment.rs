//! Deployments (`ValidateDeployment`).
//!
//! Not modelled: validation of the numbers of a rolling update.

use serde_json::{Value, json};

use super::pod;
use crate::names;
use crate::selector;
use crate::status::FieldError;

/// Path of the template's spec.
const TEMPLATE: &str = "spec.template.spec";

/// Sets defaults that depend on other fields.
pub(super) fn normalize(deployment: &mut Value) {
    let spec = &mut deployment["spec"];
    pod::normalize_spec(&mut spec["template"]["spec"]);
    let strategy = &mut spec["strategy"];
    if strategy["type"] == "RollingUpdate" {
        for field in ["maxSurge", "maxUnavailable"] {
            if strategy["rollingUpdate"][field].is_null() {
                strategy["rollingUpdate"][field] = "25%".into();
            }
        }
    }
}

/// Checks the rules that a schema cannot express.
pub(super) fn check(deployment: &Value, old: Option<&Value>, out: &mut Vec<FieldError>) {
    let spec = &deployment["spec"];
    for field in ["replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"] {
        if let Some(number) = spec[field].as_i64().filter(|number| *number < 0) {
            let detail = "must be greater than or equal to 0";
            out.push(FieldError::invalid(&format!("spec.{field}"), number, detail));
        }
    }
    check_selector(spec, out);
    check_template(&spec["template"]["spec"], out);
    let strategies = ["Recreate", "RollingUpdate"];
    pod::one_of(&spec["strategy"]["type"], &strategies, "spec.strategy.type", out);
    if spec["strategy"]["type"] == "Recreate" && spec["strategy"].get("rollingUpdate").is_some() {
        let detail = "may not be specified when strategy `type` is 'Recreate'";
        out.push(FieldError::forbidden("spec.strategy.rollingUpdate", detail));
    }
    let seconds = |field: &str| spec[field].as_i64().unwrap_or_default();
    let (deadline, ready) = (seconds("progressDeadlineSeconds"), seconds("minReadySeconds"));
    if deadline <= ready {
        out.push(FieldError::invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"));
    }
    if old.is_some_and(|old| old["spec"]["selector"] != spec["selector"]) {
        out.push(FieldError::immutable("spec.selector", spec["selector"].clone()));
    }
}

/// Checks that the selector is set, is not empty, and matches the labels of the template.
fn check_selector(spec: &Value, out: &mut Vec<FieldError>) {
    let selector = &spec["selector"];
    if selector.is_null() {
        out.push(FieldError::required("spec.selector", ""));
        return;
    }
    let is_empty = |field: &str| match &selector[field] {
        Value::Object(labels) => labels.is_empty(),
        Value::Array(expressions) => expressions.is_empty(),
        _ => true,
    };
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        let path = "spec.selector.matchLabels";
        out.extend(names::qualified_name(key).into_iter().map(|error| FieldError::invalid(path, key.as_str(), error)));
        let path = format!("{path}[{key}]");
        out.extend(names::label_value(value).into_iter().map(|error| FieldError::invalid(&path, value, error)));
    }
    if is_empty("matchLabels") && is_empty("matchExpressions") {
        out.push(FieldError::invalid("spec.selector", selector.clone(), "empty selector is invalid for deployment"));
        return;
    }
    let labels = match &spec["template"]["metadata"]["labels"] {
        Value::Null => json!({}),
        labels => labels.clone(),
    };
    match selector::selects(selector, &labels) {
        Ok(true) => {}
        Ok(false) => {
            let detail = "`selector` does not match template `labels`";
            out.push(FieldError::invalid("spec.template.metadata.labels", labels, detail));
        }
        Err((index, operator)) => {
            let path = format!("spec.selector.matchExpressions[{index}].operator");
            out.push(FieldError::invalid(&path, operator, "not a valid selector operator"));
        }
    }
}

fn check_template(spec: &Value, out: &mut Vec<FieldError>) {
    pod::check_spec(spec, TEMPLATE, out);
    let policy = spec["restartPolicy"].as_str().unwrap_or_default();
    if matches!(policy, "Never" | "OnFailure") {
        out.push(FieldError::not_supported(&format!("{TEMPLATE}.restartPolicy"), policy, &["Always"]));
    }
    if spec.get("activeDeadlineSeconds").is_some() {
        let detail = "activeDeadlineSeconds in ReplicaSet is not Supported";
        out.push(FieldError::forbidden(&format!("{TEMPLATE}.activeDeadlineSeconds"), detail));
    }
}
