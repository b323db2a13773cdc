//! The operation that a store finds in a request, and the parameters and headers allowed in a
//! tenant's request (Amazon S3, API reference: the operations on objects and their lists).

use stowage_gateway::head::{Ask, Level, Sent};

use super::super::reading;

/// Query parameters that select an operation. Stores check them in different orders.
const MARKS: [&str; 13] = [
    "acl",
    "attributes",
    "delete",
    "encryption",
    "list-type",
    "location",
    "object-lock",
    "publicAccessBlock",
    "tagging",
    "uploadId",
    "uploads",
    "versioning",
    "versions",
];

/// The other query parameters of operations on objects.
const NAMES: [&str; 24] = [
    "bucket-region",
    "continuation-token",
    "delimiter",
    "encoding-type",
    "fetch-owner",
    "key-marker",
    "marker",
    "max-buckets",
    "max-keys",
    "max-parts",
    "max-uploads",
    "part-number-marker",
    "partNumber",
    "prefix",
    "response-cache-control",
    "response-content-disposition",
    "response-content-encoding",
    "response-content-language",
    "response-content-type",
    "response-expires",
    "start-after",
    "upload-id-marker",
    "version-id-marker",
    "versionId",
];

/// HTTP headers that are stored with an object, or that select a part of it.
const OF_HTTP: [&str; 12] = [
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-md5",
    "content-type",
    "expires",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-unmodified-since",
    "range",
];

/// Prefixes of headers that are denied to tenants; with `$`, whole names.
const CLOSED: [&str; 17] = [
    "x-amz-acl$",
    "x-amz-bypass-",
    "x-amz-content-sha256$",
    "x-amz-copy-source$",
    "x-amz-date$",
    "x-amz-decoded-",
    "x-amz-expected-bucket-owner$",
    "x-amz-grant-",
    "x-amz-meta-minio-snowball",
    "x-amz-meta-snowball-auto-extract",
    "x-amz-mfa$",
    "x-amz-object-lock-",
    "x-amz-object-ownership$",
    "x-amz-security-token$",
    "x-amz-server-side-encryption-aws-",
    "x-amz-source-expected-bucket-owner$",
    "x-amz-website-",
];

/// Checks that only parameters and headers of a single operation are forwarded, and only those that
/// were sent.
pub(super) fn closed(ask: &Ask, sent: &Sent) {
    let names: Vec<&str> = ask.query.iter().map(|pair| str::from_utf8(&pair.name).expect("a name of S3")).collect();
    let marks: Vec<&&str> = names.iter().filter(|name| MARKS.contains(name)).collect();
    assert!(marks.len() <= 1, "{marks:?} are two operations");
    for (at, name) in names.iter().enumerate() {
        assert!(MARKS.contains(name) || NAMES.contains(name), "{name} goes on");
        assert!(!names[..at].contains(name), "{name} goes on twice");
    }
    let meant = route(ask, marks.first().map(|mark| **mark), names.contains(&"partNumber"));
    assert_eq!(ask.operation.name(), meant, "a store does something else");
    for (name, value) in &ask.headers {
        let name = name.as_str();
        let is_closed = CLOSED.iter().any(|closed| match closed.strip_suffix('$') {
            Some(whole) => name == whole,
            None => name.starts_with(closed),
        });
        assert!(OF_HTTP.contains(&name) || name.starts_with("x-amz-") && !is_closed, "{name} goes on");
        let in_head = sent.headers.get_all(name).iter().any(|sent| sent == value);
        let hoisted = |pair: &&stowage_gateway::uri::Pair| pair.name.eq_ignore_ascii_case(name.as_bytes());
        let in_query = sent.query.iter().filter(hoisted).any(|pair| pair.value == value.as_bytes());
        // These are generated from parsed values.
        let is_rewritten = ["content-encoding", "x-amz-copy-source-range", "x-amz-tagging"].contains(&name);
        assert!(in_head || in_query || is_rewritten, "{name} was not sent so");
        let operation = ask.operation.name();
        let is_of_copies = name.starts_with("x-amz-copy-source-");
        assert!(!is_of_copies || ask.copy.is_some(), "{name} goes on with {operation}");
        let is_of_parts = name == "x-amz-copy-source-range";
        assert!(!is_of_parts || operation == "UploadPartCopy", "{name} goes on with {operation}");
        let is_metadata = name.starts_with("x-amz-meta-") || name == "content-encoding";
        let makes = ["CopyObject", "CreateMultipartUpload", "PutObject"].contains(&operation);
        assert!(!is_metadata || makes, "{name} goes on with {operation}");
    }
    for pair in &ask.query {
        let is_one_of = |names: &[&str]| names.iter().any(|name| name.as_bytes() == pair.name);
        let is_path = is_one_of(&["continuation-token", "key-marker", "marker", "prefix", "start-after"]);
        let folders = pair.value.iter().rposition(|byte| *byte == b'/').map_or(&[][..], |end| &pair.value[..end]);
        let written = pair.value.escape_ascii().to_string();
        assert!(!is_path || !reading::climbs(folders), "{written:?} climbs");
        assert!(!is_path || !reading::is_reserved(&[folders, b"/"].concat()), "{written:?} is a store's own");
        let is_id = is_one_of(&["uploadId", "versionId"]);
        let is_marker = is_one_of(&["upload-id-marker", "version-id-marker"]) && !pair.value.is_empty();
        assert!(!is_id && !is_marker || reading::is_id(&pair.value), "{written:?} is no id");
        let is_header = pair.name.starts_with(b"response-");
        assert!(!is_header || !pair.value.iter().any(u8::is_ascii_control), "{written:?} can't be in a header");
    }
}

/// Returns the operation that a store finds in a request.
fn route(ask: &Ask, mark: Option<&str>, numbered: bool) -> &'static str {
    match (ask.method().as_str(), ask.target.level(), mark) {
        ("GET", Level::Service, None) => "ListBuckets",
        ("GET", Level::Bucket, Some("acl")) => "GetBucketAcl",
        ("GET", Level::Bucket, Some("encryption")) => "GetBucketEncryption",
        ("GET", Level::Bucket, Some("location")) => "GetBucketLocation",
        ("GET", Level::Bucket, Some("object-lock")) => "GetObjectLockConfiguration",
        ("GET", Level::Bucket, Some("publicAccessBlock")) => "GetPublicAccessBlock",
        ("GET", Level::Bucket, Some("tagging")) => "GetBucketTagging",
        ("GET", Level::Bucket, Some("versioning")) => "GetBucketVersioning",
        ("GET", Level::Bucket, Some("uploads")) => "ListMultipartUploads",
        ("GET", Level::Bucket, Some("versions")) => "ListObjectVersions",
        ("GET", Level::Bucket, Some("list-type")) => "ListObjectsV2",
        ("GET", Level::Bucket, None) => "ListObjects",
        ("HEAD", Level::Bucket, None) => "HeadBucket",
        ("POST", Level::Bucket, Some("delete")) => "DeleteObjects",
        ("PUT", Level::Bucket, None) => "CreateBucket",
        ("GET", Level::Object, Some("acl")) => "GetObjectAcl",
        ("GET", Level::Object, Some("attributes")) => "GetObjectAttributes",
        ("GET", Level::Object, Some("tagging")) => "GetObjectTagging",
        ("GET", Level::Object, Some("uploadId")) => "ListParts",
        ("GET", Level::Object, None) => "GetObject",
        ("HEAD", Level::Object, None) => "HeadObject",
        ("PUT", Level::Object, Some("tagging")) => "PutObjectTagging",
        ("PUT", Level::Object, Some("uploadId")) if numbered && ask.copy.is_some() => "UploadPartCopy",
        ("PUT", Level::Object, Some("uploadId")) if numbered => "UploadPart",
        ("PUT", Level::Object, None) if ask.copy.is_some() => "CopyObject",
        ("PUT", Level::Object, None) => "PutObject",
        ("POST", Level::Object, Some("uploads")) => "CreateMultipartUpload",
        ("POST", Level::Object, Some("uploadId")) => "CompleteMultipartUpload",
        ("DELETE", Level::Object, Some("tagging")) => "DeleteObjectTagging",
        ("DELETE", Level::Object, Some("uploadId")) => "AbortMultipartUpload",
        ("DELETE", Level::Object, None) => "DeleteObject",
        other => panic!("no store knows {other:?}"),
    }
}
