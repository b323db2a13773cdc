use http::HeaderMap;
use rstest::rstest;

use super::super::generate::{Generator, Kind, Scene};
use super::super::rules::Grant;
use super::*;

const LINE: &str = "owner photos [27/November/2026:14:57:42 +0000] 127.0.0.1 key VB1G6O86ZYW8POHA \
    s3_GetObject a b?acl /photos/a%20b?x 200 - 378 0";

#[test]
fn a_line_tells_bucket_and_operation() {
    let line = Understood::read(LINE).unwrap();
    assert_eq!((line.bucket.as_str(), line.operation.as_str()), ("photos", "s3_GetObject"));
    assert!(Understood::read("b /photos/a 200 - 378 0 0 0 0 0 0").is_none());
}

fn request(method: &'static str, target: &str, body: Body) -> Request {
    let (path, _) = target.split_once('?').unwrap_or((target, ""));
    Request {
        number: 7,
        kind: Kind::Heads,
        who: Who::Guest,
        signed: Signed::Headers,
        method,
        path: path.as_bytes().to_vec(),
        query: Vec::new(),
        target: target.to_owned(),
        headers: HeaderMap::new(),
        body,
    }
}

/// Returns a request as it is sent, with these headers.
fn sent(request: &Request, headers: &[(&'static str, &'static str)], body: &[u8]) -> Written {
    let mut all = HeaderMap::new();
    for (name, value) in [("host", "s3.example")].iter().chain(headers) {
        all.insert(*name, value.parse().unwrap());
    }
    if request.method != "GET" {
        all.insert("content-length", body.len().into());
    }
    Written { method: request.method, target: request.target.clone(), headers: all, body: body.to_vec() }
}

fn lines(lines: &[(&str, &str)]) -> Vec<Understood> {
    let line = |(bucket, operation): &(&str, &str)| Understood {
        bucket: (*bucket).to_owned(),
        operation: (*operation).to_owned(),
        rest: "a".to_owned(),
    };
    lines.iter().map(line).collect()
}

fn received(head: &str, body: &[u8]) -> Received {
    Received { head: head.replace('|', "\r\n").into_bytes(), body: body.to_vec(), is_whole: true }
}

fn rights() -> Rights {
    let grant = |is_read_only, prefix| Grant { is_read_only, prefix };
    let buckets = [("photos".to_owned(), grant(false, "")), ("films".to_owned(), grant(true, ""))];
    Rights { buckets: buckets.into(), pins: true }
}

/// Returns the errors found in a result.
fn judged(request: &Request, sent: &Written, received: &[Received], lines: &[Understood], answer: &str) -> Vec<String> {
    let answer = Answer { status: 200, bytes: answer.as_bytes().to_vec() };
    let outcome = Outcome { received, understood: lines, answer: &answer };
    judge(request, sent, &outcome, &Bounds { rights: &rights(), secrets: &["crown 7".to_owned()] }).wrong
}

fn get() -> (Request, Written) {
    let request = request("GET", "/photos/%61", Body::Bytes(Vec::new()));
    let sent = sent(&request, &[], b"");
    (request, sent)
}

#[rstest]
#[case::the_same(&[("photos", "s3_GetObject")], None)]
#[case::no_call(&[], None)]
#[case::administration(&[("photos", "s3_GetObjectAcl")], Some("GetObject was understood as s3_GetObjectAcl"))]
#[case::elsewhere(&[("other", "s3_GetObject")], Some("GetObject was understood as s3_GetObject of bucket other"))]
#[case::twice(&[("photos", "s3_GetObject"), ("photos", "s3_PutObject")], Some("the store had a second request"))]
#[case::looked(&[("films", "s3_HeadObject"), ("photos", "s3_GetObject")], Some("the store had a second request"))]
fn a_store_understands_what_the_gateway_did(#[case] found: &[(&str, &str)], #[case] why: Option<&str>) {
    let (request, written) = get();
    let found = lines(found);
    let wrong = judged(&request, &written, &[], &found, "");
    assert_eq!(wrong.len(), usize::from(why.is_some()), "{wrong:?}");
    assert!(wrong.concat().starts_with(why.unwrap_or_default()), "{wrong:?}");
    assert!(understood_otherwise(&Expected::Nothing, &found).is_err() || found.is_empty());
}

#[rstest]
#[case::looked_at(&[("films", "s3_HeadObject"), ("photos", "s3_CopyObject")], None)]
#[case::not_there(&[("films", "s3_HeadObject")], None)]
#[case::elsewhere(&[("other", "s3_HeadObject"), ("photos", "s3_CopyObject")], Some("the store had a second request"))]
#[case::a_put(&[("films", "s3_HeadObject"), ("photos", "s3_PutObject")], Some("CopyObject was understood as"))]
fn a_source_is_looked_at_before(#[case] found: &[(&str, &str)], #[case] why: Option<&str>) {
    let request = request("PUT", "/photos/b", Body::Bytes(Vec::new()));
    let headers = [("x-amz-copy-source", "/films/reel"), ("x-amz-metadata-directive", "REPLACE ")];
    let written = sent(&request, &headers, b"");
    let wrong = judged(&request, &written, &[], &lines(found), "");
    assert_eq!(wrong.len(), usize::from(why.is_some()), "{wrong:?}");
    assert!(wrong.concat().starts_with(why.unwrap_or_default()), "{wrong:?}");
}

#[rstest]
#[case::deletion("DELETE", "/photos/a", &[("photos", "s3_HeadObject"), ("photos", "s3_DeleteObject")], true)]
#[case::deleted("DELETE", "/photos/a", &[("photos", "s3_HeadObject")], false)]
#[case::deletions("POST", "/photos?delete", &[
    ("photos", "s3_GetBucketVersioning"), ("photos", "s3_HeadObject"), ("photos", "s3_HeadObject"),
    ("photos", "s3_DeleteObjects"),
], true)]
#[case::hidden("PUT", "/photos/a//b", &[("photos", "s3_GetBucketVersioning")], false)]
#[case::the_head_itself("HEAD", "/photos/a", &[("photos", "s3_HeadObject")], true)]
fn a_look_before_is_not_what_was_asked(
    #[case] method: &'static str,
    #[case] target: &str,
    #[case] found: &[(&str, &str)],
    #[case] is_forwarded: bool,
) {
    let request = request(method, target, Body::Bytes(Vec::new()));
    let written = sent(&request, &[], b"");
    let (found, answer) = (lines(found), Answer { status: 200, bytes: Vec::new() });
    let outcome = Outcome { received: &[], understood: &found, answer: &answer };
    let judged = judge(&request, &written, &outcome, &Bounds { rights: &rights(), secrets: &[] });
    assert_eq!((judged.wrong, judged.is_forwarded), (Vec::new(), is_forwarded));
}

#[test]
fn what_a_store_receives_is_held_against_the_senders_rights() {
    let (request, written) = get();
    let judged = |head: &str| judged(&request, &written, &[received(head, b"")], &[], "");
    assert_eq!(judged("GET /photos/a HTTP/1.1|host: a"), [] as [&str; 0]);
    let wrong = judged("GET /other/a HTTP/1.1|host: a");
    let expected = "the store received bucket \"other\", which the key doesn't open: GET /other/a HTTP/1.1";
    assert_eq!(wrong, [expected]);
    let wrong = judged("GET /films/a?versionId=x HTTP/1.1");
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    let half = Received { is_whole: false, ..received("GET /photos/a HTTP/1.1", b"") };
    assert!(check(&half, &request, &written, &rights()).is_err());
}

#[test]
fn an_answer_with_what_nobody_may_read_is_seen() {
    let (request, written) = get();
    assert_eq!(judged(&request, &written, &[], &[], "crown 8"), [] as [&str; 0]);
    let expected = "the answer has the content of an object that nobody here may read";
    assert_eq!(judged(&request, &written, &[], &[], "HTTP/1.1 200 OK\r\n\r\nthe crown 7"), [expected]);
}

const PUT: &str = "PUT /photos/uploads/a HTTP/1.1|content-length: 4";

#[rstest]
#[case::the_same(b"data", None)]
#[case::another(b"date", Some("the store received other bytes than were sent"))]
fn an_object_is_stored_as_it_was_sent(#[case] stored: &[u8], #[case] why: Option<&str>) {
    let request = request("PUT", "/photos/uploads/a", Body::Bytes(b"data".to_vec()));
    let written = sent(&request, &[], b"data");
    let wrong = judged(&request, &written, &[received(PUT, stored)], &[], "");
    assert!(wrong.concat().starts_with(why.unwrap_or_default()) && wrong.len() == usize::from(why.is_some()));
}

#[rstest]
#[case::the_same("<Delete><Object><Key>a/b</Key></Object></Delete>", None)]
#[case::another("<Delete><Object><Key>a/c</Key></Object></Delete>", Some("the store received"))]
#[case::one_more("<Delete><Object><Key>a/b</Key></Object><Object><Key>c</Key></Object></Delete>", Some("the store"))]
#[case::left_out("<Delete><Object><Key>d</Key></Object></Delete>", None)]
#[case::another_order("<Delete><Object><Key>d</Key></Object><Object><Key>a/b</Key></Object></Delete>", Some("the"))]
#[case::quiet("<Delete><Object><Key>d</Key></Object><Quiet>true</Quiet></Delete>", Some("the store"))]
#[case::a_version("<Delete><Object><Key>a/b</Key><VersionId>x</VersionId></Object></Delete>", Some("the store"))]
fn a_document_says_what_was_sent(#[case] stored: &str, #[case] why: Option<&str>) {
    let body = b"<Delete><Object><Key>a&#47;<![CDATA[b]]></Key></Object><Object><Key>d</Key></Object>\
        <Quiet>false</Quiet></Delete>";
    let request = request("POST", "/photos?delete", Body::Bytes(body.to_vec()));
    let written = sent(&request, &[], body);
    let head = "POST /photos?delete= HTTP/1.1|content-type: application/xml";
    let wrong = judged(&request, &written, &[received(head, stored.as_bytes())], &[], "");
    assert!(wrong.concat().starts_with(why.unwrap_or_default()), "{wrong:?}");
    assert_eq!(wrong.len(), usize::from(why.is_some()), "{wrong:?}");
}

/// Returns a form with a policy that allows only keys below `uploads/`.
fn form() -> Request {
    let scene = Scene {
        bucket: "photos".to_owned(),
        films: "films".to_owned(),
        neighbour: "neighbour".to_owned(),
        past: "x".to_owned(),
        versions: vec!["y".to_owned()],
        uploads: vec!["z".to_owned()],
    };
    let generator = Generator::new(1, scene);
    let is_it = |request: &Request| matches!(&request.body, Body::Form(form) if form.starts == "uploads/");
    (0..).map(|number| generator.request(number)).find(is_it).unwrap()
}

#[rstest]
#[case::its_file(PUT, b"data", None)]
#[case::another_key("PUT /photos/a HTTP/1.1", b"data", Some("the store received a key that the policy"))]
#[case::other_bytes(PUT, b"date", Some("the store received other bytes than a form's file"))]
#[case::another_operation("DELETE /photos/uploads/a HTTP/1.1", b"", Some("the store received DeleteObject for a form"))]
fn a_form_stores_its_file_where_its_policy_lets_it(
    #[case] head: &str,
    #[case] stored: &[u8],
    #[case] why: Option<&str>,
) {
    let request = form();
    let written = sent(&request, &[], b"--x\r\n\r\ndata\r\n--x--\r\n");
    let understood = lines(&[("photos", "s3_PutObject")]);
    let wrong = judged(&request, &written, &[received(head, stored)], &understood, "");
    assert!(wrong.concat().starts_with(why.unwrap_or_default()), "{wrong:?}");
    assert_eq!(wrong.len(), usize::from(why.is_some()), "{wrong:?}");
    let wrong = judged(&request, &written, &[], &lines(&[("photos", "s3_DeleteObjects")]), "");
    assert!(wrong.concat().starts_with("PostObject was understood as s3_DeleteObjects"), "{wrong:?}");
}
