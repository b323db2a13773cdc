use http_body_util::{BodyExt, StreamBody};
use rstest::rstest;

use super::super::scripted::{Reply, Store};
use super::super::{Class, Flaw, UpstreamError};
use super::*;
use crate::api::BucketName;
use crate::plan::BucketSeen;

fn bucket() -> BucketName {
    BucketName::parse("photos").expect("a name")
}

/// Collects a body of these pieces within a bound.
async fn collected(pieces: Vec<&'static [u8]>, bound: Bound) -> Result<Bytes, BoxError> {
    let pieces = pieces.into_iter().map(|piece| Ok::<_, BoxError>(Frame::data(Bytes::from_static(piece))));
    let body = SdkBody::from_body_1_x(StreamBody::new(futures::stream::iter(pieces)));
    Ok(Bounded::new(body, bound).collect().await?.to_bytes())
}

#[tokio::test]
async fn what_fits_is_whole_and_in_one_piece() {
    let bound = Bound { bytes: 6, tags: 2 };
    assert_eq!(collected(vec![b"<a", b"", b"/", b"<b>"], bound).await.expect("it fits"), "<a/<b>");
    assert_eq!(collected(vec![], bound).await.expect("it fits"), "");
}

// covers: 3.5.answer
#[rstest]
#[case::bytes(vec![b"<aaa" as &[u8], b"aaa"])]
#[case::tags(vec![b"<a<" as &[u8], b"<"])]
#[tokio::test]
async fn what_is_longer_fails(#[case] pieces: Vec<&'static [u8]>) {
    let error = collected(pieces, Bound { bytes: 6, tags: 2 }).await.expect_err("it is too long");
    assert!(error.is::<TooLong>(), "{error}");
}

/// A store that sends each byte separately costs no more memory than one that sends them together.
// covers: 3.5.answer
#[test]
fn memory_is_bounded_by_capacity() {
    let bound = Bound { bytes: 100_000, tags: 10 };
    let mut body = Bounded::new(SdkBody::empty(), bound);
    for _ in 0..bound.bytes {
        body.take(b" ").expect("it fits");
        assert!(body.taken.capacity() <= bound.bytes);
    }
    assert!(body.take(b" ").is_err() && body.taken.capacity() <= bound.bytes);
}

#[test]
fn an_error_has_a_small_bound_whatever_was_asked() {
    for operation in ["ListObjectVersions", "GetBucketTagging", "CreateBucket"] {
        assert_eq!(bound(operation, false), PLAIN);
    }
    assert_eq!((bound("CreateBucket", true), bound("ListObjectVersions", true)), (PLAIN, LIST));
}

/// Uses the longest possible tags: 50, of characters that XML writes as six.
#[tokio::test]
async fn the_longest_tags_are_read() {
    let tag =
        |n: usize| format!("<Tag><Key>{n}{}</Key><Value>{}</Value></Tag>", "&quot;".repeat(126), "&quot;".repeat(256));
    let tags: String = (10..60).map(tag).collect();
    let answer = format!("<Tagging><TagSet>{tags}</TagSet></Tagging>");
    let store = Store::that(move |_, _| Reply::ok(&answer));
    let Ok(BucketSeen::Present(Some(tags))) = store.upstream().look(&bucket()).await else { panic!("they are read") };
    assert_eq!(tags.len(), 50);
}

// covers: 3.5.answer
#[rstest]
#[case::tags(200)]
#[case::an_error(404)]
#[case::a_refusal(403)]
#[tokio::test]
async fn an_answer_that_is_too_long_says_nothing_of_the_bucket(#[case] status: u16) {
    let store = Store::that(move |_, _| Reply { status, ..Reply::ok(&" ".repeat(300 << 10)) });
    let class = Class::Unusable(Flaw::TooLong);
    assert_eq!(store.upstream().look(&bucket()).await, Err(UpstreamError { operation: "GetBucketTagging", class }));
}

/// Returns a version as Amazon S3 writes it, with a key of `length` characters that XML writes as
/// six.
fn version(length: usize) -> String {
    let (key, id) = ("&quot;".repeat(length), "3sL4kqtJlcpXroDTDmJ+rmSpXd3dIbrHY+MTRCxf3vjVBH40Nr8X8gdRQBpUMLUo");
    let owner = "75aa57f09aa0c8caeab4f8c24e99d10f8e7faeebf76c078efc7c6caea54ba06a";
    format!(
        "<Version><Key>{key}</Key><VersionId>{id}</VersionId><IsLatest>true</IsLatest>\
         <LastModified>2009-10-12T17:50:30.000Z</LastModified><ETag>&quot;fba9dede5f27731c9771645a39863328&quot;</ETag>\
         <ChecksumAlgorithm>CRC64NVME</ChecksumAlgorithm><ChecksumType>FULL_OBJECT</ChecksumType><Size>434234</Size>\
         <Owner><ID>{owner}</ID><DisplayName>{owner}</DisplayName></Owner><StorageClass>STANDARD</StorageClass></Version>"
    )
}

/// Returns the page sizes that a purge requests if every key has `length` characters.
async fn sizes(length: usize) -> Vec<usize> {
    let size = |uri: &str| {
        let from = uri.split("max-keys=").nth(1).unwrap_or_default();
        from.split('&').next().and_then(|size| size.parse::<usize>().ok()).unwrap_or_default()
    };
    let store = Store::that(move |_, uri| match uri {
        uri if uri.contains("versions") => {
            let versions = version(length).repeat(size(uri));
            Reply::ok(&format!("<ListVersionsResult>{versions}</ListVersionsResult>"))
        }
        uri if uri.contains("uploads") => Reply::ok("<ListMultipartUploadsResult/>"),
        _ => Reply::ok("<DeleteResult/>"),
    });
    let slice = store.upstream().purge(&bucket(), 1000).await;
    assert_eq!(slice.failed, None);
    assert!(slice.complete && slice.deleted > 0, "{slice:?}");
    store.asked("GET").iter().filter(|asked| asked.uri.contains("versions")).map(|asked| size(&asked.uri)).collect()
}

// covers: 3.5.answer
#[tokio::test]
async fn a_page_of_long_keys_fits_and_one_of_the_longest_is_asked_for_in_parts() {
    assert_eq!(sizes(200).await, [1000]);
    assert_eq!(sizes(1024).await, [1000, 100]);
}

/// Not all stores support `max-buckets`.
// covers: 3.5.answer
#[rstest]
#[case::buckets("ListAllMyBucketsResult", 200, true)]
#[case::another_document("html", 200, false)]
#[case::an_error("ListAllMyBucketsResult", 500, false)]
#[tokio::test]
async fn a_probe_succeeds_however_many_buckets_are_listed(#[case] root: &str, #[case] status: u16, #[case] ok: bool) {
    let bucket = "<Bucket><Name>photos</Name><CreationDate>2009-10-12T17:50:30.000Z</CreationDate></Bucket>";
    let answer = format!("<?xml version=\"1.0\"?><{root}><Buckets>{}</Buckets></{root}>", bucket.repeat(100_000));
    let store = Store::that(move |_, _| Reply { status, ..Reply::ok(&answer) });
    let class = Class::Unusable(Flaw::TooLong);
    let probed = store.upstream().probe().await;
    assert_eq!(probed, if ok { Ok(()) } else { Err(UpstreamError { operation: "ListBuckets", class }) });
}
