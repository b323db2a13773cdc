//! What the store gets is what was understood, and nothing else.

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
    let asked = stage.only();
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

// covers: 6.operations, 6.bucket, 6.headers, 6.copy, 6.segments
/// None of these gets to the store.
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
#[tokio::test]
async fn what_is_not_allowed_goes_nowhere(#[case] request: Ask, #[case] expected: &str) {
    let stage = Stage::new().await;
    let (_, _, text) = stage.signed(request).await;
    assert_eq!(code(&text), expected, "{text}");
    // With the bucket in the host the path is a key, whatever it is called.
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

// covers: 6.body.framing
#[tokio::test]
async fn a_framing_that_is_not_signed_as_one_is_no_framing() {
    let stage = Stage::new().await;
    let put = ask("PUT", "/photos/a").with("x-amz-decoded-content-length", "5").sending("5\r\nhello\r\n0\r\n\r\n");
    let (_, _, text) = stage.signed(put).await;
    assert_eq!(code(&text), "InvalidRequest", "{text}");
    assert!(stage.asked().is_empty());
}

/// A name and a value of a query as an independent reader has them: form_urlencoded's rules.
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    // covers: 6.once
    /// What the store reads, by another's rules, is what the client meant.
    #[test]
    fn the_store_reads_what_the_client_meant(key in "[^\\x00/]{1,20}(/[^\\x00/.]{0,9}){0,3}", prefix in "\\PC{0,20}") {
        // 6.segments: neither a key nor the place of a list climbs.
        let climbs = |text: &str| text.split('/').any(|segment| segment == "." || segment == "..");
        prop_assume!(!climbs(&key) && !climbs(&prefix));
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
            // A plus in a path is a plus to everybody.
            let got = read(&asked[0].uri.path().replace('=', "%3D"));
            assert_eq!(got, [(format!("/photos/{key}").into_bytes(), Vec::new())]);
            let got = read(asked[1].uri.query().expect("a query"));
            let expected = [("list-type", "2"), ("prefix", prefix.as_str())];
            let expected = expected.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
            assert_eq!(got, expected);
        });
    }
}
