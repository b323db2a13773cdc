//! The store gets only what the gateway has parsed.

use proptest::prelude::*;
use rstest::rstest;
use stowage_gateway::server::Gauges;

use crate::{Ask, STORE_KEY, Stage, answer, ask, code};

// covers: 6.once
#[tokio::test]
async fn a_request_is_written_anew_and_signed_with_our_key() {
    let stage = Stage::new().await;
    let put = ask("PUT", "/photos/a%20b//c+d?x-id=PutObject")
        .with("content-type", "text/plain")
        .with("x-amz-meta-who", "me")
        .with("cookie", "c")
        .with("x-forwarded-for", "1.1.1.1")
        .sending("hello");
    let (status, _, text) = stage.signed(put).await;
    assert_eq!((status.as_u16(), text.as_str()), (200, ""));
    let mut calls = stage.asked();
    assert_eq!(calls.len(), 2, "{calls:?}");
    let asked = calls.remove(1);
    assert_eq!(calls.remove(0).line(), "GET /photos?versioning=", "6.segments.hidden");
    assert_eq!(asked.line(), "PUT /photos/a%20b//c%2Bd");
    assert_eq!(asked.uri.authority().map(|it| it.as_str()), Some("s3.example:9000"));
    assert_eq!(asked.body.as_deref(), Ok(b"hello".as_slice()));
    let mut names: Vec<&str> = asked.headers.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    let expected = [
        "authorization",
        "content-length",
        "content-type",
        "host",
        "x-amz-content-sha256",
        "x-amz-date",
        "x-amz-meta-who",
    ];
    assert_eq!(names, expected);
    let measured = stage.gateway.measure(tokio::time::Instant::now(), 0, &Gauges::default());
    assert!(measured.contains("stowage_gateway_received_bytes_total 5\n"), "{measured}");
    assert!(asked.header("authorization").is_some_and(|it| it.contains(&format!("Credential={STORE_KEY}/"))));
}

#[tokio::test]
async fn a_bucket_may_be_in_the_host() {
    let stage = Stage::new().await;
    stage.signed(ask("GET", "/a/b").at("photos.gateway.example")).await;
    assert_eq!(stage.only().line(), "GET /photos/a/b");
}

// covers: 6.copy
#[tokio::test]
async fn the_source_of_a_copy_is_written_anew() {
    let stage = Stage::new().await;
    let copy = ask("PUT", "/photos/b").with("x-amz-copy-source", "photos/a+b?versionId=7%2B").sending("");
    stage.signed(copy).await;
    assert_eq!(stage.only().header("x-amz-copy-source"), Some("/photos/a%2Bb?versionId=7%2B"));
}

// covers: 6.operations, 6.bucket, 6.headers, 6.copy, 6.segments, 6.reserved, 6.owner, 6.metadata
/// None of these reaches the store.
#[rstest]
#[case(ask("PUT", "/photos/a?%61cl").sending(""), "AccessDenied")]
#[case(ask("GET", "/photos?policy"), "AccessDenied")]
#[case(ask("PUT", "/photos").sending(""), "BucketAlreadyOwnedByYou")]
#[case(ask("PUT", "/other").sending(""), "AccessDenied")]
#[case(ask("PUT", "/photos").with("x-amz-acl", "public-read").sending(""), "AccessDenied")]
#[case(ask("DELETE", "/photos"), "AccessDenied")]
#[case(ask("POST", "/photos").sending("a"), "MalformedPOSTRequest")]
#[case(ask("GET", "/other/a"), "AccessDenied")]
#[case(ask("GET", "/other/a").at("photos.gateway.example:1"), "none")]
#[case(ask("PUT", "/photos/a").with("x-amz-copy-source", "other/a").sending(""), "AccessDenied")]
#[case(ask("PUT", "/photos/a").with("x-amz-copy-source", "photos%2F..%2F..%2Fother/a").sending(""), "InvalidArgument")]
#[case(ask("PUT", "/photos/../other/a").sending(""), "InvalidArgument")]
#[case(ask("PUT", "/photos/a").with("x-amz-acl", "public-read").sending(""), "AccessDenied")]
#[case(ask("PUT", "/photos/a").with("x-amz-grant-read", "id=1").sending(""), "AccessDenied")]
#[case(ask("PUT", "/photos/a").with("x-amz-security-token", "t").sending(""), "InvalidToken")]
#[case(ask("GET", "/photos?prefix=a&prefix=b"), "InvalidArgument")]
#[case(ask("GET", "/photos/a?x-amz-acl=public-read"), "NotImplemented")]
#[case(ask("PUT", "/photos/.sgwtmp/hidden").sending(""), "InvalidArgument")]
#[case(ask("GET", "/photos/a/.SGWTMP/multipart/x"), "InvalidArgument")]
#[case(ask("GET", "/photos/a.versions/v_1"), "InvalidArgument")]
#[case(ask("GET", "/photos?prefix=.uploads/"), "InvalidArgument")]
#[case(ask("PUT", "/photos/a").with("x-amz-copy-source", "photos/.minio.sys/a").sending(""), "InvalidArgument")]
#[case(ask("GET", "/photos/a").with("x-amz-expected-bucket-owner", "123456789012"), "AccessDenied")]
#[case(ask("GET", "/photos/a?response-content-type=a%0d%0ax:%20y"), "InvalidArgument")]
#[case(ask("PUT", "/photos/a").with("x-amz-meta-a", &"x".repeat(2048)).sending(""), "MetadataTooLarge")]
#[tokio::test]
async fn what_is_not_allowed_goes_nowhere(#[case] request: Ask, #[case] expected: &str) {
    let stage = Stage::new().await;
    let (_, _, text) = stage.signed(request).await;
    assert_eq!(code(&text), expected, "{text}");
    // With the bucket in the host, the path is a key, even if it is the name of another bucket.
    let passed = usize::from(expected == "none");
    assert_eq!(stage.asked().len(), passed);
}

// covers: 6.signed
#[tokio::test]
async fn a_header_that_nobody_signed_is_refused() {
    let stage = Stage::new().await;
    let mut request = ask("GET", "/photos/a").signed(crate::KEY, crate::SECRET);
    request.headers_mut().insert("x-amz-meta-later", http::HeaderValue::from_static("v"));
    let (status, _, text) = stage.send(request).await;
    assert_eq!((status.as_u16(), code(&text)), (403, "AccessDenied"), "{text}");
    assert!(stage.asked().is_empty());
}

// covers: 6.body
#[tokio::test]
async fn chunks_are_held_against_their_signatures() {
    let stage = Stage::new().await;
    let mut put = ask("PUT", "/photos/a").with("x-amz-decoded-content-length", "5");
    put.payload = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD".to_owned();
    let forged = "0".repeat(64);
    let framed = format!("5;chunk-signature={forged}\r\nhello\r\n0;chunk-signature={forged}\r\n\r\n");
    let (status, _, text) = stage.signed(put.sending(framed)).await;
    assert_eq!((status.as_u16(), code(&text)), (403, "SignatureDoesNotMatch"), "{text}");
    assert!(stage.asked().iter().all(|asked| asked.body.is_err()), "the store got no whole body");
}

// covers: 6.body
/// The gateway compares it, also for stores that don't.
#[tokio::test]
async fn a_body_is_held_against_its_hash() {
    let stage = Stage::new().await;
    for length in [0, 5, 100_000] {
        let mut put = ask("PUT", "/photos/a").sending("x".repeat(length));
        put.payload = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03".to_owned();
        let (status, _, text) = stage.signed(put).await;
        assert_eq!((status.as_u16(), code(&text)), (400, "XAmzContentSHA256Mismatch"), "{text}");
    }
    assert!(stage.asked().iter().all(|asked| asked.body.is_err()), "the store got no whole body");
}

const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

// covers: 6.documents
/// No document of a client reaches the store.
#[rstest]
#[case(
    ask("PUT", "/photos/a?tagging"),
    "<Tagging>\n<TagSet><Tag><Key>k</Key><Value><![CDATA[v]]></Value></Tag></TagSet></Tagging>",
    "Tagging",
    "<TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet>"
)]
#[case(
    ask("POST", "/photos/a?uploadId=u").with("x-amz-checksum-crc32", "AAAAAA=="),
    "<CompleteMultipartUpload><Part><ETag>e</ETag><PartNumber>1</PartNumber></Part></CompleteMultipartUpload>",
    "CompleteMultipartUpload",
    "<Part><PartNumber>1</PartNumber><ETag>e</ETag></Part>"
)]
#[tokio::test]
async fn a_document_is_written_anew(
    #[case] request: Ask,
    #[case] document: &str,
    #[case] root: &str,
    #[case] inner: &str,
) {
    use base64::Engine as _;
    let stage = Stage::new().await;
    let with = |md5: &str| request.clone().with("content-md5", md5).sending(document.to_owned());
    let (status, _, text) = stage.signed(with("1B2M2Y8AsgTpgAmY7PhCfg==")).await;
    assert_eq!((status.as_u16(), code(&text)), (400, "BadDigest"), "{text}");
    let (_, _, text) = stage.signed(request.clone().sending(format!("<!DOCTYPE a>{document}"))).await;
    assert_eq!(code(&text), "MalformedXML", "{text}");
    assert!(stage.asked().is_empty());
    let md5 = <md5::Md5 as md5::Digest>::digest(document.as_bytes());
    let (status, _, text) = stage.signed(with(&base64::engine::general_purpose::STANDARD.encode(md5))).await;
    assert_eq!(status.as_u16(), 200, "{text}");
    let asked = stage.only();
    let written = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{root} xmlns=\"{NAMESPACE}\">{inner}</{root}>");
    assert_eq!(asked.body.as_deref(), Ok(written.as_bytes()));
    assert_eq!(asked.header("content-type"), Some("application/xml"));
    let is_about_object = root == "CompleteMultipartUpload";
    assert_eq!(asked.header("content-md5").is_some(), !is_about_object, "a digest of ours, or none");
    assert_eq!(asked.header("x-amz-checksum-crc32").is_some(), is_about_object);
}

// covers: 6.owner
#[tokio::test]
async fn the_owner_that_is_told_is_the_one_that_is_expected() {
    let stage = Stage::new().await;
    let (status, _, text) = stage.signed(ask("GET", "/photos/a").with("x-amz-expected-bucket-owner", "stowage")).await;
    assert_eq!(status.as_u16(), 200, "{text}");
    assert_eq!(stage.only().header("x-amz-expected-bucket-owner"), None, "a store would compare it with our account");
}

// covers: 6.encoding
#[rstest]
#[case("aws-chunked", None)]
#[case("aws-chunked,gzip", Some("gzip"))]
#[case("gzip", Some("gzip"))]
#[tokio::test]
async fn no_object_is_encoded_as_it_is_framed(#[case] encoding: &str, #[case] expected: Option<&str>) {
    let stage = Stage::new().await;
    let framed = "5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n";
    let mut put = ask("PUT", "/photos/a")
        .with("content-encoding", encoding)
        .with("x-amz-decoded-content-length", "5")
        .with("x-amz-trailer", "x-amz-checksum-crc32")
        .sending(framed);
    put.payload = "STREAMING-UNSIGNED-PAYLOAD-TRAILER".to_owned();
    let (status, _, text) = stage.signed(put).await;
    assert_eq!(status.as_u16(), 200, "{text}");
    let asked = stage.only();
    assert_eq!(asked.header("content-encoding"), expected);
    assert_eq!(asked.header("x-amz-content-sha256"), Some("STREAMING-UNSIGNED-PAYLOAD-TRAILER"));
    assert_eq!(asked.body.as_deref(), Ok(framed.as_bytes()));
}

// covers: 6.body.framing
#[tokio::test]
async fn a_framing_that_is_not_signed_as_one_is_no_framing() {
    let stage = Stage::new().await;
    let put = ask("PUT", "/photos/a").with("x-amz-decoded-content-length", "5").sending("5\r\nhello\r\n0\r\n\r\n");
    let (_, _, text) = stage.signed(put).await;
    assert_eq!(code(&text), "InvalidRequest", "{text}");
    assert!(stage.asked().is_empty());
}

/// Parses a query independently of the gateway, by form_urlencoded's rules.
fn read(query: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let hex = |a: u8, b: u8| u8::from_str_radix(std::str::from_utf8(&[a, b]).ok()?, 16).ok();
    let decode = |text: &str| {
        let (mut bytes, mut read) = (text.as_bytes(), Vec::new());
        while let Some((first, rest)) = bytes.split_first() {
            match (first, rest) {
                (b'%', [a, b, rest @ ..]) => {
                    read.push(hex(*a, *b).expect("two digits"));
                    bytes = rest;
                }
                (b'+', rest) => {
                    read.push(b' ');
                    bytes = rest;
                }
                (byte, rest) => {
                    read.push(*byte);
                    bytes = rest;
                }
            }
        }
        read
    };
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let mut pairs: Vec<_> = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).collect();
    pairs.sort_unstable();
    pairs.into_iter().map(|(name, value)| (decode(name), decode(value))).collect()
}

/// Returns keys of characters that XML 1.0 can carry (6.characters).
fn key() -> impl Strategy<Value = String> {
    let carried = |c: &char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..);
    "[^\\x00/]{1,20}(/[^\\x00/.]{0,9}){0,3}".prop_map(move |text| text.chars().filter(carried).collect::<String>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    // covers: 6.once
    /// An independent parser of the store's request finds what the client sent.
    #[test]
    fn the_store_reads_what_the_client_meant(key in key(), prefix in "\\PC{0,20}") {
        // 6.segments: neither a key nor a position in a list has a segment `.` or `..`.
        let climbs = |text: &str| text.split('/').any(|segment| segment == "." || segment == "..");
        prop_assume!(!climbs(&key) && !climbs(&prefix) && !key.bytes().all(|byte| byte == b'/'));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let stage = Stage::new().await;
            stage.store_answers(|_| answer(200, &[], ""));
            let path = stowage_gateway::uri::encode_path(format!("/photos/{key}").as_bytes());
            let first = stage.signed(ask("GET", &path)).await;
            let list = format!("/photos?list-type=2&prefix={}", stowage_gateway::uri::encode(prefix.as_bytes()));
            let second = stage.signed(ask("GET", &list)).await;
            let asked = stage.asked();
            assert_eq!(asked.len(), 2, "{key:?} {prefix:?}: {first:?}, then {second:?}");
            // In a path, a plus is always a plus.
            let got = read(&asked[0].uri.path().replace('=', "%3D"));
            assert_eq!(got, [(format!("/photos/{key}").into_bytes(), Vec::new())]);
            let got = read(asked[1].uri.query().expect("a query"));
            let expected = [("list-type", "2"), ("prefix", prefix.as_str())];
            let expected = expected.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
            assert_eq!(got, expected);
        });
    }
}
