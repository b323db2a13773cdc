//! Access to an object's metadata in JSON.

pub(crate) mod check;

use jiff::Timestamp;
use serde_json::{Map, Value};

/// Returns a string field of `metadata`; empty if it is absent.
pub fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// Returns the name; empty if it is absent.
pub fn name(object: &Value) -> &str {
    text(object, "name")
}

/// Returns the namespace; empty if it is absent, as in cluster-scoped objects.
pub fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

/// Returns the UID; empty if it is absent.
pub fn uid(object: &Value) -> &str {
    text(object, "uid")
}

/// Returns the resourceVersion. `None` if it is absent, empty or `"0"`, which a server treats as
/// absent.
pub fn version(object: &Value) -> Option<&str> {
    Some(text(object, "resourceVersion")).filter(|version| !version.is_empty() && *version != "0")
}

/// Returns true if the object has a deletion timestamp.
pub fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// Returns the creation timestamp, if it is valid.
pub(crate) fn created(object: &Value) -> Option<Timestamp> {
    text(object, "creationTimestamp").parse().ok()
}

/// Returns the finalizers, in order.
pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Returns the owner references, in order.
pub(crate) fn owners(object: &Value) -> &[Value] {
    object["metadata"]["ownerReferences"].as_array().map_or(&[], Vec::as_slice)
}

/// Returns `metadata` for writing, creating it if it is absent.
pub(crate) fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    metadata.as_object_mut().expect("it was just made an object")
}

/// Sets a field of `metadata`, or removes it if the value is `Null`.
pub(crate) fn set(object: &mut Value, field: &str, value: Value) {
    let metadata = metadata_mut(object);
    if value.is_null() {
        metadata.remove(field);
    } else {
        metadata.insert(field.to_owned(), value);
    }
}

/// Copies a field of `metadata`. An absent field is removed from `to`.
pub fn copy(from: &Value, to: &mut Value, field: &str) {
    set(to, field, from["metadata"][field].clone());
}

/// Removes empty lists, maps and strings, which a server does not store.
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

/// Finalizer of a foreground deletion: dependants are removed first.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer of an orphaning deletion: owner references of dependants are removed first.
pub(crate) const ORPHAN: &str = "orphan";
