//! The client's view of a store's response.

use rstest::rstest;

use crate::{STORE_KEY, Stage, answer, ask, code};

/// The document of a CompleteMultipartUpload.
const PARTS: &str = "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>e</ETag></Part>\
    </CompleteMultipartUpload>";

// covers: 6.answers
#[tokio::test]
async fn an_answer_loses_what_is_the_stores_own() {
    let stage = Stage::new().await;
    let of_store = [
        ("etag", "\"e\""),
        ("server", "MinIO"),
        ("x-amz-request-id", "THEIRS"),
        ("x-minio-deployment-id", "d"),
        ("x-amz-meta-who", "me"),
        ("location", "http://s3.example"),
    ];
    stage.store_answers(move |_| answer(200, &of_store, "content"));
    let (status, headers, text) = stage.signed(ask("GET", "/photos/a")).await;
    assert_eq!((status.as_u16(), text.as_str()), (200, "content"));
    let mut names: Vec<&str> = headers.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["etag", "x-amz-id-2", "x-amz-meta-who", "x-amz-request-id"]);
    assert_ne!(headers["x-amz-request-id"], "THEIRS");
    assert_eq!(headers["x-amz-id-2"], "THEIRS");
}

#[rstest]
#[case(404, "<Error><Code>NoSuchKey</Code><Message>m</Message><Key>a</Key></Error>", 404, "NoSuchKey")]
#[case(412, "<Error><Code>PreconditionFailed</Code></Error>", 412, "PreconditionFailed")]
#[case(503, "<Error><Code>SlowDown</Code></Error>", 503, "SlowDown")]
#[case(403, "<Error><Code>AccessDenied</Code><Message>User arn:x may not</Message></Error>", 403, "AccessDenied")]
#[case(
    403,
    "<Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>STOREADMINKEY</AWSAccessKeyId></Error>",
    503,
    "ServiceUnavailable"
)]
#[case(403, "<Error><Code>InvalidAccessKeyId</Code></Error>", 503, "ServiceUnavailable")]
#[case(403, "<html>forbidden by a proxy</html>", 503, "ServiceUnavailable")]
#[case(404, "nothing here", 503, "ServiceUnavailable")]
#[case(
    307,
    "<Error><Code>TemporaryRedirect</Code><Endpoint>inner.example</Endpoint></Error>",
    503,
    "ServiceUnavailable"
)]
// covers: 6.answers.ourKey
#[tokio::test]
async fn an_error_is_about_the_request_or_is_not_told(
    #[case] status: u16,
    #[case] text: &'static str,
    #[case] told: u16,
    #[case] expected: &str,
) {
    let stage = Stage::new().await;
    stage.store_answers(move |_| answer(status, &[], text));
    let (status, _, text) = stage.signed(ask("GET", "/photos/a")).await;
    assert_eq!((status.as_u16(), code(&text)), (told, expected), "{text}");
    for ours in [STORE_KEY, "arn:", "inner.example", "s3.example", "proxy"] {
        assert!(!text.contains(ours), "{text}");
    }
}

#[rstest]
#[case(404, 404)]
#[case(403, 403)]
#[case(304, 304)]
#[case(401, 503)]
#[case(301, 503)]
#[tokio::test]
async fn an_answer_to_head_is_told_by_its_status(#[case] status: u16, #[case] told: u16) {
    let stage = Stage::new().await;
    stage.store_answers(move |_| answer(status, &[], ""));
    let (status, _, text) = stage.signed(ask("HEAD", "/photos/a")).await;
    assert_eq!((status.as_u16(), text.as_str()), (told, ""));
}

// covers: 6.answers.late
#[tokio::test]
async fn a_late_error_is_filtered_and_a_location_is_ours() {
    let stage = Stage::new().await;
    let complete = || ask("POST", "/photos/a%20b?uploadId=u").sending(PARTS);
    stage.store_answers(|_| {
        answer(200, &[], "  <CompleteMultipartUploadResult><Location>http://s3.example:9000/photos/a</Location></CompleteMultipartUploadResult>")
    });
    let (_, _, text) = stage.signed(complete()).await;
    assert!(text.contains("<Location>http://gateway.example/photos/a%20b</Location>"), "{text}");
    stage.store_answers(|_| answer(200, &[], " <Error><Code>InvalidAccessKeyId</Code></Error>"));
    let (_, _, text) = stage.signed(complete()).await;
    assert_eq!(code(&text), "ServiceUnavailable", "{text}");
}

// covers: 6.answers.owner
#[rstest]
#[case("/photos?prefix=a")]
#[case("/photos?list-type=2&fetch-owner=true")]
#[case("/photos?versions")]
#[case("/photos?uploads")]
#[case("/photos/a?uploadId=u")]
#[tokio::test]
async fn a_list_tells_no_account_of_the_store(#[case] target: &str) {
    let stage = Stage::new().await;
    stage.store_answers(|_| {
        answer(
            200,
            &[("content-length", "79")],
            "<List><Key>k</Key><Owner><ID>theirs</ID></Owner><Initiator>theirs</Initiator></List>",
        )
    });
    let (status, headers, text) = stage.signed(ask("GET", target)).await;
    assert_eq!(status.as_u16(), 200);
    assert!(text.contains("<Owner><ID>stowage</ID>") && text.contains("<Initiator><ID>stowage</ID>"), "{text}");
    assert!(text.starts_with("<List><Key>k</Key>") && text.ends_with("</List>") && !text.contains("theirs"), "{text}");
    assert!(!headers.contains_key("content-length"), "it is another");
    stage.store_answers(|_| answer(200, &[], "<!DOCTYPE a><List/>"));
    let (_, _, text) = stage.signed(ask("GET", target)).await;
    assert!(text.starts_with("broken off"), "{text}");
}

// covers: 6.answers.deletion
#[tokio::test]
async fn the_result_of_a_deletion_tells_nothing_of_the_store() {
    let stage = Stage::new().await;
    stage.store_answers(|_| {
        let text = "<DeleteResult><Error><Key>a</Key><Code>AccessDenied</Code>\
            <Message>arn:aws:iam::1:user/stowage at /srv/data/photos/a</Message><HostId>inner</HostId></Error>\
            <Deleted><Key>b</Key></Deleted></DeleteResult>";
        answer(200, &[("content-length", "1")], text)
    });
    let document = "<Delete><Object><Key>a</Key></Object><Object><Key>b</Key></Object></Delete>";
    let (status, headers, text) = stage.signed(ask("POST", "/photos?delete").sending(document)).await;
    assert_eq!(status.as_u16(), 200, "{text}");
    let expected = "<DeleteResult><Error><Key>a</Key><Code>AccessDenied</Code>\
        <Message>The object was not deleted.</Message></Error><Deleted><Key>b</Key></Deleted></DeleteResult>";
    assert_eq!(text, expected);
    assert!(!headers.contains_key("content-length"), "it is another");
}

// covers: 6.form
#[tokio::test]
async fn a_form_is_stored_as_an_object() {
    let stage = Stage::new().await;
    let (status, _, text) = stage.send(ask("POST", "/photos").with("content-type", "multipart/form-data; boundary=b").sending("--b\r\ncontent-disposition: form-data; name=\"key\"\r\n\r\na\r\n--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\nbytes\r\n--b--\r\n").plain()).await;
    assert_eq!((status.as_u16(), code(&text)), (403, "AccessDenied"), "{text}");
    assert!(stage.asked().is_empty(), "nobody signed it");
}
