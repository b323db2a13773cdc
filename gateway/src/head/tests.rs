use http::Request;
use rstest::rstest;

use super::*;

fn sent(method: &str, target: &str, lines: &[(&str, &str)]) -> Result<Sent, Code> {
    let mut request = Request::builder().method(method).uri(target);
    for (name, value) in lines {
        request = request.header(*name, *value);
    }
    let parts = request.body(()).expect("a request").into_parts().0;
    let domains = Domains::new(["s3.example".to_owned()]);
    Sent::read(parts, &domains).map_err(|refusal| refusal.code)
}

fn ask(method: &str, target: &str, lines: &[(&str, &str)]) -> Result<Ask, Code> {
    sent(method, target, lines)?.ask(false, "UNSIGNED-PAYLOAD").map_err(|refusal| refusal.code)
}

const HOST: (&str, &str) = ("host", "gateway");

#[test]
fn a_request_is_read_into_one_struct() {
    let lines = [HOST, ("content-length", "3"), ("content-type", "text/plain"), ("x-amz-meta-a", "b"), ("cookie", "c")];
    let ask = ask("PUT", "/photos/a%20b?x-id=PutObject", &lines).expect("it can be read");
    assert_eq!(ask.operation, Operation::PutObject);
    assert_eq!(path_of(&ask.target), "/photos/a%20b");
    assert!(ask.query.is_empty());
    assert_eq!(ask.headers.len(), 2);
    assert_eq!(ask.payload.length(), 3);
}

#[test]
fn a_host_below_a_domain_is_a_bucket() {
    let ask = ask("GET", "/other/a", &[("host", "photos.s3.example")]).expect("it can be read");
    assert_eq!(path_of(&ask.target), "/photos/other/a");
}

#[rstest]
#[case("PUT", "/photos/a", &[HOST], Code::MissingContentLength)]
#[case("PUT", "/photos/a", &[HOST, ("content-length", "5368709121")], Code::EntityTooLarge)]
#[case("POST", "/photos?delete", &[HOST], Code::MissingContentLength)]
#[case("POST", "/photos?delete", &[HOST, ("content-length", "2097153")], Code::EntityTooLarge)]
#[case("GET", "/photos/a", &[HOST, ("content-length", "1")], Code::InvalidRequest)]
#[case("PUT", "/photos/a", &[HOST, ("content-length", "1"), ("x-amz-copy-source", "photos/b")], Code::InvalidRequest)]
#[case("GET", "/photos/a", &[HOST, ("x-amz-copy-source", "other/b")], Code::InvalidArgument)]
#[case("DELETE", "/photos/a", &[HOST, ("x-amz-copy-source", "other/b")], Code::InvalidArgument)]
#[case("GET", "/photos/a", &[], Code::InvalidRequest)]
#[case("GET", "/photos/a", &[HOST, HOST], Code::InvalidRequest)]
#[case("GET", "http://other/photos/a", &[HOST], Code::InvalidRequest)]
#[case("PUT", "/photos/a?x-amz-acl=public-read", &[HOST, ("content-length", "0")], Code::NotImplemented)]
#[case("PUT", "/photos/a", &[HOST, ("content-length", "0"), ("x-amz-acl", "public-read")], Code::AccessDenied)]
fn what_contradicts_itself_is_refused(
    #[case] method: &str,
    #[case] target: &str,
    #[case] lines: &[(&str, &str)],
    #[case] code: Code,
) {
    assert_eq!(ask(method, target, lines).map(|ask| ask.operation), Err(code));
}

#[test]
fn what_a_presigner_moved_is_judged_as_a_header() {
    let by_query = |target: &str| {
        let sent = sent("PUT", target, &[HOST, ("content-length", "0")]).expect("it can be read");
        sent.ask(true, "UNSIGNED-PAYLOAD").map_err(|refusal| refusal.code)
    };
    let signed = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=00&X-Amz-Date=d&x-id=PutObject";
    assert_eq!(by_query(&format!("/photos/a?{signed}&x-amz-acl=public-read")).err(), Some(Code::AccessDenied));
    let good = by_query(&format!("/photos/a?{signed}&X-Amz-Meta-A=b&x-amz-checksum-crc32=HYZs4w%3D%3D"));
    let good = good.expect("it can be read");
    assert_eq!((good.headers.len(), good.query.len()), (2, 0));
    let copied = by_query(&format!("/photos/a?{signed}&x-amz-copy-source=other%2Fb")).expect("it can be read");
    assert_eq!(copied.copy.map(|source| source.bucket.to_string()).as_deref(), Some("other"));
}

#[test]
fn the_word_of_the_payload_is_one() {
    let sent = sent("PUT", "/photos/a?X-Amz-Content-Sha256=q", &[HOST, ("x-amz-content-sha256", "h")]).expect("a head");
    assert_eq!(sent.payload_word(false), Ok(Some("h")));
    assert!(sent.payload_word(true).is_err());
}

#[test]
fn bounds_hold() {
    let long = format!("/photos/a?prefix={}", "x".repeat(LONGEST_URI));
    assert_eq!(sent("GET", &long, &[HOST]).map(|_| ()), Err(Code::InvalidURI));
    let many = format!("/photos?{}", "a&".repeat(65));
    assert_eq!(sent("GET", &many, &[HOST]).map(|_| ()), Err(Code::InvalidURI));
}
