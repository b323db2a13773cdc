use std::collections::BTreeMap;

use jiff::Timestamp;
use stowage_testbed::sigv4::Signer;
use stowage_testbed::store::Key;

use super::*;

fn scene() -> Scene {
    Scene {
        bucket: "photos".to_owned(),
        films: "films".to_owned(),
        neighbour: "neighbour".to_owned(),
        past: "PASTID".to_owned(),
        versions: vec!["V1".to_owned(), "V2".to_owned()],
        uploads: vec!["U1".to_owned()],
    }
}

/// Returns a whole request as one text.
fn text(request: &Request) -> String {
    let key = Key { id: "AKIA".to_owned(), secret: "secret".to_owned() };
    let signer = Signer { key: &key, region: "us-east-1", now: Timestamp::UNIX_EPOCH };
    let body = match &request.body {
        Body::Bytes(bytes) => bytes.clone(),
        Body::Form(form) => form.body(&signer, "photos"),
    };
    format!("{request}\n{:?}\n{}", request.headers, body.escape_ascii())
}

fn many(seed: u64) -> Vec<Request> {
    let generator = Generator::new(seed, scene());
    (0..6000).map(|number| generator.request(number)).collect()
}

#[test]
fn a_seed_and_a_number_make_the_same_request() {
    let texts = |seed| many(seed).iter().map(text).collect::<Vec<_>>();
    let (one, other) = (texts(7), texts(8));
    assert_eq!(one, texts(7));
    assert_ne!(one, other);
    let alone = Generator::new(7, scene()).request(1234);
    assert_eq!(text(&alone), one[1234], "it needs none before it");
}

#[test]
fn each_kind_is_sent_by_both_and_signed_in_its_ways() {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for request in many(7) {
        let Request { kind, who, signed, .. } = request;
        *counts.entry(format!("{} {who:?}", kind.name())).or_default() += 1;
        *counts.entry(format!("{} {signed:?}", kind.name())).or_default() += 1;
    }
    for kind in Kind::ALL {
        for who in [Who::Owner, Who::Guest] {
            let count = counts.get(&format!("{} {who:?}", kind.name())).copied().unwrap_or_default();
            assert!(count > 100, "{} of the {who:?}: {counts:?}", kind.name());
        }
    }
    for of_kind in ["heads Query", "headers Query", "forms Form", "documents Headers"] {
        assert!(counts.get(of_kind).is_some_and(|count| *count > 50), "{of_kind}: {counts:?}");
    }
}

/// Oddities that each kind must try, as they occur in its requests.
const TRIED: [(Kind, &[&str]); 5] = [
    (Kind::Heads, &["?acl", "%252e%252e", "versionId=PASTID", ".sgwtmp", "x-http-method-override"]),
    (
        Kind::Documents,
        &[
            "<Delete>",
            "<CompleteMultipartUpload>",
            "<Tagging>",
            "../neighbour/secret/crown.txt",
            "<![CDATA[",
            "&#46;",
            "<!DOCTYPE",
            "encoding=\\\"UTF-16\\\"",
            "\\xef\\xbb\\xbf",
            "\\xff\\xfe",
            "\\xc0\\xae",
            "xmlns=",
            "<VersionId>",
            "<Size>",
            "<Key><Key>",
            "</Key><Key>",
            "<Quiet>",
            "many/999",
        ],
    ),
    (
        Kind::Sources,
        &[
            "neighbour/secret/crown.txt",
            "films/reel",
            "?versionId=PASTID",
            "%3FversionId%3DPASTID",
            "%253FversionId%253DPASTID",
            "%2F",
            "x-amz-copy-source-range",
            "x-amz-copy-source-if-match",
            "uploadId=U1",
            "arn:aws",
        ],
    ),
    (
        Kind::Forms,
        &[
            "name=\\\"key\\\"",
            "name=\\\"acl\\\"",
            "name=\\\"bucket\\\"",
            "${filename}",
            "filename=\\\"../../outside.txt\\\"",
            "boundary=\\\"a b\\\"",
            "boundary=----WebKit",
            "name=\\\"Key\\\"",
            "filename*=",
            "Content-Transfer-Encoding",
        ],
    ),
    (Kind::Headers, &["x-amz-grant-key", "x-amz-checksum-crc32", "x-amz-copy-source-range", "if-match", "x-amz-mfa"]),
];

#[test]
fn each_oddity_occurs() {
    let all: Vec<(Kind, String)> = many(7).iter().map(|request| (request.kind, text(request))).collect();
    for (kind, pieces) in TRIED {
        for piece in pieces {
            let count = all.iter().filter(|(of, text)| *of == kind && text.contains(piece)).count();
            assert!(count > 0, "no {} with {piece}", kind.name());
        }
    }
}

#[test]
fn every_header_of_the_gateways_table_occurs() {
    let all: Vec<Request> = many(7).into_iter().filter(|request| request.kind == Kind::Headers).collect();
    let own = ["content-length", "x-amz-content-sha256", "x-amz-date"];
    for name in stowage_gateway::head::header_names().filter(|name| !own.contains(&name.as_str())) {
        let in_query = |request: &Request| request.query.iter().any(|pair| pair.name == name.as_bytes());
        let count = all.iter().filter(|request| request.headers.contains_key(&name) || in_query(request)).count();
        assert!(count > 0, "{name}");
    }
}
