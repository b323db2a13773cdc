//! State of a world at one moment, with the queries of scenarios and oracles.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use s3_sim::BucketSnapshot;
use serde_json::Value;
use stowage_operator::api::wire::{self, Role};

use crate::installation::OPERATOR_NAMESPACE;

/// Result for objects that do not exist.
static NOTHING: Value = Value::Null;

/// Objects by resource, namespace and name.
pub type Objects = BTreeMap<(String, String, String), Arc<Value>>;

/// State of a world, which scenarios query and oracles compare.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Time of the state.
    pub at: Timestamp,
    /// Every object.
    pub objects: Arc<Objects>,
    /// Every bucket, by host and port of its store and by name.
    pub buckets: BTreeMap<(String, String), BucketSnapshot>,
}

impl Facts {
    /// Returns an object; null if it does not exist.
    pub fn object(&self, plural: &str, namespace: &str, name: &str) -> &Value {
        let key = (plural.to_owned(), namespace.to_owned(), name.to_owned());
        self.objects.get(&key).map_or(&NOTHING, |object| object.as_ref())
    }

    /// Iterates over the objects of a resource: namespace, name, object.
    pub fn all<'a>(&'a self, plural: &'a str) -> impl Iterator<Item = (&'a str, &'a str, &'a Value)> {
        let of_kind = self.objects.iter().filter(move |((kind, _, _), _)| kind == plural);
        of_kind.map(|((_, namespace, name), object)| (namespace.as_str(), name.as_str(), object.as_ref()))
    }

    /// Returns a claim; null if it does not exist.
    pub fn claim(&self, namespace: &str, name: &str) -> &Value {
        self.object("bucketclaims", namespace, name)
    }

    /// Describes the state of all claims.
    pub fn claims(&self) -> String {
        let told = self.all("bucketclaims").map(|(namespace, name, claim)| {
            let ready = claim["status"]["conditions"].as_array().into_iter().flatten().find(|it| it["type"] == "Ready");
            let message = ready.and_then(|ready| ready["message"].as_str()).unwrap_or_default();
            format!("{namespace}/{name} is {} ({message})", self.ready(namespace, name))
        });
        told.collect::<Vec<_>>().join("; ")
    }

    /// Returns the reason of a claim's `Ready`; empty if it has none.
    pub fn ready(&self, namespace: &str, name: &str) -> &str {
        condition(self.claim(namespace, name), "Ready")
    }

    /// Returns true if a claim is bound and its status is about the current spec.
    pub fn is_bound(&self, namespace: &str, name: &str) -> bool {
        let claim = self.claim(namespace, name);
        condition(claim, "Ready") == "Bound" && claim["status"]["observedGeneration"] == claim["metadata"]["generation"]
    }

    /// Iterates over the Secrets of a role: namespace, name, Secret.
    pub fn secrets(&self, role: Role) -> impl Iterator<Item = (&str, &str, &Value)> {
        self.all("secrets").filter(move |(_, _, secret)| label(secret, wire::ROLE) == Some(role.as_str()))
    }

    /// Returns the internal Secrets of a role whose labels name this claim, with any UID.
    pub fn internal<'a>(&'a self, role: Role, namespace: &str, claim: &str) -> Vec<(&'a str, &'a Value)> {
        let (namespace, claim) = (wire::label_value(namespace), wire::label_value(claim));
        let of_claim = |secret: &Value| {
            label(secret, wire::CLAIM_NAMESPACE) == Some(&namespace) && label(secret, wire::CLAIM_NAME) == Some(&claim)
        };
        let found = self.secrets(role).filter(|(place, _, secret)| *place == OPERATOR_NAMESPACE && of_claim(secret));
        found.map(|(_, name, secret)| (name, secret)).collect()
    }

    /// Returns the credentials of a claim that have no expiry.
    pub fn current_keys<'a>(&'a self, namespace: &str, claim: &str) -> Vec<&'a Value> {
        let all = self.internal(Role::VirtualCredential, namespace, claim);
        all.into_iter().map(|(_, secret)| secret).filter(|secret| expires_at(secret).is_none()).collect()
    }

    /// Returns a bucket from any store; from the first by host if several have it.
    pub fn bucket(&self, name: &str) -> Option<&BucketSnapshot> {
        self.buckets.iter().find(|((_, bucket), _)| bucket == name).map(|(_, bucket)| bucket)
    }
}

/// Returns the reason of a condition; empty if the condition is absent.
pub fn condition<'a>(object: &'a Value, type_: &str) -> &'a str {
    let conditions = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == type_);
    found.and_then(|condition| condition["reason"].as_str()).unwrap_or_default()
}

/// Returns a label of an object.
pub fn label<'a>(object: &'a Value, label: &str) -> Option<&'a str> {
    object["metadata"]["labels"][label].as_str()
}

/// Returns the expiry of a credential; `None` also if it cannot be parsed.
pub fn expires_at(secret: &Value) -> Option<Timestamp> {
    secret["metadata"]["annotations"][wire::EXPIRES_AT].as_str()?.parse().ok()
}

/// Returns a decoded field of a Secret; `None` if it is absent or not UTF-8.
pub fn field(secret: &Value, name: &str) -> Option<String> {
    String::from_utf8(BASE64_STANDARD.decode(secret["data"][name].as_str()?).ok()?).ok()
}
