//! Accesses that an operator doesn't serve, or no longer serves: their keys end, and their status
//! reveals nothing that isn't for their namespace (spec §8).

use std::time::Duration;

use rstest::rstest;
use serde_json::json;
use stowage_operator::Config;
use stowage_operator::api::wire::{REVOKE, SERVED_BY};
use stowage_world::determinism::run_seeded;
use stowage_world::{OPERATOR_NAMESPACE, World};

use crate::installations::{OTHER, annotate, both, delete_of, key, other, reason, start, until, world};
use crate::support::{access_with, backend, claim, claim_on, condition, object, ready, secrets, works};

// covers: 8.key.trusted
#[test]
fn an_access_whose_namespace_is_trusted_by_now_is_revoked_all_the_same() {
    run_seeded(1, || async {
        let world = world().await;
        let before = start(&world, world.config());
        both(&world).await;
        let leaked = key(&world, "reader-key");
        before.abort();
        let _operator = start(&world, Config { trusted_namespaces: ["team-a".to_owned()].into(), ..world.config() });
        let is_told = |world: &World| reason(world, "bucketaccesses", "reader") == "OperatorNamespace";
        until(&world, "it is told", is_told).await;
        assert_eq!(secrets(&world, OPERATOR_NAMESPACE, "access-credential").len(), 1, "nobody asked");
        annotate(&world, "bucketaccesses", "reader", REVOKE, "leaked");
        world.pass(Duration::from_secs(10)).await;
        assert!(!works(&leaked, "team-a-photos").await);
        assert!(secrets(&world, OPERATOR_NAMESPACE, "access-credential").is_empty());
        assert!(is_told(&world));
    });
}

/// A tenant can easily create a claim that no operator serves.
// covers: 8.servedBy.claim
#[test]
fn an_access_that_points_at_a_claim_with_its_owners_note_is_not_handed_over() {
    run_seeded(1, || async {
        let world = world().await;
        let _operator = start(&world, world.config());
        both(&world).await;
        let leaked = key(&world, "reader-key");
        world.apply(&world.kube(), &noted(&claim("team-a", "decoy"), "nobody/nothing")).await;
        world.pass(Duration::from_secs(5)).await;
        assert!(world.cluster.change("bucketaccesses", "team-a", "reader", |access| {
            access["metadata"]["annotations"][SERVED_BY] = "nobody/nothing".into();
            access["spec"]["buckets"] = json!([{"claimRef": {"name": "decoy"}}]);
        }));
        until(&world, "it is told", |world| reason(world, "bucketaccesses", "reader") == "ServedByAnother").await;
        annotate(&world, "bucketaccesses", "reader", REVOKE, "leaked");
        world.pass(Duration::from_secs(10)).await;
        assert!(!works(&leaked, "team-a-photos").await);
        assert!(object(&world, "bucketaccesses", "team-a", "reader")["status"]["accessKeyId"].is_null());
        assert_ne!(reason(&world, "bucketaccesses", "reader"), "Open");
        delete_of(&world, "bucketaccesses", "reader").await;
        until(&world, "it is gone", |world| object(world, "bucketaccesses", "team-a", "reader").is_null()).await;
    });
}

/// Adds the annotation with this operator to a manifest.
fn noted(manifest: &str, operator: &str) -> String {
    manifest.replace("metadata: {", &format!("metadata: {{annotations: {{{SERVED_BY}: {operator}}}, "))
}

/// Returns an access of `team-b` whose annotation names no real operator.
fn noted_access(entries: &str) -> String {
    noted(&access_with("team-b", "reader", &format!("buckets: [{entries}]")), "nobody/nothing")
}

// covers: 8.servedBy.silent, 8.sharing.silent
#[rstest]
#[case::there("{claimRef: {namespace: team-a, name: photos}}")]
#[case::not_there("{claimRef: {namespace: team-a, name: nothing}}")]
#[case::a_bucket("{bucketRef: {backend: main, name: archive}}")]
#[case::no_backend("{bucketRef: {backend: nowhere, name: archive}}")]
fn a_noted_access_is_not_told_whether_there_is_what_nobody_shares_with_it(#[case] entry: &'static str) {
    run_seeded(1, || async move {
        let world = world().await;
        let _operator = start(&world, world.config());
        both(&world).await;
        world.apply(&world.kube(), &noted_access(entry)).await;
        world.pass(Duration::from_secs(600)).await;
        let told = object(&world, "bucketaccesses", "team-b", "reader");
        assert!(told["status"]["conditions"].is_null() && told["metadata"]["finalizers"].is_null(), "{told}");
        // Once the claim is shared, its existence is no longer hidden.
        assert!(world.cluster.change("bucketclaims", "team-a", "photos", |claim| {
            claim["spec"]["sharing"] = json!([{"namespaces": {"names": ["team-b"]}, "maxMode": "ReadOnly"}]);
        }));
        world.pass(Duration::from_secs(60)).await;
        let told = condition(&object(&world, "bucketaccesses", "team-b", "reader"), "Ready");
        assert_eq!(told == "ServedByAnother", entry.contains("photos"), "{told}");
    });
}

// covers: 8.servedBy.silent, 8.servedBy.leftBehind
#[test]
fn two_operators_tell_the_same_of_an_access_that_names_what_each_of_them_serves() {
    run_seeded(1, || async {
        let world = world().await;
        let _first = start(&world, world.config());
        both(&world).await;
        let operator = format!("{OTHER}/{}", world.operator().as_str().split_once('/').expect("two parts").1);
        let second = noted(&backend("second", "http://second.example:9000", ""), &operator);
        world.apply(&world.kube(), &second).await;
        let _second = start(&world, other(&world));
        for spec in [claim_on("main", "team-b", "one", ""), claim_on("second", "team-b", "two", "bucketName: two")] {
            world.apply(&world.kube(), &spec).await;
        }
        for name in ["one", "two"] {
            until(&world, "it is bound", |world| ready(world, "team-b", name) == "Bound").await;
        }
        world.apply(&world.kube(), &noted_access("{claimRef: {name: one}}, {claimRef: {name: two}}")).await;
        let is_told = |world: &World| {
            condition(&object(world, "bucketaccesses", "team-b", "reader"), "Ready") == "ServedByAnother"
        };
        until(&world, "it is told", is_told).await;
        let access = |world: &World| object(world, "bucketaccesses", "team-b", "reader");
        let told = access(&world)["status"].to_string();
        assert!(!told.contains(&operator) && !told.contains(world.operator().as_str()), "{told}");
        world.pass(Duration::from_secs(120)).await;
        let version = access(&world)["metadata"]["resourceVersion"].clone();
        world.pass(Duration::from_secs(3600)).await;
        assert_eq!(access(&world)["metadata"]["resourceVersion"], version, "they write in turns");
    });
}
