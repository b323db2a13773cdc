//! How a simulator stands, as its page shows it: a pure function of what is stored.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube_sim::StoredObject;
use serde::Serialize;
use serde_json::Value;
use stowage_operator::api::wire::{self, Role};

use crate::world::OPERATOR_NAMESPACE;

/// Most claims, backends and buckets that are shown of each.
const MOST: usize = 100;

/// What the page shows.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct View {
    /// The simulator's time.
    pub(super) now: Timestamp,
    /// Seconds that it is ahead of the machine's.
    pub(super) ahead_seconds: i64,
    /// Faults that have met no call yet.
    pub(super) armed: String,
    /// The gateway's last requests, newest first.
    pub(super) traffic: Vec<Value>,
    /// In order of store and name.
    pub(super) buckets: Vec<Bucket>,
    /// How many claims there are, the ones that aren't shown included.
    pub(super) claim_count: usize,
    /// In order of namespace and name.
    pub(super) claims: Vec<Claim>,
    /// In order of name.
    pub(super) backends: Vec<Backend>,
}

/// What is told beside the objects.
#[derive(Clone, Debug)]
pub(super) struct Beside {
    pub(super) now: Timestamp,
    pub(super) ahead_seconds: i64,
    pub(super) armed: String,
    pub(super) traffic: Vec<Value>,
    pub(super) buckets: Vec<Bucket>,
}

/// A bucket of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Bucket {
    /// Host and port of the store.
    pub(super) store: String,
    pub(super) name: String,
    /// Keys whose newest version is an object.
    pub(super) objects: usize,
}

/// A claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Claim {
    namespace: String,
    name: String,
    /// What its status says, or `Pending` without one.
    phase: String,
    backend: String,
    /// The bucket that it is bound to.
    bucket: String,
    conditions: Vec<Condition>,
    /// Its keys, oldest first.
    keys: Vec<Key>,
}

/// A condition of a claim or a backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Condition {
    r#type: String,
    status: String,
    reason: String,
    message: String,
    last_transition_time: String,
}

/// A key of a claim, and when it works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Key {
    id: String,
    generation: String,
    from: String,
    /// Absent for one that nothing ends yet.
    until: Option<String>,
    /// Whether its time has come, though it is still there.
    over: bool,
}

/// A backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Backend {
    name: String,
    endpoint: String,
    conditions: Vec<Condition>,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn conditions(object: &Value) -> Vec<Condition> {
    let all = object["status"]["conditions"].as_array().into_iter().flatten();
    let condition = |condition: &Value| Condition {
        r#type: text(&condition["type"]),
        status: text(&condition["status"]),
        reason: text(&condition["reason"]),
        message: text(&condition["message"]),
        last_transition_time: text(&condition["lastTransitionTime"]),
    };
    all.map(condition).collect()
}

/// How all stands, from all objects and what is told beside them.
pub(super) fn view(objects: &[StoredObject], beside: Beside) -> View {
    let Beside { now, ahead_seconds, armed, traffic, mut buckets } = beside;
    buckets.truncate(MOST);
    let of = |plural: &'static str| objects.iter().filter(move |object| object.plural == plural);
    let mut keys = keys(of("secrets").filter(|secret| secret.namespace == OPERATOR_NAMESPACE), now);
    let claims = of("bucketclaims").take(MOST).map(|claim| {
        let uid = text(&claim.object["metadata"]["uid"]);
        self::claim(claim, keys.remove(&uid).unwrap_or_default())
    });
    let backend = |backend: &StoredObject| Backend {
        name: backend.name.clone(),
        endpoint: text(&backend.object["spec"]["endpoint"]),
        conditions: conditions(&backend.object),
    };
    View {
        now,
        ahead_seconds,
        armed,
        traffic,
        buckets,
        claim_count: of("bucketclaims").count(),
        claims: claims.collect(),
        backends: of("s3backends").take(MOST).map(backend).collect(),
    }
}

/// Keys by UID of the claim that they are of, each claim's oldest first.
fn keys<'a>(secrets: impl Iterator<Item = &'a StoredObject>, now: Timestamp) -> BTreeMap<String, Vec<Key>> {
    let mut keys: BTreeMap<String, Vec<Key>> = BTreeMap::new();
    for secret in secrets {
        let labels = &secret.object["metadata"]["labels"];
        if labels[wire::ROLE] == Role::VirtualCredential.as_str() {
            keys.entry(text(&labels[wire::CLAIM_UID])).or_default().push(key(&secret.object, now));
        }
    }
    for keys in keys.values_mut() {
        keys.sort_by_key(|key| key.generation.parse::<u64>().unwrap_or_default());
    }
    keys
}

fn claim(claim: &StoredObject, keys: Vec<Key>) -> Claim {
    let status = &claim.object["status"];
    let phase = text(&status["phase"]);
    Claim {
        namespace: claim.namespace.clone(),
        name: claim.name.clone(),
        phase: if phase.is_empty() { "Pending".to_owned() } else { phase },
        backend: text(&claim.object["spec"]["backendRef"]["name"]),
        bucket: text(&status["bucketName"]),
        conditions: conditions(&claim.object),
        keys,
    }
}

/// A key, without its secret.
fn key(secret: &Value, now: Timestamp) -> Key {
    let metadata = &secret["metadata"];
    let until = metadata["annotations"][wire::EXPIRES_AT].as_str();
    Key {
        id: text(&metadata["labels"][wire::ACCESS_KEY_ID]),
        generation: text(&metadata["labels"][wire::ROTATION_GENERATION]),
        from: text(&metadata["creationTimestamp"]),
        until: until.map(str::to_owned),
        over: until.and_then(|until| until.parse::<Timestamp>().ok()).is_some_and(|until| until <= now),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn at(now: &str) -> Beside {
        let now = now.parse().expect("it is a time");
        Beside { now, ahead_seconds: 0, armed: String::new(), traffic: Vec::new(), buckets: Vec::new() }
    }

    fn stored(plural: &str, namespace: &str, name: &str, object: Value) -> StoredObject {
        let (group, plural) = (String::new(), plural.to_owned());
        StoredObject { group, plural, namespace: namespace.to_owned(), name: name.to_owned(), object: Arc::new(object) }
    }

    fn vc(name: &str, generation: &str, until: Option<&str>) -> StoredObject {
        let object = json!({
            "metadata": {
                "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": {wire::EXPIRES_AT: until},
                "labels": {
                    wire::ROLE: Role::VirtualCredential.as_str(), wire::CLAIM_UID: "u",
                    wire::ACCESS_KEY_ID: name, wire::ROTATION_GENERATION: generation,
                },
            },
            "data": {"secret_access_key": "aHVzaC1odXNo"},
        });
        stored("secrets", OPERATOR_NAMESPACE, name, object)
    }

    #[test]
    fn a_claim_is_shown_with_its_keys_in_order_and_none_of_their_secrets() {
        let claim = json!({"metadata": {"uid": "u"}, "spec": {"backendRef": {"name": "main"}}});
        let objects = [
            vc("second", "10", None),
            vc("first", "9", Some("2026-01-02T00:00:00Z")),
            stored("bucketclaims", "team-a", "photos", claim),
        ];
        let view = view(&objects, at("2026-01-02T00:00:00Z"));
        let shown = &view.claims[0];
        assert_eq!((shown.phase.as_str(), shown.backend.as_str()), ("Pending", "main"));
        let keys: Vec<_> = shown.keys.iter().map(|key| (key.id.as_str(), key.over)).collect();
        assert_eq!(keys, [("first", true), ("second", false)]);
        let text = serde_json::to_string(&view).expect("it is JSON");
        assert!(!text.contains("hush") && !text.contains("aHVzaC"), "{text}");
    }

    #[test]
    fn of_many_claims_a_hundred_are_shown_and_all_are_counted() {
        let claims = (0..250).map(|number| stored("bucketclaims", "a", &format!("c{number:03}"), json!({})));
        let view = view(&claims.collect::<Vec<_>>(), at("2026-01-02T00:00:00Z"));
        assert_eq!((view.claims.len(), view.claim_count), (MOST, 250));
    }
}
