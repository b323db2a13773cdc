//! Two installations in one cluster, and an operator that only looks.

use std::future::pending;
use std::time::Duration;

use serde_json::{Value, json};
use stowage_operator::api::wire::SERVED_BY;
use stowage_operator::{Clock, Config, Metrics, Parts};
use stowage_sim::determinism::run_seeded;
use stowage_sim::world::{OPERATOR_NAMESPACE, Options, World};
use tokio::task::JoinHandle;

use crate::support::{BASE, OneStore, claim, claim_with, message, object, ready, secrets};

const OTHER: &str = "other-system";

/// Lets an operator loose that is told this.
fn start(world: &World, config: Config) -> JoinHandle<()> {
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

/// An operator of another namespace.
fn other(world: &World) -> Config {
    Config {
        operator_namespace: OTHER.to_owned(),
        trusted_namespaces: [OPERATOR_NAMESPACE.to_owned()].into(),
        ..world.config()
    }
}

async fn world() -> World {
    let world = World::new(Options { seed: 1, ..Options::default() });
    assert!(world.cluster.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OTHER}})));
    world.apply(&world.kube(), BASE).await;
    // Nobody has served it yet.
    world.cluster.change("s3backends", "", "main", |backend| {
        backend["metadata"]["annotations"] = Value::Null;
    });
    world
}

async fn until(world: &World, what: &str, fact: impl Fn(&World) -> bool) {
    assert!(world.until(fact).await.is_ok(), "it never came to be that {what}");
}

fn delete(world: &World, name: &str) -> impl Future<Output = ()> {
    let uri = format!("/apis/broker.stowage.io/v1alpha1/namespaces/team-a/bucketclaims/{name}");
    let (client, request) = (world.kube(), http::Request::delete(uri).body(Vec::new()).expect("a request"));
    async move {
        client.request::<Value>(request).await.expect("it is there");
    }
}

/// Notes that another operator serves something, as an administrator does who takes over.
fn take_over(world: &World, plural: &str, namespace: &str, name: &str, operator: &str) {
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
        // The one that serves it is no more: nobody lets the claim go.
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
        // A new claim is nobody's here.
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
        // Everything is due: a rotation, a deletion, an orphan, a new claim, a repair, a move away.
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
