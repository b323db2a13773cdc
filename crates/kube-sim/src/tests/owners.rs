//! Passes of the garbage collector.

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, PostParams, PropagationPolicy};
use serde_json::json;

use super::*;

/// Creates a secret in `namespace` with these owners (kind, name, UID).
async fn owned(f: &Fixture, namespace: &str, name: &str, owners: &[(&str, &str, &str)]) {
    let references: Vec<Value> = owners
        .iter()
        .map(|(kind, name, uid)| {
            let api_version = if *kind == "Thing" { "example.io/v1" } else { "v1" };
            json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "blockOwnerDeletion": true})
        })
        .collect();
    let sent = secret_from(json!({"metadata": {"name": name, "ownerReferences": references}}));
    let api: Api<Secret> = Api::namespaced(f.client.clone(), namespace);
    api.create(&PostParams::default(), &sent).await.expect("created");
}

async fn secrets(f: &Fixture) -> Vec<String> {
    let all: Api<Secret> = Api::all(f.client.clone());
    all.list(&Default::default()).await.expect("a list").iter().map(|secret| secret.name_any()).collect()
}

fn collect_all(f: &Fixture) {
    while f.cluster.collect_garbage() > 0 {}
}

#[tokio::test]
async fn dependants_go_when_their_owner_is_gone() {
    let f = Fixture::new().await;
    let uid = f.make_thing("a").await.uid().expect("a uid");
    owned(&f, "ns", "mine", &[("Thing", "a", &uid)]).await;
    owned(&f, "ns", "dangling", &[("Thing", "a", "another-uid")]).await;
    owned(&f, "ns", "free", &[]).await;
    assert_eq!(f.cluster.collect_garbage(), 1);
    assert_eq!(secrets(&f).await, ["free", "mine"]);
    f.things().delete("a", &DeleteParams::default()).await.expect("deleted");
    assert_eq!(secrets(&f).await, ["free", "mine"], "nothing goes without a pass");
    collect_all(&f);
    assert_eq!(secrets(&f).await, ["free"]);
}

#[tokio::test]
async fn an_owner_in_another_namespace_does_not_count() {
    let f = Fixture::new().await;
    f.make_namespace("other").await;
    let uid = f.make_thing("a").await.uid().expect("a uid");
    owned(&f, "other", "abroad", &[("Thing", "a", &uid)]).await;
    collect_all(&f);
    assert!(secrets(&f).await.is_empty());
}

#[tokio::test]
async fn one_living_owner_is_enough() {
    let f = Fixture::new().await;
    let uid = f.make_thing("a").await.uid().expect("a uid");
    owned(&f, "ns", "both", &[("Thing", "a", &uid), ("Thing", "b", "gone")]).await;
    assert_eq!(f.cluster.collect_garbage(), 1);
    let kept = f.secrets().get("both").await.expect("kept");
    assert_eq!(kept.owner_references().len(), 1, "the reference to the missing owner is dropped");
    assert_eq!(f.cluster.collect_garbage(), 0);
}

#[tokio::test]
async fn an_owner_of_an_unknown_kind_is_left_alone() {
    let f = Fixture::new().await;
    owned(&f, "ns", "s", &[("Gadget", "a", "1")]).await;
    assert_eq!(f.cluster.collect_garbage(), 0);
}

#[tokio::test]
async fn a_custom_object_goes_the_same_way_and_keeps_its_finalizers() {
    let f = Fixture::new().await;
    let mut sent = thing("child");
    sent.metadata.finalizers = Some(vec!["example.io/hold".into()]);
    sent.metadata.owner_references = Some(
        serde_json::from_value(json!([{"apiVersion": "v1", "kind": "Secret", "name": "gone", "uid": "1"}]))
            .expect("references"),
    );
    f.things().create(&PostParams::default(), &sent).await.expect("created");
    assert_eq!(f.cluster.collect_garbage(), 1);
    let marked = f.things().get("child").await.expect("held by its finalizer");
    assert!(marked.metadata.deletion_timestamp.is_some());
    assert_eq!(f.cluster.collect_garbage(), 0);
}

#[tokio::test]
async fn foreground_waits_for_dependants() {
    let f = Fixture::new().await;
    let uid = f.make_thing("a").await.uid().expect("a uid");
    owned(&f, "ns", "mine", &[("Thing", "a", &uid)]).await;
    let foreground =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Foreground), ..DeleteParams::default() };
    f.things().delete("a", &foreground).await.expect("accepted");
    assert!(f.things().get_opt("a").await.expect("an answer").is_some());
    collect_all(&f);
    assert!(f.things().get_opt("a").await.expect("an answer").is_none());
    assert!(secrets(&f).await.is_empty());
}

#[tokio::test]
async fn dependants_go_with_an_owner_that_a_finalizer_holds() {
    let f = Fixture::new().await;
    let mut held = thing("a");
    held.metadata.finalizers = Some(vec!["example.io/hold".into()]);
    let uid = f.things().create(&PostParams::default(), &held).await.expect("created").uid().expect("a uid");
    // The dependant comes after its owner in every order, and does not block it.
    let mut dependant = thing("b");
    let reference = json!([{"apiVersion": "example.io/v1", "kind": "Thing", "name": "a", "uid": uid}]);
    dependant.metadata.owner_references = Some(serde_json::from_value(reference).expect("references"));
    f.things().create(&PostParams::default(), &dependant).await.expect("created");
    let foreground =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Foreground), ..DeleteParams::default() };
    f.things().delete("a", &foreground).await.expect("accepted");
    collect_all(&f);
    assert!(f.things().get_opt("b").await.expect("an answer").is_none());
    assert_eq!(f.things().get("a").await.expect("held").finalizers(), ["example.io/hold"]);
}

/// Creates a thing with these owners. The flag is `blockOwnerDeletion`.
async fn owned_thing(f: &Fixture, name: &str, owners: &[(&DynamicObject, bool)], finalizers: &[&str]) -> DynamicObject {
    let mut sent = thing(name);
    let references = owners.iter().map(|(owner, blocks)| {
        json!({
            "apiVersion": "example.io/v1", "kind": "Thing", "name": owner.name_any(), "uid": owner.uid(),
            "blockOwnerDeletion": blocks,
        })
    });
    sent.metadata.owner_references = Some(serde_json::from_value(references.collect()).expect("references"));
    sent.metadata.finalizers = Some(finalizers.iter().map(|name| (*name).to_owned()).collect());
    f.things().create(&PostParams::default(), &sent).await.expect("created")
}

async fn delete_in_foreground(f: &Fixture, name: &str) {
    let foreground =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Foreground), ..DeleteParams::default() };
    f.things().delete(name, &foreground).await.expect("accepted");
    collect_all(f);
}

#[tokio::test]
async fn dependants_of_one_owner_are_judged_before_any_goes() {
    let f = Fixture::new().await;
    let owner = owned_thing(&f, "a", &[], &["example.io/hold"]).await;
    let first = owned_thing(&f, "b", &[(&owner, false)], &[]).await;
    let second = owned_thing(&f, "c", &[(&owner, false), (&first, false)], &["example.io/hold"]).await;
    delete_in_foreground(&f, "a").await;
    let second = f.things().get(&second.name_any()).await.expect("held");
    let owners: Vec<&str> = second.owner_references().iter().map(|owner| owner.name.as_str()).collect();
    assert_eq!(owners, ["b"], "it was there still");
}

#[tokio::test]
async fn dependants_are_judged_together_though_they_come_before_their_owner() {
    let f = Fixture::new().await;
    let owner = owned_thing(&f, "z", &[], &["example.io/hold"]).await;
    let first = owned_thing(&f, "a", &[(&owner, false)], &[]).await;
    owned_thing(&f, "b", &[(&owner, false), (&first, false)], &["example.io/hold"]).await;
    delete_in_foreground(&f, "z").await;
    let second = f.things().get("b").await.expect("held");
    let owners: Vec<&str> = second.owner_references().iter().map(|owner| owner.name.as_str()).collect();
    assert_eq!(owners, ["a"], "it was there still");
}

#[tokio::test]
async fn an_object_blocks_its_owners_no_longer_where_there_might_be_a_circle() {
    let f = Fixture::new().await;
    let owner = owned_thing(&f, "a", &[], &[]).await;
    let between = owned_thing(&f, "b", &[(&owner, true)], &[]).await;
    owned_thing(&f, "c", &[(&between, true)], &["example.io/hold"]).await;
    delete_in_foreground(&f, "c").await;
    delete_in_foreground(&f, "a").await;
    let left: Vec<String> =
        f.things().list(&Default::default()).await.expect("a list").iter().map(|thing| thing.name_any()).collect();
    assert_eq!(left, ["c"]);
}

#[tokio::test]
async fn orphaning_lets_dependants_go_free() {
    let f = Fixture::new().await;
    let uid = f.make_thing("a").await.uid().expect("a uid");
    owned(&f, "ns", "mine", &[("Thing", "a", &uid)]).await;
    let orphan = DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    f.things().delete("a", &orphan).await.expect("accepted");
    collect_all(&f);
    assert!(f.things().get_opt("a").await.expect("an answer").is_none());
    assert!(f.secrets().get("mine").await.expect("free").owner_references().is_empty());
}
