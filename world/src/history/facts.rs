//! How a world stands at one moment, and the questions that scenarios and oracles ask of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use s3_sim::BucketSnapshot;
use serde_json::Value;
use stowage_operator::api::wire::{self, Role};

use crate::installation::OPERATOR_NAMESPACE;

/// What is asked for and not there.
static NOTHING: Value = Value::Null;

/// Objects by resource, namespace and name.
pub type Objects = BTreeMap<(String, String, String), Arc<Value>>;

/// How everything stands: what scenarios look for and oracles compare.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The moment.
    pub at: Timestamp,
    /// Every object.
    pub objects: Arc<Objects>,
    /// Every bucket, by host and port of its store and by name.
    pub buckets: BTreeMap<(String, String), BucketSnapshot>,
}

impl Facts {
    /// An object; null if there is none.
    pub fn object(&self, plural: &str, namespace: &str, name: &str) -> &Value {
        let key = (plural.to_owned(), namespace.to_owned(), name.to_owned());
        self.objects.get(&key).map_or(&NOTHING, |object| object.as_ref())
    }

    /// The objects of a resource: namespace, name, object.
    pub fn all<'a>(&'a self, plural: &'a str) -> impl Iterator<Item = (&'a str, &'a str, &'a Value)> {
        let of_kind = self.objects.iter().filter(move |((kind, _, _), _)| kind == plural);
        of_kind.map(|((_, namespace, name), object)| (namespace.as_str(), name.as_str(), object.as_ref()))
    }

    /// A claim; null if there is none.
    pub fn claim(&self, namespace: &str, name: &str) -> &Value {
        self.object("bucketclaims", namespace, name)
    }

    /// State of all claims, in words.
    pub fn claims(&self) -> String {
        let told = self.all("bucketclaims").map(|(namespace, name, claim)| {
            let ready = claim["status"]["conditions"].as_array().into_iter().flatten().find(|it| it["type"] == "Ready");
            let message = ready.and_then(|ready| ready["message"].as_str()).unwrap_or_default();
            format!("{namespace}/{name} is {} ({message})", self.ready(namespace, name))
        });
        told.collect::<Vec<_>>().join("; ")
    }

    /// Reason of a claim's `Ready`; empty if it has none.
    pub fn ready(&self, namespace: &str, name: &str) -> &str {
        condition(self.claim(namespace, name), "Ready")
    }

    /// Whether a claim is bound, and its status speaks of the spec as it is.
    pub fn is_bound(&self, namespace: &str, name: &str) -> bool {
        let claim = self.claim(namespace, name);
        condition(claim, "Ready") == "Bound" && claim["status"]["observedGeneration"] == claim["metadata"]["generation"]
    }

    /// The Secrets of a role: namespace, name, Secret.
    pub fn secrets(&self, role: Role) -> impl Iterator<Item = (&str, &str, &Value)> {
        self.all("secrets").filter(move |(_, _, secret)| label(secret, wire::ROLE) == Some(role.as_str()))
    }

    /// The internal Secrets of a role whose labels name this claim, in any of its lives.
    pub fn internal<'a>(&'a self, role: Role, namespace: &str, claim: &str) -> Vec<(&'a str, &'a Value)> {
        let (namespace, claim) = (wire::label_value(namespace), wire::label_value(claim));
        let of_claim = |secret: &Value| {
            label(secret, wire::CLAIM_NAMESPACE) == Some(&namespace) && label(secret, wire::CLAIM_NAME) == Some(&claim)
        };
        let found = self.secrets(role).filter(|(place, _, secret)| *place == OPERATOR_NAMESPACE && of_claim(secret));
        found.map(|(_, name, secret)| (name, secret)).collect()
    }

    /// The credentials of a claim that have no end.
    pub fn current_keys<'a>(&'a self, namespace: &str, claim: &str) -> Vec<&'a Value> {
        let all = self.internal(Role::VirtualCredential, namespace, claim);
        all.into_iter().map(|(_, secret)| secret).filter(|secret| expires_at(secret).is_none()).collect()
    }

    /// A bucket, on whichever store it is; the first by host of several.
    pub fn bucket(&self, name: &str) -> Option<&BucketSnapshot> {
        self.buckets.iter().find(|((_, bucket), _)| bucket == name).map(|(_, bucket)| bucket)
    }
}

/// Reason of a condition; empty if it isn't there.
pub fn condition<'a>(object: &'a Value, type_: &str) -> &'a str {
    let conditions = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == type_);
    found.and_then(|condition| condition["reason"].as_str()).unwrap_or_default()
}

/// A label of an object.
pub fn label<'a>(object: &'a Value, label: &str) -> Option<&'a str> {
    object["metadata"]["labels"][label].as_str()
}

/// When a credential ends, as its Secret has it; `None` also where that can't be read.
pub fn expires_at(secret: &Value) -> Option<Timestamp> {
    secret["metadata"]["annotations"][wire::EXPIRES_AT].as_str()?.parse().ok()
}

/// A field of a Secret, decoded; `None` where it is missing or no text.
pub fn field(secret: &Value, name: &str) -> Option<String> {
    String::from_utf8(BASE64_STANDARD.decode(secret["data"][name].as_str()?).ok()?).ok()
}
