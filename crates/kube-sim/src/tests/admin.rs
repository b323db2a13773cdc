//! Administrative access: objects by group, version and plural, as plain JSON.

use kube::core::GroupVersionResource;
use serde_json::json;

use super::*;

fn things() -> GroupVersionResource {
    GroupVersionResource::gvr("example.io", "v1", "things")
}

fn config_maps() -> GroupVersionResource {
    GroupVersionResource::gvr("", "v1", "configmaps")
}

#[tokio::test]
async fn what_is_put_is_there_until_it_is_deleted() {
    let f = Fixture::new().await;
    let cluster = &f.cluster;
    let made = cluster.put(&config_maps(), "ns", "c", json!({"data": {"a": "1"}})).expect("created");
    assert_eq!((&made["kind"], &made["metadata"]["creationTimestamp"]), (&json!("ConfigMap"), &json!(NOW)));
    let changed = cluster.put(&config_maps(), "ns", "c", json!({"data": {"a": "2"}})).expect("replaced");
    assert_eq!((&changed["metadata"]["uid"], &changed["data"]), (&made["metadata"]["uid"], &json!({"a": "2"})));
    // An object with an old version is accepted.
    let back = cluster.put(&config_maps(), "ns", "c", (*made).clone()).expect("replaced");
    assert_eq!(back["data"], json!({"a": "1"}));
    assert_eq!(cluster.get(&config_maps(), "ns", "c").expect("it is there"), back);
    cluster.put(&config_maps(), "default", "d", json!({})).expect("created");
    let count = |namespace: &str| cluster.list(&config_maps(), namespace).expect("served").len();
    assert_eq!((count(""), count("ns"), count("other")), (2, 1, 0));
    cluster.delete(&config_maps(), "ns", "c").expect("deleted");
    assert_eq!(cluster.get(&config_maps(), "ns", "c").expect_err("it is gone").code, 404);
}

#[tokio::test]
async fn a_status_is_put_with_the_rest() {
    let f = Fixture::new().await;
    let whole = json!({"spec": {"owner": "ann"}, "status": {"phase": "Done"}});
    let made = f.cluster.put(&things(), "ns", "a", whole).expect("created");
    assert_eq!((&made["status"]["phase"], &made["metadata"]["generation"]), (&json!("Done"), &json!(1)));
    let made = f.cluster.put(&things(), "ns", "a", json!({"spec": {"owner": "bob"}})).expect("replaced");
    assert_eq!((&made["status"]["phase"], &made["metadata"]["generation"]), (&json!("Done"), &json!(2)));
}

#[tokio::test]
async fn deleted_with_a_finalizer_it_waits() {
    let f = Fixture::new().await;
    let held = json!({"metadata": {"finalizers": ["e.io/a"]}});
    f.cluster.put(&config_maps(), "ns", "c", held).expect("created");
    let marked = f.cluster.delete(&config_maps(), "ns", "c").expect("marked");
    assert_eq!(marked["metadata"]["deletionTimestamp"], NOW);
    f.cluster.put(&config_maps(), "ns", "c", json!({})).expect("let go");
    assert_eq!(f.cluster.get(&config_maps(), "ns", "c").expect_err("it is gone").code, 404);
}

#[tokio::test]
async fn an_administrator_is_refused_what_the_server_refuses() {
    let f = Fixture::new().await;
    let put = |resource: &GroupVersionResource, namespace: &str, object: Value| {
        f.cluster.put(resource, namespace, "a", object).expect_err("refused").code
    };
    assert_eq!(put(&GroupVersionResource::gvr("example.io", "v2", "things"), "ns", json!({})), 404);
    assert_eq!(put(&config_maps(), "nowhere", json!({})), 404);
    assert_eq!(put(&config_maps(), "ns", json!({"metadata": {"name": "b"}})), 400);
    assert_eq!(put(&config_maps(), "ns", json!({"dada": {}})), 400);
    assert_eq!(put(&config_maps(), "ns", json!([])), 400);
    assert_eq!(put(&config_maps(), "ns", json!({"metadata": []})), 400);
    assert_eq!(put(&things(), "ns", json!({"spec": {"owner": "7"}})), 422);
    let definitions = GroupVersionResource::gvr("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    assert_eq!(put(&definitions, "", json!({})), 405);
    let name = "things.example.io";
    assert_eq!(f.cluster.delete(&definitions, "", name).expect_err("refused").code, 405);
    assert_eq!(f.cluster.delete(&config_maps(), "ns", "a").expect_err("refused").code, 404);
    let namespaces = GroupVersionResource::gvr("", "v1", "namespaces");
    assert_eq!(f.cluster.delete(&namespaces, "", "default").expect_err("refused").code, 403);
}
