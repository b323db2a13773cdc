//! The state of a simulator as its page shows it: a pure function of the stored objects.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kube_sim::{Cluster, StoredObject};
use serde::Serialize;
use serde_json::Value;
use stowage_operator::api::wire::{self, Role};
use stowage_world::OPERATOR_NAMESPACE;

/// Maximum number of shown objects per kind, and of buckets.
const MOST: usize = 100;

/// The data of the page.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct View {
    /// The simulator's time.
    pub(super) now: Timestamp,
    /// Seconds that the simulator's time is ahead of the machine's.
    pub(super) ahead_seconds: i64,
    /// Faults that have not met a call yet.
    pub(super) armed: String,
    /// The gateway's last requests, newest first.
    pub(super) traffic: Vec<Value>,
    /// Sorted by store and name.
    pub(super) buckets: Vec<Bucket>,
    /// Number of claims, including those that aren't shown.
    pub(super) claim_count: usize,
    /// Sorted by namespace and name.
    pub(super) claims: Vec<Claim>,
    /// Number of accesses, including those that aren't shown.
    pub(super) access_count: usize,
    /// Sorted by namespace and name.
    pub(super) accesses: Vec<Access>,
    /// Number of ObjectBucketClaims, including those that aren't shown.
    pub(super) obc_count: usize,
    /// Sorted by namespace and name.
    pub(super) obcs: Vec<ObjectBucketClaim>,
    /// Sorted by name.
    pub(super) backends: Vec<Backend>,
}

/// Data of the view that doesn't come from the cluster's objects.
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
    /// Number of keys whose newest version is an object.
    pub(super) objects: usize,
}

/// A BucketClaim as the page shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Claim {
    namespace: String,
    name: String,
    /// The phase in its status, or `Pending` without one.
    phase: String,
    backend: String,
    /// The bucket that it is bound to.
    bucket: String,
    conditions: Vec<Condition>,
    /// Keys of the claim, oldest first.
    keys: Vec<Key>,
}

/// A BucketAccess as the page shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Access {
    /// The id in the gateway's access log.
    uid: String,
    namespace: String,
    name: String,
    /// The Secret with its key; empty if there is none yet.
    secret: String,
    /// Entries in the order of the spec.
    entries: Vec<Entry>,
    conditions: Vec<Condition>,
    /// Keys of the access, oldest first.
    keys: Vec<Key>,
}

/// An entry of an access, and its status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Entry {
    /// The claim, `namespace/name`; empty if the entry names a bucket.
    claim: String,
    /// The bucket, if the status or the spec names it.
    bucket: String,
    /// The backend, if the status or the spec names it.
    backend: String,
    prefix: String,
    /// The mode that the key has, or the requested one while the entry is closed.
    mode: String,
    /// `Open` or `Closed`; empty before the first reconciliation.
    state: String,
    /// The reason why it is closed.
    reason: String,
}

/// An ObjectBucketClaim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ObjectBucketClaim {
    namespace: String,
    name: String,
    class: String,
    bucket: String,
    /// The phase in its status, or `Pending` without one.
    phase: String,
}

/// A condition of a claim, an access or a backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Condition {
    r#type: String,
    status: String,
    reason: String,
    message: String,
    last_transition_time: String,
}

/// A key of a claim or an access, and its lifetime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Key {
    id: String,
    generation: String,
    from: String,
    /// Absent for a key without an expiry.
    until: Option<String>,
    /// True if the key has expired, though its Secret still exists.
    over: bool,
}

/// An S3Backend as the page shows it.
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

/// The shown objects, and their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects {
    claims: First,
    accesses: First,
    obcs: First,
    backends: First,
    /// The internal Secrets of their keys.
    keys: Vec<StoredObject>,
}

/// The first objects of a resource, and the number of all.
type First = (Vec<StoredObject>, usize);

impl Objects {
    /// Reads the objects from a cluster. Objects beyond the limits are not read.
    pub(super) fn of(cluster: &Cluster) -> Self {
        let first = |plural| cluster.first_objects(plural, MOST);
        let (claims, accesses) = (first("bucketclaims"), first("bucketaccesses"));
        let owned_by = |owners: &First, label| {
            let uids: BTreeSet<String> = owners.0.iter().map(|it| text(&it.object["metadata"]["uid"])).collect();
            cluster.labelled_objects("secrets", OPERATOR_NAMESPACE, label, |uid| uids.contains(uid))
        };
        let keys = [owned_by(&claims, wire::CLAIM_UID), owned_by(&accesses, wire::ACCESS_UID)].concat();
        Self { claims, accesses, obcs: first("objectbucketclaims"), backends: first("s3backends"), keys }
    }
}

/// Builds the view from the stored objects and the other data.
pub(super) fn view(objects: &Objects, beside: Beside) -> View {
    let Beside { now, ahead_seconds, armed, traffic, mut buckets } = beside;
    buckets.truncate(MOST);
    let mut keys = keys(&objects.keys, now);
    let mut keys_of = |owner: &StoredObject| keys.remove(&text(&owner.object["metadata"]["uid"])).unwrap_or_default();
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
        claim_count: objects.claims.1,
        claims: objects.claims.0.iter().map(|claim| self::claim(claim, keys_of(claim))).collect(),
        access_count: objects.accesses.1,
        accesses: objects.accesses.0.iter().map(|access| self::access(access, keys_of(access))).collect(),
        obc_count: objects.obcs.1,
        obcs: objects.obcs.0.iter().map(object_bucket_claim).collect(),
        backends: objects.backends.0.iter().map(backend).collect(),
    }
}

/// Returns the keys of each claim or access by its UID, sorted by generation.
fn keys(secrets: &[StoredObject], now: Timestamp) -> BTreeMap<String, Vec<Key>> {
    let mut keys: BTreeMap<String, Vec<Key>> = BTreeMap::new();
    for secret in secrets {
        let labels = &secret.object["metadata"]["labels"];
        let roles = [(Role::VirtualCredential, wire::CLAIM_UID), (Role::AccessCredential, wire::ACCESS_UID)];
        if let Some((_, owner)) = roles.iter().find(|(role, _)| labels[wire::ROLE] == role.as_str()) {
            keys.entry(text(&labels[*owner])).or_default().push(key(&secret.object, now));
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

fn access(access: &StoredObject, keys: Vec<Key>) -> Access {
    let (spec, status) = (&access.object["spec"], &access.object["status"]);
    let asked = spec["buckets"].as_array().into_iter().flatten().enumerate();
    Access {
        uid: text(&access.object["metadata"]["uid"]),
        namespace: access.namespace.clone(),
        name: access.name.clone(),
        secret: text(&status["boundSecretName"]),
        entries: asked.map(|(at, asked)| entry(&access.namespace, asked, &status["buckets"][at])).collect(),
        conditions: conditions(&access.object),
        keys,
    }
}

fn entry(namespace: &str, asked: &Value, told: &Value) -> Entry {
    let first = |one: &Value, other: &Value| if one.is_string() { text(one) } else { text(other) };
    let claim = &asked["claimRef"];
    Entry {
        claim: match claim["name"].as_str() {
            Some(name) => format!("{}/{name}", claim["namespace"].as_str().unwrap_or(namespace)),
            None => String::new(),
        },
        bucket: first(&told["bucket"], &asked["bucketRef"]["name"]),
        backend: first(&told["backend"], &asked["bucketRef"]["backend"]),
        prefix: text(&asked["prefix"]),
        mode: first(&told["mode"], &asked["mode"]),
        state: text(&told["state"]),
        reason: text(&told["reason"]),
    }
}

fn object_bucket_claim(claim: &StoredObject) -> ObjectBucketClaim {
    let spec = &claim.object["spec"];
    let phase = text(&claim.object["status"]["phase"]);
    ObjectBucketClaim {
        namespace: claim.namespace.clone(),
        name: claim.name.clone(),
        class: text(&spec["storageClassName"]),
        bucket: text(&spec["bucketName"]),
        phase: if phase.is_empty() { "Pending".to_owned() } else { phase },
    }
}

/// Returns a key, without its secret.
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

    /// Creates the Secret of a key whose owner has the UID `u`, in the label `owner`.
    fn key_of(role: Role, owner: &str, name: &str, generation: &str, until: Option<&str>) -> StoredObject {
        let object = json!({
            "metadata": {
                "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": {wire::EXPIRES_AT: until},
                "labels": {
                    wire::ROLE: role.as_str(), owner: "u",
                    wire::ACCESS_KEY_ID: name, wire::ROTATION_GENERATION: generation,
                },
            },
            "data": {"secret_access_key": "aHVzaC1odXNo"},
        });
        stored("secrets", OPERATOR_NAMESPACE, name, object)
    }

    fn vc(name: &str, generation: &str, until: Option<&str>) -> StoredObject {
        key_of(Role::VirtualCredential, wire::CLAIM_UID, name, generation, until)
    }

    #[test]
    fn a_claim_is_shown_with_its_keys_in_order_and_none_of_their_secrets() {
        let claim = json!({"metadata": {"uid": "u"}, "spec": {"backendRef": {"name": "main"}}});
        let objects = Objects {
            claims: (vec![stored("bucketclaims", "team-a", "photos", claim)], 1),
            keys: vec![vc("second", "10", None), vc("first", "9", Some("2026-01-02T00:00:00Z"))],
            ..Objects::default()
        };
        let view = view(&objects, at("2026-01-02T00:00:00Z"));
        let shown = &view.claims[0];
        assert_eq!((shown.phase.as_str(), shown.backend.as_str()), ("Pending", "main"));
        let keys: Vec<_> = shown.keys.iter().map(|key| (key.id.as_str(), key.over)).collect();
        assert_eq!(keys, [("first", true), ("second", false)]);
        let text = serde_json::to_string(&view).expect("it is JSON");
        assert!(!text.contains("hush") && !text.contains("aHVzaC"), "{text}");
    }

    #[test]
    fn an_access_is_shown_with_what_each_entry_asks_for_and_comes_to_and_with_no_secret() {
        let access = json!({
            "metadata": {"uid": "u"},
            "spec": {"buckets": [
                {"claimRef": {"name": "photos", "namespace": "team-a"}, "mode": "ReadOnly", "prefix": "raw/"},
                {"claimRef": {"name": "own"}, "mode": "ReadWrite"},
                {"bucketRef": {"backend": "main", "name": "films"}, "mode": "WriteOnly"},
            ]},
            "status": {"boundSecretName": "reader", "buckets": [
                {"bucket": "team-a-photos", "backend": "main", "mode": "ReadOnly", "state": "Open"},
                {"state": "Closed", "reason": "ClaimNotBound"},
            ]},
        });
        let key = key_of(Role::AccessCredential, wire::ACCESS_UID, "first", "1", None);
        let accesses = (vec![stored("bucketaccesses", "team-b", "reader", access)], 1);
        let objects = Objects { accesses, keys: vec![key], ..Objects::default() };
        let view = view(&objects, at("2026-01-02T00:00:00Z"));
        let shown = &view.accesses[0];
        assert_eq!((view.access_count, shown.secret.as_str(), shown.keys[0].id.as_str()), (1, "reader", "first"));
        let entries = shown.entries.iter().map(|it| {
            let of = [&it.claim, &it.bucket, &it.backend, &it.prefix, &it.mode, &it.state, &it.reason];
            of.map(String::as_str)
        });
        assert_eq!(
            entries.collect::<Vec<_>>(),
            [
                ["team-a/photos", "team-a-photos", "main", "raw/", "ReadOnly", "Open", ""],
                ["team-b/own", "", "", "", "ReadWrite", "Closed", "ClaimNotBound"],
                ["", "films", "main", "", "WriteOnly", "", ""],
            ]
        );
        let text = serde_json::to_string(&view).expect("it is JSON");
        assert!(!text.contains("hush") && !text.contains("aHVzaC"), "{text}");
    }

    #[test]
    fn an_object_bucket_claim_is_shown_with_its_phase() {
        let claim =
            json!({"spec": {"storageClassName": "buckets", "bucketName": "films"}, "status": {"phase": "Bound"}});
        let obcs = (vec![stored("objectbucketclaims", "team-a", "films", claim)], 1);
        let view = view(&Objects { obcs, ..Objects::default() }, at("2026-01-02T00:00:00Z"));
        let shown = &view.obcs[0];
        let told = [&shown.namespace, &shown.name, &shown.class, &shown.bucket, &shown.phase].map(String::as_str);
        assert_eq!((view.obc_count, told), (1, ["team-a", "films", "buckets", "films", "Bound"]));
    }
}
