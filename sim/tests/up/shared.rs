//! Tests of accesses and ObjectBucketClaims in a simulator (spec §8, §9).

use std::time::Instant;

use http::Method;
use serde_json::{Value, json};
use stowage_world::{apply, parse};

use super::{Bench, PATIENCE, put, s3};

const SHARED: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: team-b}
---
apiVersion: broker.stowage.io/v1alpha1
kind: BucketClaim
metadata: {name: photos, namespace: default}
spec: {backendRef: {name: main}, sharing: [{namespaces: {names: [team-b]}, maxMode: ReadOnly}]}
---
apiVersion: broker.stowage.io/v1alpha1
kind: BucketAccess
metadata: {name: reader, namespace: team-b}
spec:
  buckets: [{claimRef: {name: photos, namespace: default}, mode: ReadOnly}]
  writeConnectionSecretToRef: {name: reader}
";

const OBC: &str = "
apiVersion: objectbucket.io/v1alpha1
kind: ObjectBucketClaim
metadata: {name: films, namespace: default}
spec: {storageClassName: buckets, bucketName: films-of-all}
";

impl Bench {
    async fn apply(&self, manifests: &str) {
        let client = self.kube().await;
        for document in parse("manifests", manifests).expect("they are YAML") {
            apply(&client, &document).await.unwrap_or_else(|error| panic!("{error}"));
        }
    }

    /// Waits until the page's view satisfies the condition.
    async fn view(&self, has: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let (_, view) = self.admin(Method::GET, "/view", None).await;
            if has(&view) {
                return view;
            }
            assert!(begun.elapsed() < PATIENCE, "the page never shows it: {view:#}");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn an_access_is_reached_by_what_env_tells_and_the_page_shows_what_it_opens() {
    let bench = Bench::new().await;
    bench.apply(SHARED).await;
    let connection = bench.connection_of("team-b", "reader").await;
    assert_eq!(connection["BUCKET_NAME"], "default-photos");
    assert_ne!(connection["AWS_ACCESS_KEY_ID"], bench.connection("photos").await["AWS_ACCESS_KEY_ID"]);
    assert_eq!(put(&s3(&connection), "default-photos", "a").await, Err(403), "it may only read");
    let view = bench.view(|view| view["traffic"][0].is_object()).await;
    let access = &view["accesses"][0];
    assert_eq!((&view["accessCount"], &access["secret"]), (&json!(1), &json!("reader")));
    let entry = json!({
        "claim": "default/photos", "bucket": "default-photos", "backend": "main", "prefix": "", "mode": "ReadOnly",
        "state": "Open", "reason": "",
    });
    assert_eq!(access["entries"], json!([entry]));
    assert_eq!(access["keys"][0]["id"], connection["AWS_ACCESS_KEY_ID"]);
    assert_eq!(view["traffic"][0]["access_uid"], access["uid"], "{view:#}");
    let secret = connection["AWS_SECRET_ACCESS_KEY"].as_str().expect("a text");
    assert!(!view.to_string().contains(secret));
    bench.up.stop().await;
}

#[tokio::test]
async fn an_access_without_consent_says_so_in_place_of_its_environment() {
    let bench = Bench::new().await;
    bench.apply(&SHARED.replace("[team-b]", "[team-c]")).await;
    let closed = |view: &Value| view["accesses"][0]["entries"][0]["reason"] == "NotShared";
    bench.view(closed).await;
    let (code, why) = bench.admin(Method::GET, "/claims/team-b/reader/connection", None).await;
    assert_eq!(code, 409);
    assert!(why["error"].as_str().is_some_and(|why| why.starts_with("NotShared: ")), "{why}");
    bench.up.stop().await;
}

/// ObjectBucketClaims are served again after a reset.
#[tokio::test]
async fn an_object_bucket_claim_gets_a_bucket_that_env_tells_of() {
    let bench = Bench::with(|options| options.obc = true).await;
    for _ in 0..2 {
        bench.apply(OBC).await;
        let connection = bench.connection("films").await;
        assert_eq!(connection["BUCKET_NAME"], "films-of-all");
        assert!(
            connection["BUCKET_HOST"].is_string(),
            "what the ConfigMap has: {:?}",
            connection.as_object().map(|it| it.len())
        );
        assert_eq!(put(&s3(&connection), "films-of-all", "a").await, Ok(()));
        let view = bench.view(|view| view["obcs"][0]["phase"] == "Bound").await;
        assert_eq!((&view["obcCount"], &view["obcs"][0]["class"]), (&json!(1), &json!("buckets")));
        assert_eq!(bench.admin(Method::POST, "/reset", None).await.0, 204);
        assert_eq!(bench.admin(Method::GET, "/claims/default/films/connection", None).await.0, 404);
    }
    bench.up.stop().await;
}

#[tokio::test]
async fn without_that_option_nothing_knows_object_bucket_claims() {
    let bench = Bench::new().await;
    let document = parse("manifests", OBC).expect("it is YAML").remove(0);
    let refused = apply(&bench.kube().await, &document).await.expect_err("there is no such kind");
    assert!(refused.to_string().contains("could not find") || refused.to_string().contains("not found"), "{refused}");
    bench.up.stop().await;
}
