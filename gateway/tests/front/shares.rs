//! Calls to a store, shared between namespaces.

use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use serde_json::{Value, json};
use stowage_api::{
    AccessCredentialFacts, AccessMode, AccessRecord, AccessRef, AccessScope, AccessUid, BucketName, BucketRecord,
    ClaimRef, ClaimUid, Consent, Endpoint, NamespaceUid, SecretKey,
};
use stowage_gateway::body::Body;
use stowage_gateway::front::{Config, Peer};
use tower::BoxError;

use crate::{SECRET, STORE, SYSTEM, Stage, answer, ask, code, config};

const PEER: Peer =
    Peer { address: std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1), is_tls: false };

/// Starts a gateway that admits four requests per holder and sixteen calls to a store.
async fn stage() -> Stage {
    let stage = Stage::told(Config { backend_calls: 16, ..config() }).await;
    stage.store_answers(|_| answer(200, &[], "content"));
    stage
}

/// Stores a claim of a namespace with a bucket and a key with this id. The key has no label with
/// the namespace; the record has it.
async fn claim(stage: &Stage, namespace: &str, bucket: &str, id: &str) {
    let record = BucketRecord {
        claim: ClaimRef { namespace: namespace.into(), name: bucket.into() },
        uid: ClaimUid::new(format!("uid-of-{bucket}")),
        endpoint: Endpoint::parse(STORE).expect("a URL"),
        bucket: BucketName::parse(bucket).expect("a name"),
        accesses: [(NamespaceUid::new("uid-of-team-a"), Consent::full())].into(),
        ..BucketRecord::fixture()
    };
    put(stage, &record.content(SYSTEM).to_secret());
    stage.credential(id, bucket, json!({"data": {"endpoint": STORE}}));
    stage.until(|stage| stage.knows(id)).await;
}

/// Stores an access of team-a to a bucket. Returns the id of its key.
async fn access(stage: &Stage, name: &str, bucket: &str) -> String {
    let access = AccessRef { namespace: "team-a".into(), name: name.into() };
    let uid = AccessUid::new(format!("uid-of-{name}"));
    let record = AccessRecord {
        access: access.clone(),
        uid: uid.clone(),
        namespace_uid: NamespaceUid::new("uid-of-team-a"),
        ..AccessRecord::fixture()
    };
    let scope = AccessScope {
        bucket: BucketName::parse(bucket).expect("a name"),
        backend: "main".into(),
        endpoint: Endpoint::parse(STORE).expect("a URL"),
        claim: Some(ClaimUid::new(format!("uid-of-{bucket}"))),
        mode: AccessMode::ReadWrite,
        prefix: None,
    };
    let facts = AccessCredentialFacts { access, uid, generation: 1, scopes: vec![scope] };
    let id = facts.access_key_id().to_string();
    put(stage, &record.content(SYSTEM).to_secret());
    put(stage, &facts.content(SYSTEM, Some(&SecretKey::new(SECRET.to_owned()))).to_secret());
    stage.until(|stage| stage.knows(&id)).await;
    id
}

fn put(stage: &Stage, secret: &k8s_openapi::api::core::v1::Secret) {
    let name = secret.metadata.name.clone().expect("it has a name");
    stage.internal(&name, serde_json::to_value(secret).expect("it is JSON"));
}

/// Returns as many responses as a key gets at once, none of which is read.
async fn held(stage: &Stage, id: &str, bucket: &str) -> Vec<Response<Body>> {
    let mut held = Vec::new();
    loop {
        let request = ask("GET", &format!("/{bucket}/a")).signed(id, SECRET);
        match stage.gateway.serve(request, PEER).await {
            answer if answer.status() == StatusCode::OK => held.push(answer),
            answer => {
                assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
                return held;
            }
        }
    }
}

// covers: 6.share
#[tokio::test]
async fn a_namespace_leaves_half_of_a_store_to_others() {
    let stage = stage().await;
    claim(&stage, "team-a", "one", "AKIAA").await;
    claim(&stage, "team-b", "two", "AKIAB").await;
    let mut of_a = held(&stage, "AKIAA", "one").await;
    assert_eq!(of_a.len(), 4, "what one claim may have");
    for name in ["reader", "writer", "copier", "another"] {
        let id = access(&stage, name, "one").await;
        of_a.extend(held(&stage, &id, "one").await);
    }
    assert_eq!(of_a.len(), 8, "of sixteen, by one claim and four accesses");
    let of_b = held(&stage, "AKIAB", "two").await;
    assert_eq!(of_b.len(), 4);
    let (_, _, text) = stage.signed_as("AKIAA", ask("GET", "/one/a")).await;
    assert_eq!(code(&text), "SlowDown", "{text}");
    drop(of_a);
    assert_eq!(held(&stage, "AKIAA", "one").await.len(), 4);
}

// covers: 6.share
#[tokio::test]
async fn who_reads_a_public_bucket_takes_nothing_from_the_keys_of_its_namespace() {
    let stage = stage().await;
    claim(&stage, "team-a", "films", "AKIAA").await;
    let data: Value = json!({"bucket_name": "films", "backend": "main", "claim_uid": "uid-of-films",
        "anonymous_mode": "ReadOnly", "anonymous_per_source_ip_rps": "1000", "endpoint": STORE});
    let labels = json!({"broker.stowage.io/role": "anonymous-binding"});
    stage.internal("ab-uid-of-films", json!({"metadata": {"labels": labels}, "stringData": data}));
    stage.until(|stage| stage.gateway.registry().binding("films").is_some()).await;
    let mut public = Vec::new();
    for _ in 0..4 {
        public.push(stage.gateway.serve(ask("GET", "/films/a").plain(), PEER).await);
    }
    assert!(public.iter().all(|answer| answer.status() == StatusCode::OK));
    assert_eq!(held(&stage, "AKIAA", "films").await.len(), 4);
}

/// Returns an upload of `a_second` bytes per second, for a minute.
fn upload(id: &str, bucket: &str, a_second: usize) -> Request<Body> {
    let request = ask("PUT", &format!("/{bucket}/slow")).with("content-length", &(60 * a_second).to_string());
    let pieces = stream::iter(0..60).then(move |_| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok::<_, BoxError>(Frame::data(Bytes::from(vec![0; a_second])))
    });
    request.signed(id, SECRET).map(|_| StreamBody::new(pieces).boxed_unsync())
}

// covers: 6.share.floor
#[tokio::test(start_paused = true)]
async fn a_slow_upload_is_given_up_once_calls_run_out() {
    let stage = stage().await;
    claim(&stage, "team-a", "one", "AKIAA").await;
    let (status, _, text) = stage.send(upload("AKIAA", "one", 2 << 10)).await;
    assert_eq!(status, StatusCode::OK, "while calls are free: {text}");
    let mut others = Vec::new();
    for (namespace, bucket, id) in
        [("team-b", "two", "AKIAB"), ("team-c", "three", "AKIAC"), ("team-d", "four", "AKIAD")]
    {
        claim(&stage, namespace, bucket, id).await;
        others.extend(held(&stage, id, bucket).await);
    }
    assert_eq!(others.len(), 12);
    let (status, _, text) = stage.send(upload("AKIAA", "one", 2 << 10)).await;
    assert_eq!((status, code(&text)), (StatusCode::BAD_REQUEST, "RequestTimeout"), "three of sixteen are free");
    let (status, _, text) = stage.send(upload("AKIAA", "one", 64 << 10)).await;
    assert_eq!(status, StatusCode::OK, "{text}");
}
