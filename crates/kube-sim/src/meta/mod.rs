//! Object metadata: read out of JSON, and written there.

pub(crate) mod check;

use jiff::Timestamp;
use serde_json::{Map, Value};

/// A text field of `metadata`; empty when absent.
pub fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// The name; empty when absent.
pub fn name(object: &Value) -> &str {
    text(object, "name")
}

/// The namespace; empty when absent, as of cluster-scoped objects.
pub fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

/// The UID; empty when absent.
pub fn uid(object: &Value) -> &str {
    text(object, "uid")
}

/// The object's resourceVersion; `None` when absent, empty or `"0"`, which a server takes for none.
pub fn version(object: &Value) -> Option<&str> {
    Some(text(object, "resourceVersion")).filter(|version| !version.is_empty() && *version != "0")
}

/// Whether the object is marked for deletion.
pub fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// When the object was made, where that can be read.
pub(crate) fn created(object: &Value) -> Option<Timestamp> {
    text(object, "creationTimestamp").parse().ok()
}

/// The finalizers, in order.
pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The owner references, in order.
pub(crate) fn owners(object: &Value) -> &[Value] {
    object["metadata"]["ownerReferences"].as_array().map_or(&[], Vec::as_slice)
}

/// `metadata` for writing; made if it isn't there.
pub(crate) fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    metadata.as_object_mut().expect("it was just made an object")
}

/// Sets or, with `Null`, removes a field of `metadata`.
pub(crate) fn set(object: &mut Value, field: &str, value: Value) {
    let metadata = metadata_mut(object);
    if value.is_null() {
        metadata.remove(field);
    } else {
        metadata.insert(field.to_owned(), value);
    }
}

/// Copies a field of `metadata`, its absence included.
pub fn copy(from: &Value, to: &mut Value, field: &str) {
    set(to, field, from["metadata"][field].clone());
}

/// Empty lists and maps, and empty texts, are absent in what a server stores.
pub(crate) fn tidy(object: &mut Value) {
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    metadata_mut(object).retain(|_, value| !empty(value));
}

/// The finalizer of a foreground deletion: dependants go first.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an orphaning deletion: dependants are let go first.
pub(crate) const ORPHAN: &str = "orphan";
