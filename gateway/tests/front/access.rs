//! Authorisation of requests.

use rstest::rstest;
use serde_json::json;

use crate::{KEY, SECRET, Stage, answer, ask, code};

fn binding(rps: u32) -> serde_json::Value {
    let data = json!({"bucket_name": "films", "backend": "main", "claim_uid": "uid-of-films",
        "anonymous_mode": "ReadOnly", "anonymous_per_source_ip_rps": rps.to_string()});
    json!({"metadata": {"labels": {"broker.stowage.io/role": "anonymous-binding"}}, "stringData": data})
}

// covers: 6.unknown, 6.signature
#[tokio::test]
async fn a_key_that_nobody_has_is_as_one_that_is_over() {
    let stage = Stage::new().await;
    stage.credential(
        "AKIAOLD",
        "photos",
        json!({"annotations": {"broker.stowage.io/expires-at": "2029-12-31T23:59:59Z"}}),
    );
    stage.until(|stage| stage.knows("AKIAOLD")).await;
    let over = stage.signed_as("AKIAOLD", ask("GET", "/photos/a")).await;
    let unknown = stage.signed_as("AKIANOBODY", ask("GET", "/photos/a")).await;
    assert_eq!((over.0.as_u16(), code(&over.2)), (403, "InvalidAccessKeyId"), "{}", over.2);
    assert_eq!((unknown.0, code(&unknown.2)), (over.0, code(&over.2)));
    let wrong = stage.send(ask("GET", "/photos/a").signed(KEY, "another")).await;
    assert_eq!(code(&wrong.2), "SignatureDoesNotMatch");
    assert!(stage.asked().is_empty());
    assert!(!wrong.2.contains(SECRET));
}

#[tokio::test]
async fn a_tenant_sees_its_own_buckets() {
    let stage = Stage::new().await;
    let (_, _, text) = stage.signed(ask("GET", "/")).await;
    assert!(text.contains("<Name>photos</Name>") && text.matches("<Bucket>").count() == 1, "{text}");
    let (_, _, text) = stage.signed(ask("GET", "/photos?location")).await;
    assert!(text.contains("LocationConstraint"), "{text}");
    assert!(stage.asked().is_empty());
}

// covers: 6.endpoint
#[tokio::test]
async fn a_key_opens_its_bucket_where_it_was_made_for() {
    let stage = Stage::new().await;
    stage.credential("AKIAELSE", "photos", json!({"data": {"endpoint": "http://elsewhere.example"}}));
    stage.until(|stage| stage.knows("AKIAELSE")).await;
    let (status, _, text) = stage.signed_as("AKIAELSE", ask("GET", "/photos/a")).await;
    assert_eq!((status.as_u16(), code(&text)), (503, "ServiceUnavailable"), "{text}");
    stage.credential("AKIAHERE", "photos", json!({"data": {"endpoint": crate::STORE}}));
    stage.until(|stage| stage.knows("AKIAHERE")).await;
    assert_eq!(stage.signed_as("AKIAHERE", ask("GET", "/photos/a")).await.0.as_u16(), 200);
}

// covers: 6.anonymous
#[rstest]
#[case("GET", "/films/a", 200)]
#[case("HEAD", "/films/a", 200)]
#[case("GET", "/films?list-type=2", 200)]
#[case("GET", "/films/a?versionId=7", 403)]
#[case("GET", "/films/a?response-content-type=text/html", 403)]
#[case("GET", "/films?versions", 403)]
#[case("PUT", "/films/a", 403)]
#[case("DELETE", "/films/a", 403)]
#[case("GET", "/photos/a", 403)]
#[case("GET", "/", 403)]
#[tokio::test]
async fn anybody_reads_what_is_public(#[case] method: &'static str, #[case] target: &str, #[case] status: u16) {
    let stage = Stage::new().await;
    stage.internal("ab-uid-of-films", binding(0));
    stage.until(|stage| stage.gateway.registry().binding("films").is_some()).await;
    let request = if method == "PUT" { ask(method, target).sending("") } else { ask(method, target) };
    assert_eq!(stage.send(request.plain()).await.0.as_u16(), status);
    assert_eq!(stage.asked().len(), usize::from(status == 200));
}

// covers: 6.anonymous.rate
#[tokio::test]
async fn anybody_has_a_rate() {
    let stage = Stage::new().await;
    stage.internal("ab-uid-of-films", binding(3));
    stage.until(|stage| stage.gateway.registry().binding("films").is_some()).await;
    let mut passed = 0;
    for _ in 0..20 {
        let (status, headers, _) = stage.send(ask("GET", "/films/a").plain()).await;
        match status.as_u16() {
            200 => passed += 1,
            503 => assert!(headers.contains_key("retry-after")),
            other => panic!("{other}"),
        }
    }
    assert!((6..=8).contains(&passed), "{passed} of 20 at three a second");
}

// covers: 6.perClaim
#[tokio::test]
async fn one_key_has_so_many_requests_at_once() {
    let stage = Stage::new().await;
    stage.store_answers(|_| answer(200, &[], "content"));
    let peer = stowage_gateway::front::Peer { address: ([203, 0, 113, 9], 1).into(), is_tls: false };
    let mut held = Vec::new();
    for _ in 0..4 {
        let answer = stage.gateway.serve(ask("GET", "/photos/a").signed(KEY, SECRET), peer).await;
        assert_eq!(answer.status().as_u16(), 200);
        held.push(answer);
    }
    let (status, _, text) = stage.signed(ask("GET", "/photos/a")).await;
    assert_eq!((status.as_u16(), code(&text)), (503, "SlowDown"));
    drop(held);
    assert_eq!(stage.signed(ask("GET", "/photos/a")).await.0.as_u16(), 200);
}

// covers: 6.stale
#[tokio::test]
async fn before_the_first_whole_view_nobody_is_refused_for_good() {
    let config = stowage_gateway::front::Config {
        region: "us-east-1".to_owned(),
        proxies: stowage_gateway::front::Proxies::default(),
        domains: stowage_gateway::head::Domains::default(),
        backend_calls: 16,
        per_claim: 4,
        anonymous_rps: 5,
        max_staleness: std::time::Duration::ZERO,
    };
    let stage = Stage::told(config).await;
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    let (status, _, text) = stage.signed(ask("GET", "/photos/a")).await;
    assert_eq!((status.as_u16(), code(&text)), (503, "ServiceUnavailable"), "{text}");
}
