//! ConfigMaps (`ValidateConfigMap`).

use serde_json::Value;

use super::secret::{DATA_LIMIT, SEALED, decoded_length};
use crate::names;
use crate::status::FieldError;

/// Checks the rules that a schema cannot express.
pub(super) fn check(object: &Value, old: Option<&Value>, out: &mut Vec<FieldError>) {
    if let Some(old) = old.filter(|old| old["immutable"] == Value::Bool(true)) {
        if object["immutable"] != Value::Bool(true) {
            out.push(FieldError::forbidden("immutable", SEALED));
        }
        for field in ["data", "binaryData"] {
            if object[field] != old[field] {
                out.push(FieldError::forbidden(field, SEALED));
            }
        }
    }
    let text = |value: &Value| value.as_str().map_or(0, str::len);
    let size = check_keys(object, "data", "binaryData", text, out)
        + check_keys(object, "binaryData", "data", decoded_length, out);
    if i64::try_from(size).unwrap_or(i64::MAX) > DATA_LIMIT {
        // An API server reports an empty path here too.
        out.push(FieldError::too_long("[]", DATA_LIMIT));
    }
}

/// Validates the keys of one of the two maps, and returns the number of bytes in its values.
fn check_keys(
    object: &Value,
    field: &str,
    other: &str,
    length: impl Fn(&Value) -> usize,
    out: &mut Vec<FieldError>,
) -> usize {
    let mut size = 0;
    for (key, value) in object[field].as_object().into_iter().flatten() {
        let path = format!("{field}[{key}]");
        for error in names::data_key(key) {
            out.push(FieldError::invalid(&path, key.as_str(), error));
        }
        if object[other].get(key).is_some() {
            out.push(FieldError::invalid(&path, key.as_str(), format!("duplicate of key present in {other}")));
        }
        size += length(value);
    }
    size
}
