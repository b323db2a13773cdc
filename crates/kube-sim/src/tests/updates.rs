//! PUT and PATCH: optimistic concurrency with its exceptions, UIDs, generation, no-ops, the status
//! subresource.

use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::*;

fn post() -> PostParams {
    PostParams::default()
}

fn params() -> PatchParams {
    PatchParams::default()
}

fn lease(value: Value) -> Lease {
    serde_json::from_value(value).expect("a lease")
}

#[tokio::test]
async fn a_stale_put_is_a_conflict() {
    let f = Fixture::new().await;
    let first = f.make_thing("a").await;
    let mut second = first.clone();
    second.data["spec"]["low"] = 2.into();
    f.things().replace("a", &post(), &second).await.expect("replaced");
    let status = refused(f.things().replace("a", &post(), &second).await);
    assert!(status.is_conflict() && !status.is_already_exists());
    assert_eq!(
        status.message,
        "Operation cannot be fulfilled on things.example.io \"a\": the object has been modified; please apply your changes to the latest version and try again"
    );
}

#[tokio::test]
async fn a_put_without_a_version_depends_on_the_kind() {
    let f = Fixture::new().await;
    f.make_secret("s").await;
    let sent = secret_from(json!({"metadata": {"name": "s"}, "stringData": {"key": "other"}}));
    f.secrets().replace("s", &post(), &sent).await.expect("a secret may be replaced unconditionally");

    f.make_thing("a").await;
    let status = refused(f.things().replace("a", &post(), &thing("a")).await);
    assert_eq!(status.code, 422);
    assert_eq!(fields(&status), ["metadata.resourceVersion"]);
    assert!(status.message.ends_with("metadata.resourceVersion: Invalid value: 0: must be specified for an update"));
    let status = refused(f.things().replace_status("a", &post(), &thing("a")).await);
    assert_eq!(fields(&status), ["metadata.resourceVersion"]);

    let leases: Api<Lease> = Api::namespaced(f.client.clone(), "ns");
    leases.create(&post(), &lease(json!({"metadata": {"name": "l"}}))).await.expect("created");
    let status = refused(leases.replace("l", &post(), &lease(json!({"metadata": {"name": "l"}}))).await);
    assert_eq!(fields(&status), ["metadata.resourceVersion"]);
}

#[tokio::test]
async fn a_put_on_a_missing_name_depends_on_the_kind() {
    let f = Fixture::new().await;
    let leases: Api<Lease> = Api::namespaced(f.client.clone(), "ns");
    let made = leases.replace("l", &post(), &lease(json!({"metadata": {"name": "l"}}))).await.expect("made");
    assert!(made.uid().is_some());
    assert!(refused(f.secrets().replace("s", &post(), &secret("s")).await).is_not_found());
    assert!(refused(f.things().replace("a", &post(), &thing("a")).await).is_not_found());
}

#[tokio::test]
async fn another_uid_is_ignored_or_invalid_or_a_conflict() {
    let f = Fixture::new().await;
    let made = f.make_thing("a").await;
    let other = json!({"metadata": {"uid": "other"}, "status": {"phase": "New"}});
    let patched = f.things().patch_status("a", &params(), &Patch::Merge(&other)).await;
    assert_eq!(patched.expect("ignored in a status patch").data["status"]["phase"], "New");

    let status = refused(f.things().patch("a", &params(), &Patch::Merge(&other)).await);
    assert_eq!(fields(&status), ["metadata.uid"]);
    assert!(status.message.ends_with("field is immutable"), "{}", status.message);
    let apply = json!({"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "a", "uid": "other"}});
    let status = refused(f.things().patch("a", &PatchParams::apply("m"), &Patch::Apply(&apply)).await);
    assert_eq!(fields(&status), ["metadata.uid"]);

    let mut put = made.clone();
    put.metadata.uid = Some("other".into());
    let status = refused(f.things().replace("a", &post(), &put).await);
    assert!(status.is_conflict(), "{status:?}");
    let missing = json!({"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "b", "uid": "other"}});
    let status = refused(f.things().patch("b", &PatchParams::apply("m"), &Patch::Apply(&missing)).await);
    assert!(status.is_conflict(), "{status:?}");
}

#[tokio::test]
async fn a_stale_version_in_a_patch_is_a_conflict() {
    let f = Fixture::new().await;
    let made = f.make_thing("a").await;
    f.things()
        .patch("a", &params(), &Patch::Merge(json!({"metadata": {"labels": {"x": "y"}}})))
        .await
        .expect("patched");
    let stale = json!({
        "apiVersion": "example.io/v1", "kind": "Thing",
        "metadata": {"name": "a", "resourceVersion": made.resource_version()}, "spec": {"low": 5},
    });
    assert!(refused(f.things().patch("a", &params(), &Patch::Merge(&stale)).await).is_conflict());
    assert!(refused(f.things().patch("a", &PatchParams::apply("m"), &Patch::Apply(&stale)).await).is_conflict());
    assert!(refused(f.things().patch_status("a", &params(), &Patch::Merge(&stale)).await).is_conflict());

    let zero = json!({
        "apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "a", "resourceVersion": "0"}, "spec": {"size": 5},
    });
    let status = refused(f.things().patch("a", &PatchParams::apply("m"), &Patch::Apply(&zero)).await);
    assert_eq!(fields(&status), ["metadata.resourceVersion"], "\"0\" is none, which this kind doesn't take");
    f.make_secret("s").await;
    let zero = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "resourceVersion": "0"}});
    f.secrets().patch("s", &PatchParams::apply("m"), &Patch::Apply(&zero)).await.expect("a secret takes it");
}

#[tokio::test]
async fn only_content_counts_for_the_generation() {
    let f = Fixture::new().await;
    f.make_thing("a").await;
    let labels = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}));
    let patched = f.things().patch("a", &params(), &labels).await.expect("patched");
    assert_eq!(patched.metadata.generation, Some(1));
    let status = Patch::Merge(json!({"status": {"phase": "New"}}));
    let patched = f.things().patch_status("a", &params(), &status).await.expect("patched");
    assert_eq!(patched.metadata.generation, Some(1));
    let spec = Patch::Merge(json!({"spec": {"low": 2}, "metadata": {"generation": 50}}));
    let patched = f.things().patch("a", &params(), &spec).await.expect("patched");
    assert_eq!(patched.metadata.generation, Some(2));
}

#[tokio::test]
async fn a_write_that_changes_nothing_is_none() {
    let f = Fixture::new().await;
    let made = f.make_thing("a").await;
    let apply = json!({
        "apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"owner": "ann"},
    });
    let apply = Patch::Apply(&apply);
    f.things().patch("a", &PatchParams::apply("m"), &apply).await.expect("applied");
    let version = f.cluster.resource_version();

    f.things().patch("a", &params(), &Patch::Merge(json!({"spec": {"owner": "ann"}}))).await.expect("patched");
    let again = f.things().patch("a", &PatchParams::apply("m"), &apply).await.expect("applied");
    f.things().replace("a", &post(), &again).await.expect("replaced");
    f.things().patch_status("a", &params(), &Patch::Merge(json!({"status": {"observed": -1}}))).await.expect("patched");
    assert_eq!(f.cluster.resource_version(), version);
    assert_eq!(again.uid(), made.uid());
}

#[tokio::test]
async fn the_main_resource_leaves_status_alone_and_status_the_rest() {
    let f = Fixture::new().await;
    f.make_thing("a").await;
    let both = json!({
        "metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": ["example.io/x"]},
        "spec": {"low": 5}, "status": {"phase": "Done"},
    });
    let patched = f.things().patch_status("a", &params(), &Patch::Merge(&both)).await.expect("patched");
    assert_eq!(patched.data["status"]["phase"], "Done");
    assert_eq!(patched.data["spec"]["low"], 1);
    assert!(patched.labels().is_empty() && patched.annotations().is_empty() && patched.finalizers().is_empty());

    let main = json!({"spec": {"low": 6}, "status": {"phase": "New"}});
    let patched = f.things().patch("a", &params(), &Patch::Merge(&main)).await.expect("patched");
    assert_eq!(patched.data["spec"]["low"], 6);
    assert_eq!(patched.data["status"]["phase"], "Done");
    let mut put = patched.clone();
    put.data["status"] = json!({});
    let put = f.things().replace("a", &post(), &put).await.expect("replaced");
    assert_eq!(put.data["status"]["phase"], "Done");
}

#[tokio::test]
async fn a_removed_status_is_defaulted_again() {
    let f = Fixture::new().await;
    f.make_thing("a").await;
    let gone = Patch::Merge(json!({"status": null}));
    let patched = f.things().patch_status("a", &params(), &gone).await.expect("patched");
    assert_eq!(patched.data["status"], json!({"observed": -1}));
}

#[tokio::test]
async fn immutable_metadata_stays() {
    let f = Fixture::new().await;
    let made = f.make_thing("a").await;
    let patch = json!({"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z", "uid": null}});
    let patched = f.things().patch("a", &params(), &Patch::Merge(&patch)).await.expect("ignored");
    assert_eq!(patched.creation_timestamp(), made.creation_timestamp());
    assert_eq!(patched.uid(), made.uid());
    let patch = json!({"metadata": {"deletionTimestamp": "2031-01-01T00:00:00Z"}});
    let status = refused(f.things().patch("a", &params(), &Patch::Merge(&patch)).await);
    assert_eq!(fields(&status), ["metadata.deletionTimestamp"]);
    let status = refused(f.things().patch("a", &params(), &Patch::Merge(json!({"metadata": {"name": "b"}}))).await);
    assert_eq!(status.code, 400);
}

#[tokio::test]
async fn null_in_a_test_means_absent_where_the_parent_is_there() {
    let f = Fixture::new().await;
    f.make_thing("a").await;
    let patch = |value| Patch::<()>::Json(serde_json::from_value(value).expect("a JSON patch"));
    let good = patch(json!([{"op": "test", "path": "/metadata/labels", "value": null}]));
    f.things().patch("a", &params(), &good).await.expect("it holds");
    let deep = patch(json!([{"op": "test", "path": "/metadata/labels/x", "value": null}]));
    assert_eq!(refused(f.things().patch("a", &params(), &deep).await).code, 422);
    let missing = patch(json!([{"op": "remove", "path": "/metadata/labels"}]));
    assert_eq!(refused(f.things().patch("a", &params(), &missing).await).code, 422);
    let replace = patch(json!([{"op": "replace", "path": "/metadata/labels", "value": {"a": "b"}}]));
    let patched = f.things().patch("a", &params(), &replace).await.expect("a missing key is added");
    assert_eq!(patched.labels()["a"], "b");
}

#[tokio::test]
async fn dry_runs_check_everything_and_change_nothing() {
    let f = Fixture::new().await;
    let version = f.cluster.resource_version();
    let dry = PostParams { dry_run: true, ..post() };
    f.things().create(&dry, &thing("a")).await.expect("it would work");
    assert_eq!(refused(f.things().create(&dry, &thing_with("a", json!({}))).await).code, 422);
    assert_eq!(f.cluster.resource_version(), version);
    f.make_thing("a").await;
    let version = f.cluster.resource_version();
    let patch = Patch::Merge(json!({"spec": {"low": 5}}));
    let dry = PatchParams { dry_run: true, ..params() };
    assert_eq!(f.things().patch("a", &dry, &patch).await.expect("it would work").data["spec"]["low"], 5);
    let dry = DeleteParams { dry_run: true, ..DeleteParams::default() };
    f.things().delete("a", &dry).await.expect("it would work");
    assert_eq!(f.cluster.resource_version(), version);
}

#[tokio::test]
async fn generated_names_follow_the_seed() {
    let mut names = Vec::new();
    for _ in 0..2 {
        let f = Fixture::new().await;
        let mut sent = thing("");
        sent.metadata.name = None;
        sent.metadata.generate_name = Some("thing-".into());
        let first = f.things().create(&post(), &sent).await.expect("created").name_any();
        let second = f.things().create(&post(), &sent).await.expect("created").name_any();
        assert!(first.starts_with("thing-") && first.len() == 11, "{first}");
        assert_ne!(first, second);
        names.push((first, second));
    }
    assert_eq!(names[0], names[1]);
}
