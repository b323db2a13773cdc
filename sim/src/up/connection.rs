//! Connections to the buckets of claims, accesses and ObjectBucketClaims.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kube::core::GroupVersionResource;
use serde_json::Value;
use stowage_operator::api::{GROUP, OBC_GROUP, OBC_VERSION, VERSION};

use super::simulator::Simulator;

/// The connection of an app to a claim's bucket, from the consumer Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Connection {
    /// The claim doesn't exist.
    NoClaim,
    /// The claim isn't ready, with the reason as far as it is known.
    NotReady(String),
    /// Environment variables and their values.
    Ready(BTreeMap<String, String>),
}

impl Simulator {
    /// Returns the connection of the claim with this name. If there is none, uses the access with
    /// this name, or else the ObjectBucketClaim.
    pub(super) fn connection(&self, namespace: &str, name: &str) -> Connection {
        let of = |plural: &str| self.found(GROUP, VERSION, plural, namespace, name);
        if let Some(object) = of("bucketclaims").or_else(|| of("bucketaccesses")) {
            return self.of_secret(namespace, &object["status"]);
        }
        match self.found(OBC_GROUP, OBC_VERSION, "objectbucketclaims", namespace, name) {
            Some(claim) => self.of_object_bucket_claim(namespace, name, &claim["status"]),
            None => Connection::NoClaim,
        }
    }

    fn found(&self, group: &str, version: &str, plural: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.cluster().get(&GroupVersionResource::gvr(group, version, plural), namespace, name).ok()
    }

    /// Reads the Secret that a status names.
    fn of_secret(&self, namespace: &str, status: &Value) -> Connection {
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let ready = conditions.into_iter().find(|condition| condition["type"] == "Ready");
        if let Some(ready) = ready.filter(|ready| ready["status"] != "True") {
            let text = |field: &str| ready[field].as_str().unwrap_or_default();
            return Connection::NotReady(format!("{}: {}", text("reason"), text("message")));
        }
        let secret = status["boundSecretName"].as_str().filter(|_| ready.is_some());
        let Some(secret) = secret else { return Connection::NotReady("the operator hasn't come to it yet".to_owned()) };
        match self.found("", "v1", "secrets", namespace, secret) {
            Some(found) => Connection::Ready(decoded(&found["data"])),
            None => Connection::NotReady(format!("its Secret {secret} is gone")),
        }
    }

    /// Reads the ConfigMap and the Secret with the name of an ObjectBucketClaim.
    fn of_object_bucket_claim(&self, namespace: &str, name: &str, status: &Value) -> Connection {
        let phase = status["phase"].as_str().unwrap_or("Pending");
        if phase != "Bound" {
            return Connection::NotReady(format!("it is {phase}; its Events tell why"));
        }
        let [map, secret] = ["configmaps", "secrets"].map(|plural| self.found("", "v1", plural, namespace, name));
        let (Some(map), Some(secret)) = (map, secret) else {
            return Connection::NotReady("its ConfigMap or its Secret is gone".to_owned());
        };
        let mut all = decoded(&secret["data"]);
        let plain = map["data"].as_object().into_iter().flatten();
        all.extend(plain.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))));
        Connection::Ready(all)
    }
}

/// Decodes the data of a Secret; values that are not text are left out.
fn decoded(data: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| String::from_utf8(BASE64_STANDARD.decode(value.as_str()?).ok()?).ok();
    let fields = data.as_object().into_iter().flatten();
    fields.filter_map(|(key, value)| Some((key.clone(), text(value)?))).collect()
}
