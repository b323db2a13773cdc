//! Headers by operation: every header of the gateway's table, with its own operations and with
//! others.

use stowage_gateway::head::header_names;
use stowage_gateway::uri::Pair;

use super::heads::shaped;
use super::pen::Pen;
use super::request::{Body, Draft};

/// Names that are not in the table, some of them very similar to one that is.
const STRANGERS: &[&str] = &[
    "x-amz-copy-sourc",
    "x-amz-copy-source-",
    "x-amz-meta-",
    "x-amz-write-offset-bytes",
    "x-amz-rename-source",
    "x-amz-grant-full-control",
    "x-amz-server-side-encryption-customer-key-md5",
    "x-amz-server-side-encryption-aws-kms-key-id",
    "x-amz-meta-x-amz-copy-source",
    "x-rgw-quota",
    "x-minio-source-etag",
    "x-seaweedfs-meta",
    "x-http-method-override",
    "x-forwarded-for",
    "transfer-encoding2",
    "authorization2",
    "forwarded",
    "cookie",
    "if-range",
    "te",
    "trailer",
    "upgrade",
    "via",
];

/// Values for any header.
const VALUES: &[&str] =
    &["", "a", "true", "*", "0", "1", "bytes=0-1", "\"a\"", "a=b", "a, b", "\u{e9}", "../a", "null"];

/// Returns a value that is valid for this header; `None` if any is.
fn fitting(name: &str) -> Option<&'static str> {
    match name {
        "x-amz-acl" => Some("private"),
        "x-amz-metadata-directive" | "x-amz-tagging-directive" => Some("COPY"),
        "x-amz-expected-bucket-owner" | "x-amz-source-expected-bucket-owner" => Some("stowage"),
        "x-amz-copy-source-range" => Some("bytes=0-1"),
        "x-amz-storage-class" => Some("STANDARD"),
        "x-amz-object-attributes" => Some("ETag,ObjectSize"),
        "x-amz-checksum-algorithm" | "x-amz-sdk-checksum-algorithm" => Some("CRC32"),
        "x-amz-server-side-encryption" => Some("AES256"),
        "x-amz-tagging" => Some("a=b"),
        "x-amz-checksum-mode" => Some("ENABLED"),
        "if-modified-since" | "x-amz-copy-source-if-modified-since" => Some("Sat, 01 Jan 2000 00:00:00 GMT"),
        "if-unmodified-since" | "x-amz-copy-source-if-unmodified-since" => Some("Fri, 01 Jan 2100 00:00:00 GMT"),
        _ => None,
    }
}

/// Generates a request of any operation, with headers.
pub(super) fn draft(pen: &mut Pen<'_>) -> Draft {
    let mut draft = shaped(pen);
    if draft.method == "PUT" && pen.chance(100) {
        let source = format!("/{}/{}", pen.scene.bucket, stowage_gateway::uri::encode_path(pen.known().as_bytes()));
        pen.header(&mut draft.headers, "x-amz-copy-source", source.as_bytes());
        draft.body = Body::Bytes(Vec::new());
    }
    let names: Vec<String> = header_names().filter(|name| is_sent(name)).collect();
    for _ in 0..pen.number(1, 4) {
        let at = pen.number(0, names.len() - 1);
        let name = if pen.chance(30) { pen.one(STRANGERS).to_owned() } else { names[at].clone() };
        let value = if pen.chance(150) { fitting(&name) } else { None };
        let value = value.unwrap_or_else(|| pen.one(VALUES));
        // One byte per character, so that there are bytes beyond ASCII.
        let bytes: Vec<u8> = value.chars().filter_map(|it| u8::try_from(it).ok()).collect();
        let lines = if pen.chance(10) { 2 } else { 1 };
        for _ in 0..lines {
            pen.header(&mut draft.headers, &name, &bytes);
        }
    }
    draft
}

/// False for headers that are set when a request is signed and framed.
fn is_sent(name: &str) -> bool {
    !matches!(name, "content-length" | "x-amz-content-sha256" | "x-amz-date")
}

/// Moves headers into the query, as presigners do. Headers that S3 doesn't have as parameters are
/// dropped.
pub(super) fn hoist(draft: &mut Draft) {
    for (name, value) in std::mem::take(&mut draft.headers) {
        let name = name.map(|name| name.as_str().as_bytes().to_vec()).unwrap_or_default();
        if name.starts_with(b"x-amz-") {
            draft.query.push(Pair { name, value: value.as_bytes().to_vec() });
        }
    }
}
