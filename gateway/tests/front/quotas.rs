//! Quotas.

use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::Response;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use jiff::SignedDuration;
use kube_sim::GroupVersionResource;
use rstest::rstest;
use serde_json::json;
use stowage_api::{BucketName, Endpoint, RecordName, Snapshot};
use stowage_gateway::body::Body;
use stowage_gateway::server::Gauges;
use tokio::time::Instant;
use tower::BoxError;

use crate::{Ask, Asked, SECRET, SYSTEM, Stage, answer, ask, body, code, now};

const LIMITED: &str = "AKIALIMITED";

const ONE_OBJECT: &str = "<ListVersionsResult><Version><Key>a</Key><Size>60</Size></Version></ListVersionsResult>";

/// Returns a store with one object of 60 bytes. It answers writes with this status.
fn store(status: u16) -> impl Fn(&Asked) -> Response<Body> + Send + Sync + 'static {
    move |asked| match (asked.method.as_str(), asked.uri.query().unwrap_or_default()) {
        ("GET", query) if query.contains("uploads=") => {
            answer(200, &[], "<ListMultipartUploadsResult></ListMultipartUploadsResult>")
        }
        ("GET", query) if query.contains("versions=") => answer(200, &[], ONE_OBJECT),
        ("HEAD", _) => answer(200, &[("content-length", "41"), ("etag", "\"e\"")], ""),
        ("PUT" | "POST", _) => {
            answer(status, &[], if status == 200 { "" } else { "<Error><Code>InternalError</Code></Error>" })
        }
        _ => answer(204, &[], ""),
    }
}

/// Starts with a bucket limited to 100 bytes, in which a scan has found 60.
async fn stage(status: u16) -> Stage {
    of_at_most(100, status).await
}

async fn of_at_most(hard: u64, status: u16) -> Stage {
    let stage = Stage::new().await;
    stage.store_answers(store(status));
    stage.credential(LIMITED, "films", json!({"data": {"quota_hard_bytes": hard.to_string()}}));
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
#[case(403, 60)]
#[case(200, 80)]
#[case(500, 80)]
#[case(503, 80)]
#[case(504, 80)]
#[tokio::test]
async fn what_the_store_refuses_does_not_count(#[case] status: u16, #[case] expected: u64) {
    let stage = stage(status).await;
    stage.signed_as(LIMITED, put(20)).await;
    assert_eq!(used(&stage), expected);
}

// covers: 6.quota.counted
/// The store may have missed that it broke off.
#[rstest]
#[case(0, 60)]
#[case(1, 80)]
#[case(19, 80)]
#[tokio::test]
async fn a_body_that_broke_off_counts_once_some_of_it_was_sent(#[case] sent: usize, #[case] expected: u64) {
    let stage = stage(200).await;
    let request = put(20).signed(LIMITED, SECRET).map(|_| {
        let piece = (sent > 0).then(|| Ok(Frame::data(Bytes::from(vec![b'x'; sent]))));
        let end = std::iter::once(Err(BoxError::from("the connection is gone")));
        StreamBody::new(stream::iter(piece.into_iter().chain(end))).boxed_unsync()
    });
    let (status, _, text) = stage.send(request).await;
    assert_eq!((status.as_u16(), code(&text)), (400, "IncompleteBody"), "{text}");
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

// covers: 6.quota.metadata
/// The source has 16 bytes of metadata, and one tag.
#[rstest]
#[case(&[], 60 + 16 + 1536)]
#[case(&["x-amz-metadata-directive"], 60 + 1536)]
#[case(&["x-amz-tagging-directive"], 60 + 16)]
#[case(&["x-amz-metadata-directive", "x-amz-tagging-directive"], 60)]
#[tokio::test]
async fn a_copy_counts_what_it_takes_over(#[case] replaced: &[&'static str], #[case] expected: u64) {
    let stage = of_at_most(10_000, 200).await;
    let other = store(200);
    stage.store_answers(move |asked| match asked.method.as_str() {
        "HEAD" => {
            let (metadata, tags) = (("x-amz-meta-a", "four"), ("x-amz-tagging-count", "1"));
            answer(200, &[("content-length", "0"), ("etag", "\"e\""), metadata, tags], "")
        }
        _ => other(asked),
    });
    let copy = ask("PUT", "/films/b").with("x-amz-copy-source", "films/a").sending("");
    let copy = replaced.iter().fold(copy, |copy, directive| copy.with(directive, "REPLACE"));
    let (status, _, text) = stage.signed_as(LIMITED, copy).await;
    assert_eq!(status.as_u16(), 200, "{text}");
    assert_eq!(used(&stage), expected);
}

// covers: 6.quota.copy, 6.headers
/// Only an UploadPartCopy can copy a range.
#[tokio::test]
async fn a_range_is_none_where_all_is_copied() {
    let stage = stage(200).await;
    let of_all = ask("PUT", "/films/b").with("x-amz-copy-source", "films/a").sending("");
    let (status, _, text) = stage.signed_as(LIMITED, of_all.with("x-amz-copy-source-range", "bytes=0-0")).await;
    assert_eq!((status.as_u16(), code(&text)), (501, "NotImplemented"), "{text}");
    for range in ["bytes=0-0,1-40", "bytes=+0-0", "bytes=0-", "bytes=-1"] {
        let part = ask("PUT", "/films/b?partNumber=1&uploadId=u").with("x-amz-copy-source", "films/a");
        let (_, _, text) = stage.signed_as(LIMITED, part.with("x-amz-copy-source-range", range).sending("")).await;
        assert_eq!(code(&text), "InvalidArgument", "{range}: {text}");
    }
    assert!(stage.asked().iter().all(|asked| asked.method != "PUT"), "the store was not asked");
    assert_eq!(used(&stage), 60);
}

// covers: 6.copy.pinned
/// The copy has the content that was measured.
#[tokio::test]
async fn a_copy_that_counts_is_pinned() {
    let stage = of_at_most(1000, 200).await;
    let copy = ask("PUT", "/films/b").with("x-amz-copy-source", "films/a").sending("");
    let (status, _, text) = stage.signed_as(LIMITED, copy).await;
    assert_eq!(status.as_u16(), 200, "{text}");
    let asked = stage.asked();
    let put = asked.iter().find(|asked| asked.method == "PUT").expect("it is copied");
    assert_eq!(put.header("x-amz-copy-source-if-match"), Some("\"e\""));
    assert_eq!(used(&stage), 101);
}

// covers: 6.quota.metadata
#[tokio::test]
async fn a_full_bucket_takes_no_metadata_either() {
    let stage = stage(200).await;
    let (status, _, text) = stage.signed_as(LIMITED, put(40)).await;
    assert_eq!(status.as_u16(), 200, "{text}");
    let metadata = "x".repeat(2000);
    let begin = || ask("POST", "/films/c?uploads").sending("");
    let tags = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
    for request in [
        put(0).with("x-amz-meta-a", &metadata),
        put(0).with("content-disposition", &metadata),
        put(0).with("x-amz-tagging", "a=b"),
        begin().with("x-amz-meta-a", &metadata),
        ask("PUT", "/films/a?tagging").sending(tags),
    ] {
        let (_, _, text) = stage.signed_as(LIMITED, request.clone()).await;
        assert_eq!(code(&text), "QuotaExceeded", "{request:?}");
    }
    for request in [put(0), begin()] {
        let (status, _, text) = stage.signed_as(LIMITED, request).await;
        assert_eq!(status.as_u16(), 200, "{text}");
    }
    assert_eq!(used(&stage), 100);
}

// covers: 6.quota.pass
/// Each has the `Content-Type` of its document, of which a store keeps nothing.
#[rstest]
#[case("/films?delete=", "<Delete><Object><Key>a</Key></Object></Delete>")]
#[case(
    "/films/c?uploadId=u",
    "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>e</ETag></Part></CompleteMultipartUpload>"
)]
#[tokio::test]
async fn a_full_bucket_takes_documents_that_add_nothing(#[case] target: &str, #[case] document: &'static str) {
    let stage = of_at_most(60, 200).await;
    let request = ask("POST", target).with("content-type", "application/xml").sending(document);
    let (_, _, text) = stage.signed_as(LIMITED, request).await;
    assert!(stage.asked().iter().any(|asked| asked.method == "POST"), "the store is asked: {text}");
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

// covers: 6.quota.exchange, 6.quota.bound
/// The bytes stored by one gateway count for the other, although neither waited for the other.
#[tokio::test]
async fn two_gateways_hold_a_limit_together() {
    let one = of_at_most(1000, 200).await;
    let other = one.beside().await;
    other.until(|stage| used(stage) == 60).await;
    let (status, _, text) = one.signed_as(LIMITED, put(500)).await;
    assert_eq!(status.as_u16(), 200, "{text}");
    other.until(|stage| used(stage) == 560).await;
    let (status, _, text) = other.signed_as(LIMITED, put(441)).await;
    assert_eq!((status.as_u16(), code(&text)), (403, "QuotaExceeded"), "{text}");
    let (status, _, text) = other.signed_as(LIMITED, put(440)).await;
    assert_eq!(status.as_u16(), 200, "{text}");
    one.until(|stage| used(stage) == 1000).await;
    let (_, _, text) = one.signed_as(LIMITED, put(1)).await;
    assert_eq!(code(&text), "QuotaExceeded");
}

/// Both receive a write that is too large to be admitted without the other's knowledge: at most one
/// succeeds.
#[tokio::test]
async fn of_two_that_store_at_once_what_fits_is_stored() {
    let one = of_at_most(1000, 200).await;
    let other = one.beside().await;
    other.until(|stage| used(stage) == 60).await;
    let (first, second) = tokio::join!(one.signed_as(LIMITED, put(600)), other.signed_as(LIMITED, put(600)));
    let stored = [first, second].iter().filter(|(status, _, _)| status.is_success()).count();
    assert!(stored <= 1, "{stored} of them");
}

fn maps() -> GroupVersionResource {
    GroupVersionResource::gvr("", "v1", "configmaps")
}

/// Returns the names of the exchange objects of a kind.
fn of_exchange(stage: &Stage, plural: &str) -> Vec<String> {
    let ours = stage.cluster.objects().into_iter().filter(|it| it.plural == plural && it.namespace == SYSTEM);
    ours.map(|it| it.name).collect()
}

/// A client overwrites a replica's counters: the replica publishes them again.
#[tokio::test]
async fn a_word_that_somebody_changes_is_told_again() {
    let stage = of_at_most(10_000, 200).await;
    let (status, _, _) = stage.signed_as(LIMITED, put(6000)).await;
    assert_eq!(status.as_u16(), 200);
    let names = of_exchange(&stage, "configmaps");
    let name = names.iter().find(|name| name.starts_with("usage-of-")).expect("it has told");
    assert!(stage.cluster.change("configmaps", SYSTEM, name, |it| it["data"] = json!({})));
    let (status, _, text) = stage.signed_as(LIMITED, put(3000)).await;
    assert_eq!(status.as_u16(), 200, "{text}");
    let (_, _, text) = stage.signed_as(LIMITED, put(1000)).await;
    assert_eq!(code(&text), "QuotaExceeded");
}

// covers: 6.quota.unmeasured
#[tokio::test]
async fn what_nobody_could_measure_for_an_hour_is_not_added_to() {
    let stage = Stage::new().await;
    let lists_fail = |asked: &Asked| match asked.method.as_str() {
        "GET" => answer(500, &[], ""),
        _ => answer(200, &[], ""),
    };
    stage.store_answers(lists_fail);
    let endpoint = Endpoint::parse(crate::STORE).expect("an endpoint");
    let id = RecordName::of(&endpoint, &BucketName::parse("films").expect("a name"));
    let since = now() - SignedDuration::from_mins(61);
    let map = Snapshot { failing_since: Some(since), ..Snapshot::of(id) }.config_map(SYSTEM);
    let name = map.metadata.name.clone().unwrap_or_default();
    stage.cluster.put(&maps(), SYSTEM, &name, serde_json::to_value(map).expect("an object")).expect("a ConfigMap");
    stage.credential(LIMITED, "films", json!({"data": {"quota_hard_bytes": "100"}}));
    stage.until(|stage| stage.knows(LIMITED)).await;
    let (_, _, text) = stage.signed_as(LIMITED, put(1)).await;
    assert_eq!(code(&text), "ServiceUnavailable", "{text}");
    let (status, _, _) = stage.signed_as(LIMITED, ask("DELETE", "/films/a")).await;
    assert!(status.is_success());
}

/// Returns six hundred uploads per page, on four pages.
fn many_uploads(asked: &Asked) -> String {
    let page = ["1", "2", "3"]
        .into_iter()
        .rev()
        .find(|at| asked.uri.query().is_some_and(|it| it.contains(&format!("marker=u{at}"))));
    let page: usize = page.map_or(0, |at| at.parse().expect("a number"));
    let upload = |at: usize| format!("<Upload><Key>u{page}-{at}</Key><UploadId>i</UploadId></Upload>");
    let further = match page {
        0..3 => format!("<IsTruncated>true</IsTruncated><NextKeyMarker>u{}</NextKeyMarker>", page + 1),
        _ => String::new(),
    };
    let uploads: String = (0..600).map(upload).collect();
    format!("<ListMultipartUploadsResult>{further}{uploads}</ListMultipartUploadsResult>")
}

// covers: 6.quota.scan.turns
#[tokio::test]
async fn a_long_scan_waits_for_those_of_others() {
    let stage = Stage::new().await;
    stage.store_answers(|asked| match asked.uri.query().unwrap_or_default() {
        query if query.contains("uploads=") && asked.uri.path() == "/films" => {
            let mut answer = answer(200, &[], "");
            *answer.body_mut() = body(many_uploads(asked));
            answer
        }
        query if query.contains("uploads=") => {
            answer(200, &[], "<ListMultipartUploadsResult></ListMultipartUploadsResult>")
        }
        query if query.contains("uploadId=") => answer(200, &[], "<ListPartsResult></ListPartsResult>"),
        _ => answer(200, &[], ONE_OBJECT),
    });
    stage.credential(LIMITED, "films", json!({"data": {"quota_hard_bytes": "100"}}));
    let of = |stage: &Stage, begin: &str| stage.asked().iter().position(|asked| asked.line().starts_with(begin));
    stage.until(|stage| of(stage, "GET /films").is_some()).await;
    tokio::time::pause();
    stage.credential("AKIAOTHER", "songs", json!({"data": {"quota_hard_bytes": "100"}}));
    let versions = "GET /films?encoding-type=url&max-keys=1000&versions=";
    let measured = async {
        while of(&stage, versions).is_none() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(300), measured).await.expect("it comes to its end");
    let other = of(&stage, "GET /songs").expect("it had its turn");
    let parts = |asked: &&Asked| asked.line().starts_with("GET /films/");
    let before = stage.asked().iter().take(other).filter(parts).count();
    assert!(before < 1500, "{before} uploads were looked into before");
    let all = stage.asked().iter().filter(parts).count();
    assert_eq!(all, 2400, "what was put off goes on where it was");
}

/// A gateway that shuts down publishes its remaining counters, and deletes its Lease.
#[tokio::test]
async fn a_gateway_that_ends_leaves_its_words_and_no_lease() {
    let one = of_at_most(10_000, 200).await;
    let other = one.beside().await;
    one.until(|stage| of_exchange(stage, "leases").len() == 2).await;
    let (status, _, _) = one.signed_as(LIMITED, put(40)).await;
    assert_eq!(status.as_u16(), 200);
    assert_eq!(used(&other), 60, "that little is not told at once");
    one.end().await;
    other.until(|stage| used(stage) == 100).await;
    assert_eq!(of_exchange(&other, "leases").len(), 1);
}

// covers: 6.quota.ready
/// No requests are routed to a gateway that doesn't know the others' usage yet.
#[tokio::test]
async fn a_gateway_is_ready_once_it_has_heard_of_the_others() {
    let one = of_at_most(1000, 200).await;
    assert!(one.gateway.fitness(Instant::now()).is_ok());
    let other = one.beside().await;
    other.until(|stage| stage.gateway.fitness(Instant::now()).is_ok()).await;
    assert_eq!(used(&other), 60, "it knows when it is ready");
    let begun = Instant::now();
    let (status, _, _) = other.signed_as(LIMITED, put(1)).await;
    assert!(status.is_success() && begun.elapsed().as_secs() < 5);
}

/// Returns the number of replicas in the metrics.
fn counting_together(stage: &Stage) -> u64 {
    let text = stage.gateway.measure(Instant::now(), 0, &Gauges::default());
    let line = text.lines().find_map(|line| line.strip_prefix("stowage_gateway_quota_replicas "));
    line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no such gauge in {text}"))
}

#[tokio::test]
async fn gateways_that_come_and_go_are_measured() {
    let one = of_at_most(1000, 200).await;
    one.until(|stage| counting_together(stage) == 1).await;
    let other = one.beside().await;
    one.until(|stage| counting_together(stage) == 2).await;
    other.until(|stage| counting_together(stage) == 2).await;
    other.end().await;
    one.until(|stage| counting_together(stage) == 1).await;
}

/// No watch delivers a deletion that was compacted away: the Lease is missing in the next list.
#[tokio::test]
async fn a_lease_that_was_deleted_while_nobody_watched_counts_no_more() {
    let stage = of_at_most(1000, 200).await;
    let leases = GroupVersionResource::gvr("coordination.k8s.io", "v1", "leases");
    let name = "stowage-gateway-other";
    let lease = json!({"metadata": {
        "labels": {"broker.stowage.io/usage": "replica"}, "annotations": {"broker.stowage.io/renewals": "1"},
    }});
    stage.cluster.put(&leases, SYSTEM, name, lease).expect("a Lease");
    stage.until(|stage| counting_together(stage) == 2).await;
    let begun = Instant::now();
    stage.cluster.remove("leases", SYSTEM, name).expect("it was there");
    stage.cluster.compact();
    stage.until(|stage| counting_together(stage) == 1).await;
    assert!(begun.elapsed().as_secs() < 20, "before it has been silent for so long that it is taken for gone");
}
