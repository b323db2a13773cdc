//! Two installations in one cluster, and a read-only operator.

use std::future::pending;
use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};
use stowage_operator::api::wire::{REVOKE, SERVED_BY};
use stowage_operator::{Clock, Config, Metrics, Parts};
use stowage_world::determinism::run_seeded;
use stowage_world::{Accesses, OPERATOR_NAMESPACE, Options, World};
use tokio::task::JoinHandle;

use crate::support::{
    BASE, OneStore, access_with, claim, claim_with, condition, data, message, object, ready, secrets, works,
};

pub const OTHER: &str = "other-system";

/// Starts an operator with this configuration.
pub fn start(world: &World, config: Config) -> JoinHandle<()> {
    let now = world.clock.clock();
    let parts = Parts {
        client: world.kube(),
        connect: std::sync::Arc::new(OneStore(world.store.clone())),
        clock: Clock::new(move || now()),
        uptime: world.uptime(),
        metrics: Metrics::new(),
        ready: None,
    };
    tokio::spawn(async move {
        stowage_operator::run(config, parts, pending()).await.expect("it knows its installation");
    })
}

/// The configuration of an operator in another namespace.
pub fn other(world: &World) -> Config {
    Config {
        operator_namespace: OTHER.to_owned(),
        trusted_namespaces: [OPERATOR_NAMESPACE.to_owned()].into(),
        ..world.config()
    }
}

pub async fn world() -> World {
    let world = World::new(Options { seed: 1, accesses: Accesses::Served, ..Options::default() });
    assert!(world.cluster.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OTHER}})));
    world.apply(&world.kube(), BASE).await;
    // No operator has served it yet.
    world.cluster.change("s3backends", "", "main", |backend| {
        backend["metadata"]["annotations"] = Value::Null;
    });
    world
}

pub async fn until(world: &World, what: &str, fact: impl Fn(&World) -> bool) {
    assert!(world.until(fact).await.is_ok(), "it never came to be that {what}");
}

fn delete(world: &World, name: &str) -> impl Future<Output = ()> {
    delete_of(world, "bucketclaims", name)
}

pub fn delete_of(world: &World, plural: &str, name: &str) -> impl Future<Output = ()> {
    let uri = format!("/apis/broker.stowage.io/v1alpha1/namespaces/team-a/{plural}/{name}");
    let (client, request) = (world.kube(), http::Request::delete(uri).body(Vec::new()).expect("a request"));
    async move {
        client.request::<Value>(request).await.expect("it is there");
    }
}

/// Writes another operator into the annotation, as an administrator does for a takeover.
pub fn take_over(world: &World, plural: &str, namespace: &str, name: &str, operator: &str) {
    assert!(world.cluster.change(plural, namespace, name, |object| {
        object["metadata"]["annotations"][SERVED_BY] = operator.into();
    }));
}

// covers: 1.backend.servedBy, 1.claim.servedBy
#[test]
fn of_two_installations_one_serves_a_backend_and_its_claims() {
    run_seeded(1, || async {
        let world = world().await;
        let first = start(&world, world.config());
        until(&world, "somebody serves it", |world| {
            object(world, "s3backends", "", "main")["metadata"]["annotations"][SERVED_BY] == world.operator().as_str()
        })
        .await;
        let second = start(&world, other(&world));
        world.apply(&world.kube(), &claim_with("team-a", "photos", "deletionPolicy: Delete, forceDelete: true")).await;
        until(&world, "it is bound", |world| ready(world, "team-a", "photos") == "Bound").await;
        let note = &object(&world, "bucketclaims", "team-a", "photos")["metadata"]["annotations"][SERVED_BY];
        assert_eq!(*note, world.operator().as_str());
        assert!(secrets(&world, OTHER, "bucket-record").is_empty());
        let told = |world: &World| {
            let events = world.facts();
            let mut events = events.all("events");
            events.any(|(_, _, event)| event["reason"] == "ServedByAnother" && event["regarding"]["name"] == "main")
        };
        until(&world, "it is told", told).await;
        // The operator that serves it has ended, so no operator removes the claim's finalizer.
        first.abort();
        delete(&world, "photos").await;
        world.pass(Duration::from_secs(3600)).await;
        assert!(!object(&world, "bucketclaims", "team-a", "photos").is_null());
        assert!(world.store.bucket("team-a-photos").is_some());
        assert_eq!(secrets(&world, OPERATOR_NAMESPACE, "virtual-credential").len(), 1);
        second.abort();
        let _first = start(&world, world.config());
        until(&world, "it is gone", |world| object(world, "bucketclaims", "team-a", "photos").is_null()).await;
        assert!(world.store.bucket("team-a-photos").is_none());
    });
}

// covers: 1.backend.servedBy
#[test]
fn a_claim_whose_backend_was_taken_over_keeps_what_it_has_and_says_so() {
    run_seeded(1, || async {
        let world = world().await;
        let _operator = start(&world, world.config());
        world.apply(&world.kube(), &claim_with("team-a", "photos", "deletionPolicy: Delete")).await;
        until(&world, "it is bound", |world| ready(world, "team-a", "photos") == "Bound").await;
        take_over(&world, "s3backends", "", "main", "other-system/elsewhere");
        until(&world, "it is told", |world| ready(world, "team-a", "photos") == "BackendNotReady").await;
        assert!(message(&world, "team-a", "photos").contains("other-system/elsewhere"));
        assert_eq!(secrets(&world, OPERATOR_NAMESPACE, "virtual-credential").len(), 1);
        // A new claim isn't served here.
        world.apply(&world.kube(), &claim("team-a", "films")).await;
        world.pass(Duration::from_secs(1200)).await;
        let films = object(&world, "bucketclaims", "team-a", "films");
        assert!(films["status"]["conditions"].is_null() && films["metadata"]["finalizers"].is_null(), "{films}");
        delete(&world, "photos").await;
        until(&world, "it waits", |world| ready(world, "team-a", "photos") == "DeletionBlocked").await;
        assert!(world.store.bucket("team-a-photos").is_some());
        let operator = world.operator();
        take_over(&world, "s3backends", "", "main", operator.as_str());
        until(&world, "it is gone", |world| object(world, "bucketclaims", "team-a", "photos").is_null()).await;
    });
}

/// Sets an annotation of an object in `team-a`, as its owner may.
pub fn annotate(world: &World, plural: &str, name: &str, key: &str, value: &str) {
    assert!(world.cluster.change(plural, "team-a", name, |object| {
        object["metadata"]["annotations"][key] = value.into();
    }));
}

/// Returns the reason of `Ready` of an object in `team-a`.
pub fn reason(world: &World, plural: &str, name: &str) -> String {
    condition(&object(world, plural, "team-a", name), "Ready")
}

/// Returns true if an Event with this reason is about an object of this name.
fn is_told(world: &World, reason: &str, name: &str) -> bool {
    let facts = world.facts();
    facts.all("events").any(|(_, _, event)| event["reason"] == reason && event["regarding"]["name"] == name)
}

/// A client with the key in a consumer Secret of `team-a`.
pub fn key(world: &World, secret: &str) -> aws_sdk_s3::Client {
    let held = data(world, "team-a", secret);
    world.tenant(&held["AWS_ACCESS_KEY_ID"], &held["AWS_SECRET_ACCESS_KEY"], &held["AWS_REGION"])
}

/// Applies the claim `photos` until it is bound, and the access `reader` to its bucket until it is
/// open.
pub async fn both(world: &World) {
    world.apply(&world.kube(), &claim("team-a", "photos")).await;
    until(world, "it is bound", |world| ready(world, "team-a", "photos") == "Bound").await;
    world.apply(&world.kube(), &access_with("team-a", "reader", "buckets: [{claimRef: {name: photos}}]")).await;
    until(world, "it is open", |world| reason(world, "bucketaccesses", "reader") == "Open").await;
    world.pass(Duration::from_secs(120)).await;
}

// covers: 1.claim.servedBy.overruled, 8.servedBy
#[rstest]
#[case::claim("bucketclaims", "photos", "photos-s3", "virtual-credential")]
#[case::access("bucketaccesses", "reader", "reader-key", "access-credential")]
fn a_note_that_its_owner_writes_keeps_no_key_alive(
    #[case] plural: &'static str,
    #[case] name: &'static str,
    #[case] secret: &'static str,
    #[case] role: &'static str,
) {
    run_seeded(1, || async move {
        let world = world().await;
        let _operator = start(&world, world.config());
        both(&world).await;
        let leaked = key(&world, secret);
        assert!(works(&leaked, "team-a-photos").await);
        annotate(&world, plural, name, SERVED_BY, "nobody/nothing");
        until(&world, "it is told", |world| reason(world, plural, name) == "ServedByAnother").await;
        until(&world, "there is an Event", |world| is_told(world, "ServedByAnother", name)).await;
        annotate(&world, plural, name, REVOKE, "leaked");
        world.pass(Duration::from_secs(10)).await;
        assert!(!works(&leaked, "team-a-photos").await, "what leaked still works");
        assert!(works(&key(&world, secret), "team-a-photos").await, "the next key works");
        world.pass(Duration::from_secs(120)).await;
        let version = world.cluster.resource_version();
        world.pass(Duration::from_secs(3600)).await;
        assert_eq!(world.cluster.resource_version(), version, "at rest nothing is written");
        delete_of(&world, plural, name).await;
        until(&world, "it is gone", |world| object(world, plural, "team-a", name).is_null()).await;
        assert!(secrets(&world, OPERATOR_NAMESPACE, role).is_empty());
        world.pass(Duration::from_secs(60)).await;
        if plural == "bucketaccesses" {
            assert_eq!(reason(&world, "bucketclaims", "photos"), "Bound");
        } else {
            assert_ne!(reason(&world, "bucketaccesses", "reader"), "Open");
        }
    });
}

// covers: 1.claim.servedBy.overruled
#[test]
fn an_object_tells_of_a_note_no_more_once_it_is_taken_off() {
    run_seeded(1, || async {
        let world = world().await;
        let _operator = start(&world, world.config());
        both(&world).await;
        for (plural, name, well) in [("bucketclaims", "photos", "Bound"), ("bucketaccesses", "reader", "Open")] {
            annotate(&world, plural, name, SERVED_BY, "nobody/nothing");
            until(&world, "it is told", |world| reason(world, plural, name) == "ServedByAnother").await;
            world.cluster.change(plural, "team-a", name, |object| {
                object["metadata"]["annotations"].as_object_mut().expect("it has some").remove(SERVED_BY);
            });
            until(&world, "all is well", |world| reason(world, plural, name) == well).await;
        }
    });
}

// covers: 8.servedBy.begun
#[test]
fn an_access_to_what_another_operator_serves_is_not_begun_with() {
    run_seeded(1, || async {
        let world = world().await;
        let first = start(&world, world.config());
        world.apply(&world.kube(), &claim("team-a", "photos")).await;
        until(&world, "it is bound", |world| ready(world, "team-a", "photos") == "Bound").await;
        first.abort();
        let _second = start(&world, other(&world));
        world.pass(Duration::from_secs(60)).await;
        world.apply(&world.kube(), &access_with("team-a", "reader", "buckets: [{claimRef: {name: photos}}]")).await;
        world.pass(Duration::from_secs(1200)).await;
        assert!(object(&world, "bucketaccesses", "team-a", "reader")["metadata"]["finalizers"].is_null());
        let _first = start(&world, world.config());
        until(&world, "it is open", |world| reason(world, "bucketaccesses", "reader") == "Open").await;
    });
}

/// The guide has the command for every kind with that annotation.
#[test]
fn the_guide_hands_over_each_kind_that_an_operator_notes_itself_on() {
    let guide = include_str!("../../../docs/guide/restore.md");
    for kind in ["s3backends --all", "bucketclaims --all --all-namespaces", "bucketaccesses --all --all-namespaces"] {
        let line = format!("kubectl annotate {kind} --overwrite {SERVED_BY}=");
        assert!(guide.contains(&line), "{line}");
    }
}

// covers: 8.servedBy.leftBehind, 1.claim.servedBy.handedOver
#[test]
fn an_access_that_a_takeover_forgot_says_so_and_goes_on_once_it_is_handed_over() {
    run_seeded(1, || async {
        let world = world().await;
        let first = start(&world, world.config());
        both(&world).await;
        let before = key(&world, "reader-key");
        first.abort();
        let config = other(&world);
        let operator = format!("{OTHER}/{}", world.operator().as_str().split_once('/').expect("two parts").1);
        let _second = start(&world, config);
        take_over(&world, "s3backends", "", "main", &operator);
        take_over(&world, "bucketclaims", "team-a", "photos", &operator);
        until(&world, "it is told", |world| reason(world, "bucketaccesses", "reader") == "ServedByAnother").await;
        until(&world, "there is an Event", |world| is_told(world, "ServedByAnother", "reader")).await;
        let told = object(&world, "bucketaccesses", "team-a", "reader")["status"].clone();
        assert!(told["conditions"].to_string().contains("to have the access taken over"), "{told}");
        assert!(!told.to_string().contains(&operator), "it isn't told who serves the claim: {told}");
        world.pass(Duration::from_secs(300)).await;
        let version = world.cluster.resource_version();
        world.pass(Duration::from_secs(3600)).await;
        assert_eq!(world.cluster.resource_version(), version, "at rest nothing is written");
        take_over(&world, "bucketaccesses", "team-a", "reader", &operator);
        until(&world, "it is open again", |world| reason(world, "bucketaccesses", "reader") == "Open").await;
        assert_eq!(secrets(&world, OTHER, "access-credential").len(), 1);
        // The first operator is started again by mistake. It writes nothing, but revokes its keys
        // on request.
        let _back = start(&world, world.config());
        world.pass(Duration::from_secs(1200)).await;
        assert_eq!(reason(&world, "bucketaccesses", "reader"), "Open");
        assert!(works(&before, "team-a-photos").await, "nobody asked");
        annotate(&world, "bucketaccesses", "reader", REVOKE, "leaked");
        annotate(&world, "bucketclaims", "photos", REVOKE, "leaked");
        world.pass(Duration::from_secs(30)).await;
        assert!(!works(&before, "team-a-photos").await);
        assert!(secrets(&world, OPERATOR_NAMESPACE, "access-credential").is_empty());
        assert!(secrets(&world, OPERATOR_NAMESPACE, "virtual-credential").is_empty());
        assert_eq!(secrets(&world, OTHER, "access-credential").len(), 1);
    });
}

// covers: 3.readOnly
#[test]
fn an_operator_that_is_read_only_changes_nothing() {
    run_seeded(1, || async {
        let world = world().await;
        let operator = start(&world, world.config());
        for name in ["photos", "films", "notes"] {
            let spec = "deletionPolicy: Delete, forceDelete: true, anonymousAccess: {mode: ReadOnly}";
            world.apply(&world.kube(), &claim_with("team-a", name, spec)).await;
            until(&world, "it is bound", |world| ready(world, "team-a", name) == "Bound").await;
            world.store.put_object(&format!("team-a-{name}"), "cat", "meow");
        }
        operator.abort();
        world.pass(Duration::from_secs(10)).await;
        // Everything is due: a rotation, a deletion, an orphan, a new claim, a repair, a move.
        world.cluster.change("bucketclaims", "team-a", "photos", |claim| {
            claim["metadata"]["annotations"]["broker.stowage.io/rotate"] = "now".into();
        });
        delete(&world, "films").await;
        assert!(world.cluster.remove("bucketclaims", "team-a", "notes").is_some());
        assert!(world.cluster.remove("secrets", "team-a", "photos-s3").is_some());
        world.apply(&world.kube(), &claim("team-a", "late")).await;
        let (version, buckets) = (world.cluster.resource_version(), world.store.buckets());
        let _operator = start(&world, Config { read_only: true, ..world.config() });
        world.pass(Duration::from_secs(7200)).await;
        assert_eq!(world.cluster.resource_version(), version, "something was written");
        assert_eq!(world.store.buckets(), buckets);
        assert!(
            ["photos", "films", "notes"].iter().all(|name| world.store.objects(&format!("team-a-{name}")).len() == 1)
        );
    });
}
