//! The operator's requests to an API server, as they are on the wire (spec §3, §3.8).

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use kube::client::Body;
use serde_json::{Value, json};
use stowage_operator::{Clock, Metrics, Parts};
use stowage_world::determinism::run_seeded;
use stowage_world::{OPERATOR_NAMESPACE, Options, World};
use tower::{ServiceExt, service_fn};

use crate::support::{BASE, OneStore, claim_with, object, ready};

/// A request as it was sent.
#[derive(Clone, Debug)]
struct Sent {
    method: Method,
    path: String,
    query: String,
    accept: String,
    content_type: String,
    body: Value,
}

impl Sent {
    fn is_about(&self, part: &str) -> bool {
        self.path.contains(part)
    }

    fn is_collection(&self, plural: &str) -> bool {
        self.method == Method::GET && self.path.ends_with(&format!("/{plural}"))
    }
}

/// Returns a client of the world's API server that records requests.
fn noting(world: &World, sent: &Arc<Mutex<Vec<Sent>>>) -> kube::Client {
    let (api, sent) = (world.cluster.service(), sent.clone());
    let service = service_fn(move |request: http::Request<Body>| {
        let (api, sent) = (api.clone(), sent.clone());
        async move {
            let (head, body) = request.into_parts();
            let bytes = body.collect_bytes().await?;
            let header =
                |name: &str| head.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
            sent.lock().unwrap().push(Sent {
                method: head.method.clone(),
                path: head.uri.path().to_owned(),
                query: head.uri.query().unwrap_or_default().to_owned(),
                accept: header("accept"),
                content_type: header("content-type"),
                body: serde_json::from_slice(&bytes).unwrap_or_default(),
            });
            let answer = api.oneshot(http::Request::from_parts(head, Body::from(bytes))).await;
            answer.map_err(tower::BoxError::from)
        }
    });
    kube::Client::new(service, OPERATOR_NAMESPACE)
}

async fn until(world: &World, what: &str, fact: impl Fn(&World) -> bool) {
    assert!(world.until(fact).await.is_ok(), "it never came to be that {what}");
}

async fn patch(world: &World, plural: &str, path: &str, patch: Value) {
    let request = http::Request::patch(format!("{path}/{plural}"))
        .header("content-type", "application/merge-patch+json")
        .body(serde_json::to_vec(&patch).unwrap())
        .unwrap();
    world.kube().request::<Value>(request).await.expect("the patch is good");
}

/// Returns the operator's requests in the whole life of a claim: bound, tampered with, edited,
/// rotated, deleted.
fn a_whole_life() -> Vec<Sent> {
    run_seeded(1, || async {
        let world = World::new(Options { seed: 1, ..Options::default() });
        world.apply(&world.kube(), BASE).await;
        let sent = Arc::new(Mutex::new(Vec::new()));
        let now = world.clock.clock();
        let parts = Parts {
            client: noting(&world, &sent),
            connect: Arc::new(OneStore(world.store.clone())),
            clock: Clock::new(move || now()),
            uptime: world.uptime(),
            metrics: Metrics::new(),
            ready: None,
        };
        let operator = tokio::spawn(stowage_operator::run(world.config(), parts, pending()));
        let spec = "anonymousAccess: {mode: ReadOnly}, rotationPolicy: {overlapSeconds: 0}";
        world.apply(&world.kube(), &claim_with("team-a", "photos", spec)).await;
        until(&world, "it is bound", |world| ready(world, "team-a", "photos") == "Bound").await;
        let (claims, secrets) =
            ("/apis/broker.stowage.io/v1alpha1/namespaces/team-a/bucketclaims", "/api/v1/namespaces/team-a/secrets");
        patch(&world, "photos-s3", secrets, json!({"data": {"BUCKET_NAME": null}})).await;
        world.pass(Duration::from_secs(120)).await;
        patch(&world, "photos", claims, json!({"spec": {"quota": {"hard": "1Ki"}}})).await;
        patch(&world, "photos", claims, json!({"metadata": {"annotations": {"broker.stowage.io/rotate": "now"}}}))
            .await;
        world.pass(Duration::from_secs(300)).await;
        assert_eq!(object(&world, "bucketclaims", "team-a", "photos")["status"]["rotationGeneration"], 2);
        let delete = http::Request::delete(format!("{claims}/photos")).body(Vec::new()).unwrap();
        world.kube().request::<Value>(delete).await.expect("the claim is there");
        until(&world, "it is gone", |world| object(world, "bucketclaims", "team-a", "photos").is_null()).await;
        operator.abort();
        Vec::clone(&sent.lock().unwrap())
    })
}

// covers: 3.preconditions, 2.consumer.patch, 2.consumer.post
#[test]
fn every_change_is_bound_to_the_uid_and_version_that_it_was_decided_on() {
    let sent = a_whole_life();
    let changes = sent.iter().filter(|sent| sent.method != Method::GET && !sent.is_about("/events"));
    let (mut patches, mut deletes) = (0, 0);
    for change in changes {
        match change.method {
            // A POST only creates.
            Method::POST => {}
            Method::PATCH => {
                assert_eq!(change.content_type, "application/json-patch+json", "{change:?}");
                let (uid, version) = (&change.body[0], &change.body[1]);
                assert_eq!((&uid["op"], &uid["path"]), (&json!("test"), &json!("/metadata/uid")), "{change:?}");
                assert_eq!(version["path"], "/metadata/resourceVersion", "{change:?}");
                assert!(uid["value"].is_string() && version["value"].is_string(), "{change:?}");
                patches += 1;
            }
            Method::DELETE => {
                let preconditions = &change.body["preconditions"];
                assert!(preconditions["uid"].is_string() && preconditions["resourceVersion"].is_string(), "{change:?}");
                deletes += 1;
            }
            _ => panic!("neither PUT nor anything else: {change:?}"),
        }
    }
    assert!(patches >= 8 && deletes >= 4, "{patches} patches, {deletes} deletes");
}

// covers: 3.8.lists
#[test]
fn nothing_is_listed_or_watched_that_is_not_ours() {
    let sent = a_whole_life();
    let secrets: Vec<&Sent> = sent.iter().filter(|sent| sent.is_collection("secrets")).collect();
    assert!(secrets.iter().any(|sent| sent.path == "/api/v1/secrets"), "consumer Secrets of all namespaces");
    for list in secrets {
        let by_label = list.query.contains("labelSelector=broker.stowage.io%2F");
        let by_name =
            list.query.contains("fieldSelector=metadata.name%3D") && list.accept.contains("PartialObjectMetadata");
        assert!(by_label || by_name, "{list:?}");
        if list.path == "/api/v1/secrets" {
            assert!(list.query.contains("role%3Dconsumer-secret"), "{list:?}");
        }
    }
    let namespaces: Vec<&Sent> = sent.iter().filter(|sent| sent.is_collection("namespaces")).collect();
    assert!(!namespaces.is_empty() && namespaces.iter().all(|sent| sent.accept.contains("PartialObjectMetadata")));
}
