//! Values of objects, formatted for cells.

use serde_json::Value;

/// Returns a string; empty for any other value.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the number of fields or items.
pub(super) fn size(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    }
}

/// Formats labels as a selector.
pub(super) fn pairs(labels: &Value) -> Value {
    let pairs = labels.as_object().into_iter().flatten().map(|(key, value)| format!("{key}={}", text(value)));
    let joined = pairs.collect::<Vec<_>>().join(",");
    if joined.is_empty() { "<none>".into() } else { joined.into() }
}
