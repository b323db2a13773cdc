//! Copies: the store copies the same content that was looked up.

use http::Response;
use rstest::rstest;
use stowage_gateway::body::Body;

use crate::{Ask, Asked, Stage, answer, ask, code, deletions};

fn copy(source: &str) -> Ask {
    ask("PUT", "/photos/b").with("x-amz-copy-source", source).sending("")
}

// covers: 6.copy.version
/// Some stores decode the whole header before they look for the version (versitygw 1.8.0).
#[rstest]
#[case("/photos/pub/doc%3FversionId%3DV1")]
#[case("/photos/pub/doc%3fversionid=V1")]
#[case("/photos/pub/doc%253FversionId%253DV1")]
#[tokio::test]
async fn a_key_that_names_a_version_is_not_copied(#[case] source: &str) {
    let stage = Stage::new().await;
    let part = ask("PUT", "/photos/b?partNumber=1&uploadId=u").with("x-amz-copy-source", source).sending("");
    for request in [copy(source), part] {
        let (status, _, text) = stage.signed(request).await;
        assert_eq!((status.as_u16(), code(&text)), (400, "InvalidArgument"), "{text}");
    }
    assert!(stage.asked().is_empty());
}

/// Returns a store whose objects all have this ETag, or don't exist.
fn store(head: u16) -> impl Fn(&Asked) -> Response<Body> + Send + Sync + 'static {
    move |asked| match asked.method.as_str() {
        "HEAD" => answer(head, &[("content-length", "41"), ("etag", "\"e1\"")], ""),
        _ => answer(200, &[], "<CopyObjectResult/>"),
    }
}

/// Copies within the bucket of an access, with its key.
async fn copied(head: u16, request: Ask) -> (Stage, u16, String) {
    let (stage, id) = deletions::stage(&deletions::store(), None).await;
    stage.store_answers(store(head));
    let (status, _, text) = stage.signed_as(&id, request).await;
    (stage, status.as_u16(), code(&text).to_owned())
}

fn within() -> Ask {
    ask("PUT", "/album/b").with("x-amz-copy-source", "album/a").sending("")
}

// covers: 6.copy.pinned, 8.copy.present
#[tokio::test]
async fn an_access_copies_what_is_there_and_nothing_else() {
    let (stage, status, _) = copied(200, within()).await;
    assert_eq!(status, 200);
    let asked = stage.asked();
    let lines: Vec<String> = asked.iter().map(Asked::line).collect();
    assert_eq!(lines, ["HEAD /album/a", "PUT /album/b"]);
    assert_eq!(asked.last().and_then(|put| put.header("x-amz-copy-source-if-match")), Some("\"e1\""));
}

// covers: 8.copy.present
#[rstest]
#[case(404, 404, "NoSuchKey")]
#[case(403, 403, "AccessDenied")]
#[case(405, 400, "InvalidRequest")]
#[case(412, 412, "PreconditionFailed")]
#[case(304, 412, "PreconditionFailed")]
#[case(500, 503, "ServiceUnavailable")]
#[tokio::test]
async fn what_is_behind_a_delete_marker_is_not_copied(#[case] head: u16, #[case] status: u16, #[case] expected: &str) {
    let part = ask("PUT", "/album/b?partNumber=1&uploadId=u").with("x-amz-copy-source", "album/a").sending("");
    let part = part.with("x-amz-copy-source-range", "bytes=0-9");
    for request in [within(), part] {
        let (stage, found, text) = copied(head, request).await;
        assert_eq!((found, text.as_str()), (status, expected));
        assert!(stage.asked().iter().all(|asked| asked.method == "HEAD"), "it is not copied");
    }
}

// covers: 6.copy.pinned
/// A store would ignore some of them next to the pin.
#[tokio::test]
async fn conditions_on_a_source_are_those_of_the_look() {
    let since = "Sat, 01 Jan 2000 00:00:00 GMT";
    let request = within()
        .with("x-amz-copy-source-if-unmodified-since", since)
        .with("x-amz-copy-source-if-match", "*")
        .with("x-amz-copy-source-server-side-encryption-customer-algorithm", "AES256");
    let (stage, status, _) = copied(200, request).await;
    assert_eq!(status, 200);
    let asked = stage.asked();
    let [head, put] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!((head.header("if-unmodified-since"), head.header("if-match")), (Some(since), Some("*")));
    assert_eq!(head.header("x-amz-server-side-encryption-customer-algorithm"), Some("AES256"));
    assert_eq!(put.header("x-amz-copy-source-if-match"), Some("\"e1\""));
}

/// A source isn't looked up if its properties don't matter.
#[tokio::test]
async fn a_claims_key_without_a_quota_copies_at_once() {
    let stage = Stage::new().await;
    let (status, _, text) = stage.signed(copy("photos/a")).await;
    assert_eq!(status.as_u16(), 200, "{text}");
    assert_eq!(stage.only().header("x-amz-copy-source-if-match"), None);
}
