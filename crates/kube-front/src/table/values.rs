//! Values of objects as cells have them.

use serde_json::Value;

/// A text; empty where it is none.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// How many there are of something.
pub(super) fn size(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    }
}

/// Labels as a selector is written.
pub(super) fn pairs(labels: &Value) -> Value {
    let pairs = labels.as_object().into_iter().flatten().map(|(key, value)| format!("{key}={}", text(value)));
    let joined = pairs.collect::<Vec<_>>().join(",");
    if joined.is_empty() { "<none>".into() } else { joined.into() }
}
