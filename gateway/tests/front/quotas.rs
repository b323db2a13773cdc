//! How much may be stored.

use http::Response;
use rstest::rstest;
use serde_json::json;
use stowage_gateway::body::Body;

use crate::{Ask, Asked, Stage, answer, ask, code};

const LIMITED: &str = "AKIALIMITED";

const ONE_OBJECT: &str = "<ListVersionsResult><Version><Key>a</Key><Size>60</Size></Version></ListVersionsResult>";

/// A store with one object of 60 bytes, that answers what is written with this status.
fn store(status: u16) -> impl Fn(&Asked) -> Response<Body> + Send + Sync + 'static {
    move |asked| match (asked.method.as_str(), asked.uri.query().unwrap_or_default()) {
        ("GET", query) if query.contains("uploads=") => {
            answer(200, &[], "<ListMultipartUploadsResult></ListMultipartUploadsResult>")
        }
        ("GET", query) if query.contains("versions=") => answer(200, &[], ONE_OBJECT),
        ("HEAD", _) => answer(200, &[("content-length", "41")], ""),
        ("PUT" | "POST", _) => {
            answer(status, &[], if status == 200 { "" } else { "<Error><Code>InternalError</Code></Error>" })
        }
        _ => answer(204, &[], ""),
    }
}

/// A tenant with a bucket of at most 100 bytes, of which a scan has found 60.
async fn stage(status: u16) -> Stage {
    let stage = Stage::new().await;
    stage.store_answers(store(status));
    stage.credential(LIMITED, "films", json!({"data": {"quota_hard_bytes": "100"}}));
    stage.until(|stage| stage.knows(LIMITED)).await;
    stage.until(|stage| used(stage) == 60).await;
    stage
}

fn used(stage: &Stage) -> u64 {
    stage.gateway.used("main", "films").unwrap_or_default()
}

fn put(length: usize) -> Ask {
    ask("PUT", "/films/b").sending(vec![b'x'; length])
}

// covers: 6.quota.hard, 6.quota.pass
#[tokio::test]
async fn what_there_is_no_room_for_is_not_stored() {
    let stage = stage(200).await;
    let (status, _, text) = stage.signed_as(LIMITED, put(41)).await;
    assert_eq!((status.as_u16(), code(&text)), (403, "QuotaExceeded"), "{text}");
    assert!(text.contains("60 bytes of the 100"), "{text}");
    assert!(stage.asked().iter().all(|asked| asked.method != "PUT"), "the store was not asked");
    let (status, _, text) = stage.signed_as(LIMITED, put(40)).await;
    assert_eq!(status.as_u16(), 200, "{text}");
    assert_eq!(used(&stage), 100);
    let (_, _, text) = stage.signed_as(LIMITED, put(1)).await;
    assert_eq!(code(&text), "QuotaExceeded");
    for (method, target) in [("GET", "/films/a"), ("DELETE", "/films/a"), ("DELETE", "/films/a?uploadId=1")] {
        let (status, _, text) = stage.signed_as(LIMITED, ask(method, target)).await;
        assert!(status.is_success(), "{method} {target}: {text}");
    }
}

// covers: 6.quota.counted
#[rstest]
#[case(500, 60)]
#[case(403, 60)]
#[case(200, 80)]
#[case(504, 80)]
#[tokio::test]
async fn what_the_store_refuses_does_not_count(#[case] status: u16, #[case] expected: u64) {
    let stage = stage(status).await;
    stage.signed_as(LIMITED, put(20)).await;
    assert_eq!(used(&stage), expected);
}

// covers: 6.quota.copy
#[tokio::test]
async fn a_copy_counts_as_long_as_its_source() {
    let stage = stage(200).await;
    let copy = || ask("PUT", "/films/b").with("x-amz-copy-source", "films/a").sending("");
    let (_, _, text) = stage.signed_as(LIMITED, copy()).await;
    assert_eq!(code(&text), "QuotaExceeded", "{text}");
    let part = ask("PUT", "/films/b?partNumber=1&uploadId=u").with("x-amz-copy-source", "films/a");
    let part = part.with("x-amz-copy-source-range", "bytes=0-29").sending("");
    let (status, _, text) = stage.signed_as(LIMITED, part).await;
    assert_eq!(status.as_u16(), 200, "{text}");
    assert_eq!(used(&stage), 90);
}

// covers: 6.quota.unreadable
#[tokio::test]
async fn a_limit_that_cant_be_read_closes_writes_alone() {
    let stage = Stage::new().await;
    stage.credential(LIMITED, "films", json!({"data": {"quota_hard_bytes": "much"}}));
    stage.until(|stage| stage.knows(LIMITED)).await;
    let (_, _, text) = stage.signed_as(LIMITED, put(1)).await;
    assert_eq!(code(&text), "ServiceUnavailable");
    let (status, _, _) = stage.signed_as(LIMITED, ask("GET", "/films/a")).await;
    assert_eq!(status.as_u16(), 200);
}
