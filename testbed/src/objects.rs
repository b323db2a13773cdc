//! Conversion of Kubernetes objects: from JSON in this crate's source, and from Secrets to text.

use k8s_openapi::api::core::v1::Secret;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Deserializes an object that is written as JSON in this crate's source. Panics if it is
/// malformed.
pub fn from_json<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("an object written in this crate is well formed")
}

/// Returns the text of a Secret's field; empty if there is none.
pub fn text(secret: &Secret, key: &str) -> String {
    let bytes = secret.data.as_ref().and_then(|data| data.get(key));
    bytes.map(|bytes| String::from_utf8_lossy(&bytes.0).into_owned()).unwrap_or_default()
}
