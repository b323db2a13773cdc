//! Lifecycle of an object: create, read, update, patch, status, delete.

use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy};
use serde_json::{Value, json};

use super::*;

fn post() -> PostParams {
    PostParams::default()
}

fn params() -> PatchParams {
    PatchParams::default()
}

fn json_patch(value: Value) -> Patch<()> {
    Patch::Json(serde_json::from_value(value).expect("a JSON patch"))
}

#[tokio::test]
async fn create_fills_in_what_is_the_servers() {
    let f = Fixture::new().await;
    let sent = object(json!({
        "apiVersion": "example.io/v1", "kind": "Thing",
        "metadata": {
            "name": "a", "uid": "mine", "generation": 7, "creationTimestamp": "2001-01-01T00:00:00Z",
            "deletionTimestamp": "2001-01-01T00:00:00Z",
        },
        "spec": {"owner": "ann", "nested": {"days": 1}}, "status": {"phase": "Done"},
    }));
    let made = f.things().create(&post(), &sent).await.expect("created");
    assert_ne!(made.uid().expect("a uid"), "mine");
    assert_eq!(made.metadata.generation, Some(1));
    assert_eq!(made.creation_timestamp().expect("a time").0.to_string(), NOW);
    assert!(made.metadata.deletion_timestamp.is_none());
    assert_eq!(made.data["status"], json!({"observed": -1}), "status is dropped, then defaulted");
    assert_eq!(
        made.data["spec"],
        json!({"owner": "ann", "policy": "Keep", "low": 1, "high": 10, "nested": {"mode": "A", "days": 1}})
    );
    assert_eq!(f.things().get("a").await.expect("stored"), made);
}

#[tokio::test]
async fn a_taken_name_is_already_exists_and_not_a_conflict() {
    let f = Fixture::new().await;
    f.make_thing("a").await;
    let status = refused(f.things().create(&post(), &thing("a")).await);
    assert_eq!(status.message, "things.example.io \"a\" already exists");
    assert!(status.is_already_exists() && !status.is_conflict());
    assert_eq!(status.code, 409);
}

#[tokio::test]
async fn the_create_path_of_an_operator() {
    let f = Fixture::new().await;
    let made = f.make_thing("a").await;
    let uid = made.uid().expect("a uid");
    let patch = json_patch(json!([
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": made.resource_version()},
        {"op": "test", "path": "/metadata/finalizers", "value": null},
        {"op": "add", "path": "/metadata/finalizers", "value": ["example.io/hold"]},
    ]));
    let held = f.things().patch("a", &params(), &patch).await.expect("patched");
    assert_eq!(held.finalizers(), ["example.io/hold"]);
    assert_eq!(held.metadata.generation, Some(1), "finalizers don't count as content");

    let stale = json_patch(json!([
        {"op": "replace", "path": "/metadata/resourceVersion", "value": made.resource_version()},
        {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}},
    ]));
    let status = refused(f.things().patch("a", &params(), &stale).await);
    assert!(status.is_conflict(), "the version is stale now: {status:?}");

    let patch = json_patch(json!([
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "add", "path": "/status", "value": {"phase": "Done"}},
    ]));
    let done = f.things().patch_status("a", &params(), &patch).await.expect("patched");
    assert_eq!(done.data["status"], json!({"phase": "Done"}));
    assert_eq!(done.metadata.generation, Some(1), "status doesn't count as content");
}

#[tokio::test]
async fn a_failing_test_of_a_json_patch_is_invalid_without_causes() {
    let f = Fixture::new().await;
    f.make_thing("a").await;
    let patch = json_patch(json!([{"op": "test", "path": "/metadata/uid", "value": "other"}]));
    let status = refused(f.things().patch("a", &params(), &patch).await);
    assert_eq!(status.code, 422);
    assert!(status.is_invalid() && !status.is_conflict());
    assert!(fields(&status).is_empty());
}

#[tokio::test]
async fn deletion_waits_for_finalizers_and_answers_by_what_happened() {
    let f = Fixture::new().await;
    f.make_thing("a").await;
    let hold = Patch::Merge(json!({"metadata": {"finalizers": ["example.io/hold"]}}));
    f.things().patch("a", &params(), &hold).await.expect("held");
    let marked = f.things().delete("a", &DeleteParams::default()).await.expect("accepted");
    let marked = marked.left().expect("the object, as it stays");
    assert_eq!(marked.metadata.generation, Some(2), "a deletion timestamp counts as content");
    assert_eq!(marked.metadata.deletion_grace_period_seconds, Some(0));
    let version = f.cluster.resource_version();
    f.things().delete("a", &DeleteParams::default()).await.expect("accepted again");
    assert_eq!(f.cluster.resource_version(), version, "the second delete changes nothing");

    let more = Patch::Merge(json!({"metadata": {"finalizers": ["example.io/hold", "example.io/more"]}}));
    let status = refused(f.things().patch("a", &params(), &more).await);
    assert_eq!(fields(&status), ["metadata.finalizers"]);

    let release = json_patch(json!([{"op": "remove", "path": "/metadata/finalizers/0"}]));
    let last = f.things().patch("a", &params(), &release).await.expect("an object, not a status");
    assert_eq!(last.name_any(), "a");
    assert!(f.things().get_opt("a").await.expect("an answer").is_none());
}

#[tokio::test]
async fn deletion_without_finalizers_answers_a_status() {
    let f = Fixture::new().await;
    f.make_secret("s").await;
    let gone = f.secrets().delete("s", &DeleteParams::default()).await.expect("deleted");
    let status = gone.right().expect("a status");
    assert!(status.is_success());
    let status = refused(f.secrets().delete("s", &DeleteParams::default()).await);
    assert_eq!(status.message, "secrets \"s\" not found");
    assert!(status.is_not_found());
}

#[tokio::test]
async fn preconditions_of_a_delete() {
    let f = Fixture::new().await;
    let made = f.make_secret("s").await;
    let with = |uid: Option<String>, resource_version: Option<String>| DeleteParams {
        preconditions: Some(Preconditions { uid, resource_version }),
        ..DeleteParams::default()
    };
    let status = refused(f.secrets().delete("s", &with(Some("other".into()), None)).await);
    assert!(status.is_conflict(), "{status:?}");
    let status = refused(f.secrets().delete("s", &with(None, Some("1".into()))).await);
    assert!(status.is_conflict(), "{status:?}");
    f.secrets().delete("s", &with(made.uid(), made.resource_version())).await.expect("deleted");
}

#[tokio::test]
async fn foreground_and_orphan_leave_finalizers_of_their_own() {
    let f = Fixture::new().await;
    for (name, policy, finalizer) in
        [("a", PropagationPolicy::Foreground, "foregroundDeletion"), ("b", PropagationPolicy::Orphan, "orphan")]
    {
        f.make_secret(name).await;
        let params = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
        let marked = f.secrets().delete(name, &params).await.expect("accepted").left().expect("an object");
        assert_eq!(marked.finalizers(), [finalizer]);
    }
}
