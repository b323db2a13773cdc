//! Tests of the tables and the watches.

mod buckets;
mod following;
mod keys;
mod stores;

use std::collections::BTreeSet;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::DeserializeGuard;
use kube::runtime::watcher::Event;
use serde_json::{Value, json};
use stowage_api::{BucketName, BucketRecord, ClaimUid, CredentialFacts, Endpoint, SecretKey, Unlabelled, wire};

use super::*;

const NAMESPACE: &str = "stowage-system";
const HERE: &str = "http://s3.example:9000";
const THERE: &str = "http://other.example";

fn setting(unlabelled: Unlabelled) -> Setting {
    Setting { namespaces: BTreeSet::from([NAMESPACE.to_owned(), "vault".to_owned()]), unlabelled }
}

fn tables() -> Tables {
    Tables::new(setting(Unlabelled::Refused))
}

fn endpoint(url: &str) -> Endpoint {
    Endpoint::parse(url).expect("a URL")
}

fn bucket(name: &str) -> BucketName {
    BucketName::parse(name).expect("a name")
}

fn set(secret: &mut Secret, key: &str, value: &str) {
    secret.data.get_or_insert_default().insert(key.to_owned(), ByteString(value.into()));
}

/// Sets this endpoint in a Secret, or removes it, as older operators recorded none.
fn note(secret: &mut Secret, noted: Option<&str>) {
    match noted {
        Some(url) => set(secret, wire::ENDPOINT, url),
        None => drop(secret.data.get_or_insert_default().remove(wire::ENDPOINT)),
    }
}

/// Returns a record of the bucket `photos`.
fn held(uid: &str, backend: &str, url: &str) -> BucketRecord {
    let (uid, backend) = (ClaimUid::new(uid), backend.to_owned());
    BucketRecord { uid, backend, endpoint: endpoint(url), public: true, ..BucketRecord::fixture() }
}

fn facts(uid: &str, generation: u64) -> CredentialFacts {
    held(uid, "main", HERE).key_fixture(generation)
}

/// Returns a key of this claim to the bucket `photos` on `main`, with this endpoint, if any.
fn credential(uid: &str, generation: u64, noted: Option<&str>) -> Secret {
    let key = SecretKey::new("s3cr3t-of-a-test-0123456789-abcdefghijkl".to_owned());
    let mut secret = facts(uid, generation).content(NAMESPACE, Some(&key)).to_secret();
    note(&mut secret, noted);
    secret
}

fn id(uid: &str, generation: u64) -> String {
    facts(uid, generation).access_key_id().to_string()
}

/// Returns the binding that grants public access to the bucket `photos`.
fn binding(uid: &str, backend: &str, noted: Option<&str>) -> Secret {
    let mut secret = held(uid, backend, HERE).binding_fixture(5).content(NAMESPACE).to_secret();
    note(&mut secret, noted);
    secret
}

/// Returns the record of the bucket `photos`, created at this second.
fn record(uid: &str, backend: &str, url: &str, second: Option<i64>) -> Secret {
    let mut secret = held(uid, backend, url).content(NAMESPACE).to_secret();
    let time = |second| jiff::Timestamp::from_second(second).expect("a time");
    secret.metadata.creation_timestamp = second.map(|second| Time(time(second)));
    secret
}

/// Returns a backend, with these additional fields in its spec.
fn backend(name: &str, url: &str, more: Value) -> SeenBackend {
    let mut raw = json!({
        "apiVersion": "broker.stowage.io/v1alpha1", "kind": "S3Backend", "metadata": {"name": name},
        "spec": {"endpoint": url, "adminCredentialsSecretRef": {"name": "admin", "namespace": "vault"}},
    });
    let spec = raw["spec"].as_object_mut().expect("it is one");
    spec.extend(more.as_object().cloned().expect("fields"));
    serde_json::from_value(raw).expect("whatever it is")
}

fn name(namespace: &str, name: &str) -> SecretName {
    SecretName { namespace: namespace.to_owned(), name: name.to_owned() }
}

/// Returns a Secret with credentials, opted in for these endpoints.
fn store_secret(at: &SecretName, key: &str, endpoints: &str) -> Secret {
    let metadata = json!({
        "name": at.name, "namespace": at.namespace, "resourceVersion": "7",
        "labels": {wire::BACKEND_CREDENTIALS: "true", "app": "x"}, "annotations": {wire::ENDPOINTS: endpoints},
    });
    let mut secret: Secret = serde_json::from_value(json!({"metadata": metadata})).expect("a Secret");
    set(&mut secret, "AWS_ACCESS_KEY_ID", key);
    set(&mut secret, "AWS_SECRET_ACCESS_KEY", &format!("secret of {key}"));
    secret
}

/// Returns the events of a list of these objects.
fn list<K>(objects: impl IntoIterator<Item = K>) -> impl Iterator<Item = Event<K>> {
    let objects: Vec<Event<K>> = objects.into_iter().map(Event::InitApply).collect();
    [Event::Init].into_iter().chain(objects).chain([Event::InitDone])
}

/// Tables with one store and its key, and these internal Secrets.
fn whole(secrets: impl IntoIterator<Item = Secret>, backends: impl IntoIterator<Item = SeenBackend>) -> Tables {
    let mut tables = tables();
    list(secrets).for_each(|event| tables.apply(event));
    list(backends).for_each(|event| tables.apply_backend(event));
    let admin = name("vault", "admin");
    let secret = store_secret(&admin, "AKADMIN", &format!("{HERE} {THERE}"));
    list([secret]).for_each(|event| tables.apply_store_secret(&admin, event));
    tables
}

/// Returns an S3Backend with a value that this version doesn't know.
fn undecodable(name: &str) -> SeenBackend {
    let backend = backend(name, HERE, json!({"addressingStyle": "diagonal"}));
    assert!(matches!(backend, DeserializeGuard(Err(_))));
    backend
}
