//! Redaction of Secret values.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::Deed;

/// Annotation in which kubectl stores the applied object, including a Secret's values.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The annotation as a segment of a JSON pointer.
const LAST_APPLIED_STEP: &str = "kubectl.kubernetes.io~1last-applied-configuration";

/// Metadata that only the API server sets. It is valid in a single cluster only.
const OF_SERVER: [&str; 6] = ["resourceVersion", "uid", "creationTimestamp", "generation", "managedFields", "selfLink"];

/// Placeholders for values of Secrets. Equal values have equal placeholders everywhere.
#[derive(Clone, Debug, Default)]
pub struct StandIns {
    /// Number of the placeholder, by the hash of the value.
    known: BTreeMap<[u8; 32], usize>,
}

impl StandIns {
    /// Replaces values of Secrets in the body of a write, and removes fields that are valid only in
    /// the original cluster.
    pub fn redact(&mut self, deed: &Deed, with: &mut Value) {
        forget(with);
        let Some(call) = deed.call() else { return };
        let is_secret = call.group.is_empty() && call.resource == "secrets";
        match with {
            Value::Array(operations) => {
                operations.retain(|operation| !is_of_server(operation));
                for operation in operations.iter_mut().filter(|_| is_secret) {
                    self.redact_operation(operation);
                }
            }
            object => {
                strip(object, call.subresource.is_some());
                if is_secret {
                    self.redact_object(object);
                }
            }
        }
    }

    fn redact_object(&mut self, secret: &mut Value) {
        if let Some(data) = secret.get_mut("data") {
            self.replace(data, true);
        }
        if let Some(data) = secret.get_mut("stringData") {
            self.replace(data, false);
        }
    }

    fn redact_operation(&mut self, operation: &mut Value) {
        let path = operation["path"].as_str().unwrap_or_default().to_owned();
        let Some(value) = operation.get_mut("value") else { return };
        match path.split('/').nth(1) {
            None => {
                strip(value, false);
                self.redact_object(value);
            }
            Some("data") => self.replace(value, true),
            Some("stringData") => self.replace(value, false),
            Some(_) => {}
        }
    }

    /// Replaces every string in a value, either plain or Base64.
    fn replace(&mut self, value: &mut Value, encoded: bool) {
        match value {
            Value::String(text) if encoded => {
                let bytes = BASE64_STANDARD.decode(text.as_bytes()).unwrap_or_else(|_| text.as_bytes().to_vec());
                *text = BASE64_STANDARD.encode(self.word(&bytes));
            }
            Value::String(text) => *text = self.word(text.as_bytes()),
            Value::Array(values) => values.iter_mut().for_each(|value| self.replace(value, encoded)),
            Value::Object(values) => values.values_mut().for_each(|value| self.replace(value, encoded)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn word(&mut self, value: &[u8]) -> String {
        let next = self.known.len() + 1;
        let number = self.known.entry(Sha256::digest(value).into()).or_insert(next);
        format!("redacted-{number}")
    }
}

/// Removes kubectl's annotation at any depth.
fn forget(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove(LAST_APPLIED);
            fields.values_mut().for_each(forget);
        }
        Value::Array(values) => values.iter_mut().for_each(forget),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Removes the fields that the server sets, including the status unless the status itself is
/// written.
fn strip(object: &mut Value, is_part: bool) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        OF_SERVER.iter().for_each(|field| drop(metadata.remove(*field)));
    }
    if let Some(fields) = object.as_object_mut() {
        fields.remove("preconditions");
        if !is_part {
            fields.remove("status");
        }
    }
}

/// Returns true if an operation of a JSON patch is about a field that the server sets, or about
/// kubectl's annotation.
fn is_of_server(operation: &Value) -> bool {
    let path = operation["path"].as_str().unwrap_or_default();
    path.rsplit('/').next() == Some(LAST_APPLIED_STEP)
        || path.strip_prefix("/metadata/").is_some_and(|field| OF_SERVER.contains(&field))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secrets(name: &str) -> String {
        format!("/api/v1/namespaces/team-a/secrets{name}")
    }

    #[test]
    fn names_stay_and_values_go_and_equal_values_stay_equal() {
        let mut stand_ins = StandIns::default();
        let last = json!({LAST_APPLIED: r#"{"stringData":{"key":"tiger"}}"#, "team": "a"});
        let mut with = json!({
            "kind": "Secret", "metadata": {"name": "admin", "annotations": last, "uid": "u", "resourceVersion": "7"},
            "stringData": {"key": "tiger", "id": "leo"}, "data": {"same": "dGlnZXI=", "gone": null}, "status": {},
        });
        stand_ins.redact(&Deed::Create(secrets("")), &mut with);
        let expected = json!({
            "kind": "Secret", "metadata": {"name": "admin", "annotations": {"team": "a"}},
            "stringData": {"key": "redacted-1", "id": "redacted-2"},
            "data": {"same": BASE64_STANDARD.encode("redacted-1"), "gone": null},
        });
        assert_eq!(with, expected);
        for secret in ["tiger", "leo", "dGlnZXI"] {
            assert!(!with.to_string().contains(secret), "{with}");
        }
    }

    #[test]
    fn patches_of_a_secret_tell_nothing_either() {
        let mut stand_ins = StandIns::default();
        let mut with = json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
            {"op": "replace", "path": "/data/key", "value": "dGlnZXI="},
            {"op": "add", "path": "/stringData", "value": {"key": "tiger"}},
            {"op": "replace", "path": "", "value": {"data": {"key": "dGlnZXI="}}},
            {"op": "add", "path": format!("/metadata/annotations/{LAST_APPLIED_STEP}"), "value": "tiger"},
            {"op": "add", "path": "/metadata/annotations", "value": {LAST_APPLIED: "tiger", "team": "a"}},
        ]);
        stand_ins.redact(&Deed::JsonPatch(secrets("/admin")), &mut with);
        let word = BASE64_STANDARD.encode("redacted-1");
        let expected = json!([
            {"op": "replace", "path": "/data/key", "value": word},
            {"op": "add", "path": "/stringData", "value": {"key": "redacted-1"}},
            {"op": "replace", "path": "", "value": {"data": {"key": word}}},
            {"op": "add", "path": "/metadata/annotations", "value": {"team": "a"}},
        ]);
        assert_eq!(with, expected);
    }

    #[test]
    fn what_is_no_secret_stands_as_it_was_sent() {
        let claims = "/apis/broker.stowage.io/v1alpha1/namespaces/team-a/bucketclaims/photos/status".to_owned();
        let mut with = json!({"metadata": {"name": "photos", "generation": 3}, "data": {"a": "b"}, "status": {"c": 1}});
        StandIns::default().redact(&Deed::MergePatch(claims), &mut with);
        assert_eq!(with, json!({"metadata": {"name": "photos"}, "data": {"a": "b"}, "status": {"c": 1}}));
    }
}
