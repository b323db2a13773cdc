//! Secrets (`k8s.io/kubernetes/pkg/apis/core`).

use serde_json::{Value, json};

use crate::names;
use crate::status::FieldError;

/// Maximum total size of the data of a Secret or ConfigMap, in bytes.
pub(super) const DATA_LIMIT: i64 = 1024 * 1024;

/// Message for a change of an immutable object's data.
pub(super) const SEALED: &str = "field is immutable when `immutable` is set";

/// Moves `stringData` into `data`, and sets the default type `Opaque`.
pub(super) fn normalize(object: &mut Value) {
    use base64::Engine as _;
    let Some(fields) = object.as_object_mut() else { return };
    if let Some(Value::Object(texts)) = fields.remove("stringData").filter(|texts| *texts != json!({})) {
        let data = fields.entry("data").or_insert_with(|| json!({}));
        for (key, text) in texts {
            let bytes = text.as_str().unwrap_or_default();
            data[key] = base64::engine::general_purpose::STANDARD.encode(bytes).into();
        }
    }
    let untyped = fields.get("type").and_then(Value::as_str).is_none_or(str::is_empty);
    if untyped {
        fields.insert("type".to_owned(), "Opaque".into());
    }
}

pub(super) fn check(object: &Value, old: Option<&Value>, out: &mut Vec<FieldError>) {
    let mut size = 0;
    for (key, value) in object["data"].as_object().into_iter().flatten() {
        for error in names::data_key(key) {
            out.push(FieldError::invalid(&format!("data[{key}]"), key.as_str(), error));
        }
        size += decoded_length(value);
    }
    if i64::try_from(size).unwrap_or(i64::MAX) > DATA_LIMIT {
        out.push(FieldError::too_long("data", DATA_LIMIT));
    }
    if object["type"] == "kubernetes.io/tls" {
        for key in ["tls.crt", "tls.key"] {
            if object["data"].get(key).is_none() {
                out.push(FieldError::required(&format!("data[{key}]"), ""));
            }
        }
    }
    let Some(old) = old else { return };
    if object["type"] != old["type"] {
        out.push(FieldError::immutable("type", object["type"].clone()));
    }
    if old["immutable"] == Value::Bool(true) {
        if object["immutable"] != Value::Bool(true) {
            out.push(FieldError::forbidden("immutable", SEALED));
        }
        if object["data"] != old["data"] {
            out.push(FieldError::forbidden("data", SEALED));
        }
    }
}

/// Returns the number of bytes encoded by a base64 string: three for every four characters.
pub(super) fn decoded_length(text: &Value) -> usize {
    text.as_str().map_or(0, |text| text.trim_end_matches('=').len() * 3 / 4)
}
