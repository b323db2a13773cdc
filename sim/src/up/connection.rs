//! How the buckets of claims are reached.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kube::core::GroupVersionResource;
use serde_json::Value;
use stowage_operator::api::{BucketClaim, GROUP, VERSION};

use super::simulator::Simulator;

/// What a claim's consumer Secret holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Connection {
    /// There is no such claim.
    NoClaim,
    /// It isn't ready, and why, as far as that is told.
    NotReady(String),
    /// The Secret's keys and values.
    Ready(BTreeMap<String, String>),
}

impl Simulator {
    /// How a claim's bucket is reached.
    pub(super) fn connection(&self, namespace: &str, name: &str) -> Connection {
        let claims = GroupVersionResource::gvr(GROUP, VERSION, "bucketclaims");
        let Ok(claim) = self.cluster().get(&claims, namespace, name) else { return Connection::NoClaim };
        let status = serde_json::from_value::<BucketClaim>(Value::clone(&claim)).ok().and_then(|claim| claim.status);
        let ready = status.iter().flat_map(|status| &status.conditions).find(|condition| condition.type_ == "Ready");
        if let Some(ready) = ready.filter(|ready| ready.status != "True") {
            return Connection::NotReady(format!("{}: {}", ready.reason, ready.message));
        }
        let secret = status.as_ref().and_then(|status| status.bound_secret_name.clone()).filter(|_| ready.is_some());
        let Some(secret) = secret else { return Connection::NotReady("the operator hasn't come to it yet".to_owned()) };
        let secrets = GroupVersionResource::gvr("", "v1", "secrets");
        match self.cluster().get(&secrets, namespace, &secret) {
            Ok(found) => Connection::Ready(texts(&found["data"])),
            Err(_) => Connection::NotReady(format!("its Secret {secret} is gone")),
        }
    }
}

/// The data of a Secret, as far as it is text.
fn texts(data: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| String::from_utf8(BASE64_STANDARD.decode(value.as_str()?).ok()?).ok();
    let fields = data.as_object().into_iter().flatten();
    fields.filter_map(|(key, value)| Some((key.clone(), text(value)?))).collect()
}
