//! Kubernetes objects as they stand in this crate's source, and what is read from those of a
//! cluster.

use k8s_openapi::api::core::v1::Secret;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads an object that stands in this crate's own source.
pub fn from_json<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("an object written in this crate is well formed")
}

/// The text of a Secret's field; empty when there is none.
pub fn text(secret: &Secret, key: &str) -> String {
    let bytes = secret.data.as_ref().and_then(|data| data.get(key));
    bytes.map(|bytes| String::from_utf8_lossy(&bytes.0).into_owned()).unwrap_or_default()
}
