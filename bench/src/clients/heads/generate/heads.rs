//! Heads: unusual encodings of paths and queries, and headers that some servers obey.

use http::HeaderMap;
use stowage_gateway::uri::Pair;

use super::pen::Pen;
use super::request::{Body, Draft};

/// An operation's method, true if it has a key, required parameters, and optional parameters.
type Shape = (&'static str, bool, &'static [&'static str], &'static [&'static str]);

const LISTS: &[&str] = &["delimiter", "encoding-type", "max-keys", "prefix"];
const READS: &[&str] = &["partNumber", "response-content-type", "response-expires", "versionId"];

/// Requests for data, by S3's documentation.
const SHAPES: [Shape; 22] = [
    ("GET", false, &[], &["delimiter", "encoding-type", "marker", "max-keys", "prefix"]),
    ("GET", false, &["list-type"], &["continuation-token", "fetch-owner", "max-keys", "prefix", "start-after"]),
    ("GET", false, &["versions"], LISTS),
    ("GET", false, &["uploads"], &["delimiter", "key-marker", "max-uploads", "prefix", "upload-id-marker"]),
    ("GET", false, &["location"], &[]),
    ("HEAD", false, &[], &[]),
    ("POST", false, &["delete"], &[]),
    ("GET", true, &[], READS),
    ("GET", true, &[], READS),
    ("HEAD", true, &[], READS),
    ("GET", true, &["attributes"], &["versionId"]),
    ("GET", true, &["tagging"], &["versionId"]),
    ("PUT", true, &["tagging"], &["versionId"]),
    ("DELETE", true, &["tagging"], &["versionId"]),
    ("GET", true, &["uploadId"], &["max-parts", "part-number-marker"]),
    ("PUT", true, &[], &[]),
    ("PUT", true, &[], &[]),
    ("PUT", true, &["partNumber", "uploadId"], &[]),
    ("POST", true, &["uploads"], &[]),
    ("POST", true, &["uploadId"], &[]),
    ("DELETE", true, &["uploadId"], &[]),
    ("DELETE", true, &[], &["versionId"]),
];

/// Parameters that select an administrative operation on some server, or are very similar to one
/// that does.
const TRAPS: [&str; 40] = [
    "acl",
    "ACL",
    "Acl",
    "acl ",
    " acl",
    "acl\0",
    "acl=",
    "acl/",
    "?acl",
    "&acl",
    ";acl",
    "policy",
    "Policy",
    "policyStatus",
    "versioning",
    "lifecycle",
    "cors",
    "website",
    "tagging",
    "Tagging",
    "uploads",
    "delete",
    "Delete",
    "object-lock",
    "retention",
    "legal-hold",
    "restore",
    "select",
    "select-type",
    "encryption",
    "publicAccessBlock",
    "ownershipControls",
    "logging",
    "notification",
    "replication",
    "torrent",
    "x-id",
    "x-amz-acl",
    "versions",
    "location",
];

/// Headers that a client or an attacker may send.
const HEADERS: [(&str, &[&str]); 30] = [
    ("range", &["bytes=0-1", "bytes=-1", "bytes=5-2", "lines=1"]),
    ("if-match", &["*", "\"a\""]),
    ("if-none-match", &["*", "\"a\""]),
    ("if-modified-since", &["Sat, 01 Jan 2000 00:00:00 GMT", "yesterday"]),
    ("cache-control", &["no-cache"]),
    ("content-type", &["text/plain", "application/xml", "multipart/form-data", "multipart/form-data; boundary=x"]),
    ("content-disposition", &["attachment; filename=\"?acl\""]),
    ("content-encoding", &["gzip", "aws-chunked"]),
    ("content-language", &["en"]),
    ("expires", &["0"]),
    ("x-amz-meta-a", &["b", "?acl", "x-amz-acl: public-read", "\u{e9}"]),
    ("x-amz-meta-x-amz-acl", &["public-read"]),
    ("x-amz-acl", &["private", "bucket-owner-full-control", "public-read"]),
    ("x-amz-tagging", &["a=b", "a=b&acl=", "acl"]),
    ("x-amz-storage-class", &["STANDARD"]),
    (
        "x-amz-copy-source",
        &["/BUCKET/k0", "BUCKET/k1", "/BUCKET/k0?versionId=null", "%2FBUCKET%2Fk0", "/BUCKET/a%3Facl"],
    ),
    ("x-amz-metadata-directive", &["REPLACE", "COPY"]),
    ("x-amz-object-attributes", &["ETag", "ETag,ObjectSize"]),
    ("x-amz-expected-bucket-owner", &["1", "stowage"]),
    ("x-amz-checksum-mode", &["ENABLED"]),
    ("x-amz-request-payer", &["requester"]),
    ("x-amz-bypass-governance-retention", &["true"]),
    ("x-http-method-override", &["DELETE", "PUT"]),
    ("x-http-method", &["DELETE"]),
    ("x-original-url", &["/BUCKET?policy"]),
    ("x-rewrite-url", &["/BUCKET?acl"]),
    ("x-forwarded-host", &["other"]),
    ("x-minio-force-delete", &["true"]),
    ("x-minio-extract", &["true"]),
    ("connection", &["x-amz-date", "x-amz-content-sha256"]),
];

const DOCUMENTS: [&str; 5] = [
    "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>",
    "<Delete><Object><Key>k9</Key></Object></Delete>",
    "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>\"a\"</ETag></Part></CompleteMultipartUpload>",
    "<AccessControlPolicy/>",
    "",
];

/// Generates a request of any operation.
pub(super) fn draft(pen: &mut Pen<'_>) -> Draft {
    let mut draft = shaped(pen);
    if pen.chance(40) {
        let name = pen.one(&TRAPS);
        let value = if pen.chance(128) { pen.text(2) } else { Vec::new() };
        draft.query.push(Pair { name: name.as_bytes().to_vec(), value });
    }
    pen.shuffle(&mut draft.query);
    draft.headers = headers(pen);
    draft
}

/// Generates a request of any operation, without headers.
pub(super) fn shaped(pen: &mut Pen<'_>) -> Draft {
    let (method, has_key, asks, may) = pen.one(&SHAPES);
    let key = has_key.then(|| pen.key());
    let mut query: Vec<Pair> = asks.iter().map(|name| pair(pen, name)).collect();
    for name in may {
        if pen.chance(70) || *name == "prefix" && pen.is_guest() {
            query.push(pair(pen, name));
        }
    }
    let has_body = matches!(method, "PUT" | "POST") && (!asks.contains(&"uploads") || pen.chance(20));
    let body = if has_body { pen.one(&DOCUMENTS).into() } else { Vec::new() };
    Draft { method, key, query, headers: HeaderMap::new(), body: Body::Bytes(body) }
}

/// Generates a parameter, usually with a valid value.
fn pair(pen: &mut Pen<'_>, name: &str) -> Pair {
    let value = match name {
        "list-type" => pen.one(&["2", "2", "2", "02", "1"]).into(),
        "partNumber" | "max-keys" | "max-parts" | "max-uploads" | "part-number-marker" => {
            pen.one(&["1", "2", "1000", "0", "x"]).into()
        }
        "encoding-type" => b"url".to_vec(),
        "versionId" => pen.version().into(),
        "uploadId" => pen.upload().into(),
        "attributes" | "delete" | "location" | "tagging" | "uploads" | "versions" => {
            if pen.chance(10) {
                b"x".to_vec()
            } else {
                Vec::new()
            }
        }
        "prefix" | "marker" | "key-marker" | "start-after" | "continuation-token" => pen.key(),
        _ => pen.text(3),
    };
    Pair { name: name.into(), value }
}

fn headers(pen: &mut Pen<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for _ in 0..pen.number(0, 3) {
        let (name, values) = pen.one(&HEADERS);
        let value = pen.one(values);
        let value = pen.filled(value);
        // One byte per character, so that there are bytes beyond ASCII.
        let bytes: Vec<u8> = value.chars().filter_map(|it| u8::try_from(it).ok()).collect();
        pen.header(&mut headers, name, &bytes);
    }
    headers
}
