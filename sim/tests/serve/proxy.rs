//! Tests of faults of single calls between real clients and servers.

use std::time::Duration;

use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::primitives::ByteStream;
use http_body_util::BodyExt;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{ListParams, PostParams};
use rstest::rstest;
use serde_json::json;
use stowage_world::effects::{Fault, KubeFault, S3Fault, StowageFault};
use stowage_world::serve::proxy::{Crash, Proxy, router};
use stowage_world::serve::{Server, proxy};

use crate::parts::{ACCESS_KEY, ANYWHERE, Parts, plan, soon};

fn secret(name: &str) -> Secret {
    let secret = json!({"metadata": {"name": name, "labels": {"a": "b"}}, "stringData": {"key": "value"}});
    serde_json::from_value(secret).expect("it is a Secret")
}

fn secrets(parts: &Parts) -> Api<Secret> {
    Api::namespaced(parts.kube(), "default")
}

#[tokio::test(flavor = "multi_thread")]
async fn signed_requests_pass_as_they_are() {
    let parts = Parts::new("").await;
    let s3 = parts.s3();
    soon(s3.create_bucket().bucket("photos").send()).await.unwrap();
    let body = ByteStream::from(vec![7; 300_000]);
    soon(s3.put_object().bucket("photos").key("a b/ü").body(body).send()).await.unwrap();
    let got = soon(s3.get_object().bucket("photos").key("a b/ü").send()).await.unwrap();
    assert_eq!(got.body.collect().await.unwrap().into_bytes(), vec![7; 300_000]);
    let seen: Vec<_> =
        parts.log.requests().into_iter().map(|it| (it.who, it.operation.name(), it.bucket, it.status)).collect();
    let line = |operation| (Some(ACCESS_KEY.to_owned()), operation, Some("photos".to_owned()), Some(200));
    assert_eq!(seen, ["CreateBucket", "PutObject", "GetObject"].map(line));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_request_changes_nothing_and_a_lost_answer_hides_what_was_done() {
    let parts = Parts::new("#1 lost-request; #2 lost-answer").await;
    let s3 = parts.s3();
    for there in [false, true] {
        let answer = soon(s3.create_bucket().bucket("photos").send()).await;
        assert!(matches!(answer, Err(SdkError::DispatchFailure(_))), "{answer:?}");
        assert_eq!(parts.store.bucket("photos").is_some(), there);
    }
    assert_eq!(parts.calls(), ["1 s3:CreateBucket photos broken", "2 s3:CreateBucket photos broken"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn both_apis_are_numbered_together() {
    let parts = Parts::new("").await;
    soon(secrets(&parts).list(&ListParams::default())).await.unwrap();
    soon(parts.s3().list_buckets().send()).await.unwrap();
    soon(secrets(&parts).create(&PostParams::default(), &secret("s"))).await.unwrap();
    assert_eq!(
        parts.calls(),
        ["1 kube:list secrets default/ 200", "2 s3:ListBuckets 200", "3 kube:create secrets default/ 201"]
    );
}

#[rstest]
#[case("conflict", 409, "Conflict")]
#[case("server-error(not)", 500, "InternalError")]
#[case("throttle(3)", 429, "TooManyRequests")]
#[case("forbidden", 403, "Forbidden")]
#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_the_servers_own(#[case] fault: &str, #[case] code: u16, #[case] reason: &str) {
    let parts = Parts::new(&format!("kube:create secrets@1 {fault}")).await;
    let answer = soon(secrets(&parts).create(&PostParams::default(), &secret("s"))).await;
    let Err(kube::Error::Api(status)) = answer else { panic!("{answer:?}") };
    assert_eq!((status.code, status.reason.as_str()), (code, reason));
    assert!(parts.cluster.object("secrets", "default", "s").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_told_to_refuses() {
    let parts = Parts::new("s3:CreateBucket@1 slow-down; s3:HeadBucket head(403)").await;
    let answer = soon(parts.s3().create_bucket().bucket("photos").send()).await.expect_err("it is refused");
    assert_eq!(answer.code(), Some("SlowDown"));
    let answer = soon(parts.s3().head_bucket().bucket("photos").send()).await.expect_err("it is refused");
    assert_eq!(answer.raw_response().map(|raw| raw.status().as_u16()), Some(403));
    assert!(parts.store.buckets().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_hangs_goes_with_its_caller() {
    let parts = Parts::new("#1 hang").await;
    let hangs = tokio::spawn(parts.s3().list_buckets().send());
    parts.until_calls(&["1 s3:ListBuckets pending"]).await;
    hangs.abort();
    parts.until_calls(&["1 s3:ListBuckets dropped"]).await;
    assert!(parts.log.requests().is_empty());
}

/// The HTTP response looks complete, but its document is not.
#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_document_is_no_document() {
    let parts = Parts::new("#1 truncated").await;
    let answer = soon(parts.s3().list_buckets().send()).await;
    let error = answer.expect_err("it can't be read");
    assert_eq!((error.raw_response().map(|raw| raw.status().as_u16()), error.code()), (Some(200), None));
}

#[rstest]
#[case("own", Some("value"))]
#[case("foreign", None)]
#[tokio::test(flavor = "multi_thread")]
async fn a_rival_takes_the_name_a_moment_before(#[case] rival: &str, #[case] key: Option<&str>) {
    let parts = Parts::new(&format!("#1 already-exists({rival})")).await;
    let answer = soon(secrets(&parts).create(&PostParams::default(), &secret("s"))).await;
    let Err(kube::Error::Api(status)) = answer else { panic!("{answer:?}") };
    assert_eq!((status.code, status.reason.as_str()), (409, "AlreadyExists"));
    let taken = soon(secrets(&parts).get("s")).await.unwrap();
    let data = taken.data.unwrap_or_default();
    assert_eq!(data.get("key").map(|value| String::from_utf8_lossy(&value.0).into_owned()).as_deref(), key);
    assert_eq!(taken.metadata.labels.is_some(), key.is_some());
}

#[rstest]
#[case("before", false)]
#[case("after-effect", true)]
#[case("after-answer", true)]
#[tokio::test(flavor = "multi_thread")]
async fn from_a_crash_on_nothing_is_carried_out_until_the_next_life(#[case] point: &str, #[case] applied: bool) {
    let parts = Parts::new(&format!("s3:CreateBucket@1 crash({point})")).await;
    let create = tokio::spawn(parts.s3().create_bucket().bucket("photos").send());
    assert_eq!(soon(parts.proxy.crash()).await, Crash { life: 1, effect: Some(1) });
    if point == "after-answer" {
        soon(create).await.unwrap().expect("an answer comes before that crash");
    } else {
        assert!(!create.is_finished(), "nobody answers");
        create.abort();
    }
    assert_eq!(parts.store.bucket("photos").is_some(), applied);

    let dead = tokio::time::timeout(Duration::from_millis(100), parts.s3().create_bucket().bucket("late").send()).await;
    assert!(dead.is_err(), "the dead get no answer");
    assert_eq!(parts.proxy.next_life(), 2);
    soon(parts.s3().list_buckets().send()).await.unwrap();
    assert!(parts.store.bucket("late").is_none(), "the dead change nothing");
    let lives: Vec<u32> = parts.proxy.effects().trace().lines().iter().map(|line| line.instance).collect();
    assert_eq!(lives, [1, 2], "and have no numbers");
}

#[rstest]
#[case("#1 vanish", Fault::S3(S3Fault::Vanish))]
#[case("#1 hang; s3:CreateBucket already-owned", Fault::S3(S3Fault::AlreadyOwned))]
#[case("kube:list secrets rewind", Fault::Kube(KubeFault::Rewind))]
#[case("#1 recreate", Fault::Project(StowageFault::Recreate))]
fn what_needs_a_world_is_refused_by_name(#[case] faults: &str, #[case] culprit: Fault) {
    let refused = Proxy::new(plan(faults)).map(|_| ()).expect_err("it is refused");
    assert_eq!(refused.0, culprit);
    assert!(refused.to_string().starts_with(culprit.name()), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_side_by_side_are_numbered_together_and_die_alone() {
    let parts = Parts::new("#1 crash(before)").await;
    let other = parts.proxy.beside();
    let upstream = proxy::Upstream::s3(&parts.stored.url().parse().unwrap()).unwrap();
    let server = other.serve_s3(ANYWHERE, upstream).await.unwrap();
    let dies = tokio::spawn(parts.s3().list_buckets().send());
    soon(parts.proxy.crash()).await;
    soon(crate::parts::s3_client(&server.url()).list_buckets().send()).await.unwrap();
    assert!(!dies.is_finished());
    let trace = parts.proxy.effects().trace();
    let seen: Vec<_> = trace.lines().iter().map(|line| (line.number, line.instance, line.world)).collect();
    assert_eq!(seen, [(1, 1, None), (2, 2, Some(200))]);
}

/// Uses the admin API as a test harness outside of the cluster does.
#[tokio::test(flavor = "multi_thread")]
async fn the_admin_api_begins_tells_and_waits() {
    let parts = Parts::new("").await;
    let admin = Server::start(ANYWHERE, router(parts.proxy.clone())).await.unwrap();
    let ask = |method: &str, path: &str, body: &str| {
        let request = http::Request::builder().method(method).uri(format!("{}{path}", admin.url()));
        let request = request.header("content-type", "application/json").body(body.to_owned()).unwrap();
        async move {
            let client = Client::builder(TokioExecutor::new()).build_http::<String>();
            let (head, body) = soon(client.request(request)).await.unwrap().into_parts();
            let text = soon(body.collect()).await.unwrap().to_bytes();
            (head.status.as_u16(), String::from_utf8_lossy(&text).into_owned())
        }
    };
    soon(parts.s3().list_buckets().send()).await.unwrap();
    ask("POST", "/begin", r##"{"plan": "#1 crash(before)"}"##).await;
    let refused = ask("PUT", "/plan", r##"{"plan": "#1 usurp"}"##).await;
    assert!(refused.0 == 422 && refused.1.contains("usurp can't be made to happen"), "{refused:?}");
    let poll = tokio::spawn(ask("GET", "/crash", ""));
    let dies = tokio::spawn(parts.s3().list_buckets().send());
    let crash: Crash = serde_json::from_str(&poll.await.unwrap().1).unwrap();
    assert_eq!(crash.effect, Some(1));
    assert_eq!(ask("POST", "/life", "").await, (200, r#"{"life":2}"#.to_owned()));
    dies.abort();
    parts.until_calls(&["1 s3:ListBuckets died"]).await;
    assert_eq!(ask("GET", "/effects/after/1", "").await.1, r##"{"effects":[],"unfired":""}"##);
    assert_eq!(ask("DELETE", "/life", "").await.0, 204);
    let ended: Crash = serde_json::from_str(&ask("GET", "/crash", "").await.1).unwrap();
    assert_eq!((ended.life, ended.effect), (2, None));
    let told: serde_json::Value = serde_json::from_str(&ask("GET", "/effects", "").await.1).unwrap();
    let lines: Vec<proxy::EffectLine> = serde_json::from_value(told["effects"].clone()).unwrap();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(
        (lines[0].number, lines[0].fault.as_deref(), lines[0].answer.as_str()),
        (1, Some("crash(before)"), "died")
    );
}
