//! Objects stored as text. A test of `kube-front`, which reads more of them, checks that responses
//! stay the same.

use http::Request;
use kube::client::Body;
use serde_json::json;
use tower::ServiceExt as _;

use super::empty_cluster;
use crate::Cluster;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const JSON: (&str, &str) = ("content-type", "application/json");
const MERGE: (&str, &str) = ("content-type", "application/merge-patch+json");
const METADATA: (&str, &str) = ("accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");

/// Sends a request and returns the status code of the response.
async fn send(cluster: &Cluster, method: &str, path: &str, header: (&str, &str), body: &str) -> u16 {
    let request = Request::builder().method(method).uri(path).header(header.0, header.1);
    let request = request.body(Body::from(body.as_bytes().to_vec())).expect("a request");
    cluster.service().oneshot(request).await.expect("it can't fail").status().as_u16()
}

#[tokio::test]
async fn it_holds_but_so_many_trees() {
    let cluster = empty_cluster();
    cluster.keep_compact(3);
    let trees = || cluster.lock().everything().filter(|(.., object)| object.has_tree()).count();
    assert_eq!(trees(), 0, "what was there before is frozen");
    for number in 0..20 {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("s{number}")}});
        assert_eq!(send(&cluster, "POST", SECRETS, JSON, &secret.to_string()).await, 201);
    }
    // These are the objects written last, and their namespace, which each write has read.
    let written = trees();
    assert!((3..=6).contains(&written), "{written} trees");
    let read = send(&cluster, "GET", SECRETS, METADATA, "").await;
    assert_eq!((read, trees()), (200, written), "a list leaves no trees behind");
    // A write that changes nothing leaves a tree, until there are too many.
    for number in 0..10 {
        send(&cluster, "PATCH", &format!("{SECRETS}/s{number}"), MERGE, "{}").await;
    }
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "last"}});
    assert_eq!(send(&cluster, "POST", SECRETS, JSON, &secret.to_string()).await, 201);
    assert!(trees() <= 6, "{} trees", trees());
    assert!(cluster.lock().past("secrets").all(|object| !object.has_tree()), "the past is text");
}
