//! Sources of copies: bucket, key and version, in different encodings.

use http::HeaderMap;
use stowage_gateway::uri::Pair;

use super::pen::{OBJECTS, Pen};
use super::request::{Body, Draft};
use super::scene::SHARED;

/// Suffixes that name a version: as a query, and as parts of a key that some stores take for one.
/// `@` is replaced by its id.
const VERSIONS: &[&str] = &[
    "?versionId=@",
    "?versionId=@",
    "?versionid=@",
    "?VersionId=@",
    "?versionId=@&versionId=null",
    "?versionId=@&acl",
    "?acl&versionId=@",
    "?%76ersionId=@",
    "?versionId",
    "?versionId=",
    "%3FversionId=@",
    "%3FversionId%3D@",
    "%3fversionid%3d@",
    "%3F%76ersionId%3D@",
    "%253FversionId%253D@",
    "%25253FversionId%25253D@",
    "%3FversionId=@?versionId=@",
    "%3Facl&versionId=@",
    "?acl",
    "?",
    "#",
];

/// Headers of a copy, with valid and invalid values.
const HEADERS: &[(&str, &[&str])] = &[
    (
        "x-amz-copy-source-range",
        &[
            "bytes=0-0",
            "bytes=0-3",
            "bytes=0-",
            "bytes=-1",
            "bytes=3-0",
            "bytes=0-0,2-3",
            "bytes=0-99999999999999999999",
        ],
    ),
    ("x-amz-copy-source-if-match", &["*", "\"a\"", "a", "W/\"a\"", "\"a\", *", ""]),
    ("x-amz-copy-source-if-none-match", &["*", "\"a\"", "a"]),
    ("x-amz-copy-source-if-modified-since", &["Sat, 01 Jan 2000 00:00:00 GMT", "yesterday"]),
    ("x-amz-copy-source-if-unmodified-since", &["Sat, 01 Jan 2050 00:00:00 GMT", "yesterday"]),
    ("x-amz-metadata-directive", &["COPY", "REPLACE", "replace", "REPLACE "]),
    ("x-amz-tagging-directive", &["COPY", "REPLACE", "x"]),
    ("x-amz-tagging", &["a=b", "a=b&a=c", "a", "=b"]),
    ("x-amz-source-expected-bucket-owner", &["1", "stowage"]),
    ("x-amz-copy-source-server-side-encryption-customer-algorithm", &["AES256"]),
    ("x-amz-meta-a", &["b"]),
    ("range", &["bytes=0-0"]),
    ("if-match", &["*", "\"a\""]),
    ("x-amz-storage-class", &["STANDARD"]),
    ("content-type", &["text/plain"]),
];

/// Generates a CopyObject or UploadPartCopy request.
pub(super) fn draft(pen: &mut Pen<'_>) -> Draft {
    let mut query = Vec::new();
    if pen.chance(90) {
        let number = pen.one(&["1", "2", "2", "0", "x"]);
        query.push(Pair { name: b"partNumber".to_vec(), value: number.into() });
        query.push(Pair { name: b"uploadId".to_vec(), value: pen.upload().into() });
    }
    let mut headers = HeaderMap::new();
    let source = source(pen);
    pen.header(&mut headers, "x-amz-copy-source", &source);
    if pen.chance(8) {
        let another = self::source(pen);
        pen.header(&mut headers, "x-amz-copy-source", &another);
    }
    for _ in 0..pen.number(0, 2) {
        let (name, values) = pen.one(HEADERS);
        let value = pen.one(values);
        pen.header(&mut headers, name, value.as_bytes());
    }
    // Rarely overwrites an object that other requests need unchanged.
    let key = if pen.chance(200) { format!("copy/{}", pen.number(0, 9)).into_bytes() } else { pen.key() };
    let key = if pen.is_guest() && !pen.chance(10) { [SHARED.as_bytes(), &key].concat() } else { key };
    let body = if pen.chance(6) { b"data".to_vec() } else { Vec::new() };
    Draft { method: "PUT", key: Some(key), query, headers, body: Body::Bytes(body) }
}

/// Generates the value of a header that names a source.
fn source(pen: &mut Pen<'_>) -> Vec<u8> {
    let (bucket, key) = place(pen);
    let path = spelt(pen, &bucket, &key);
    let version = if pen.chance(100) {
        let id = pen.version();
        pen.one(VERSIONS).replace('@', &id)
    } else {
        String::new()
    };
    let source = path + &version;
    match pen.number(0, 60) {
        0 => format!("arn:aws:s3:::{source}"),
        1 => format!("http://127.0.0.1/{source}"),
        2 => format!("{source},{source}"),
        // Encoded twice.
        3 => source.replace('%', "%25"),
        _ => source,
    }
    .into_bytes()
}

/// Chooses a bucket, and a key in it.
fn place(pen: &mut Pen<'_>) -> (String, String) {
    let scene = pen.scene;
    let odd = |pen: &mut Pen<'_>| pen.odd();
    match pen.number(0, 40) {
        0..=3 => (scene.neighbour.clone(), pen.one(&["secret/crown.txt", "k0", "shared/k0"]).to_owned()),
        4..=12 => (scene.films.clone(), pen.one(&["reel", "gone", "a/k2", "none"]).to_owned()),
        13..=15 => (scene.films.clone(), odd(pen)),
        16..=20 => (scene.bucket.clone(), odd(pen)),
        21 => (pen.one(&["..", ".", "", "a", "BUCKET", "e2e-none"]).to_owned(), "k0".to_owned()),
        22 => (format!("{}/..", scene.bucket), format!("{}/k0", scene.neighbour)),
        // Outside of the guest's prefix.
        23..=25 => (scene.bucket.clone(), pen.one(&OBJECTS).to_owned()),
        _ => (scene.bucket.clone(), pen.known()),
    }
}

/// Writes bucket and key as a path, in one of many encodings.
fn spelt(pen: &mut Pen<'_>, bucket: &str, key: &str) -> String {
    let first = pen.one(&["/", "/", "", "", "//", "%2F", "\\", "/./"]);
    let between = pen.one(&["/", "/", "/", "/", "/", "/", "/", "/", "%2F", "%2f", "//", "\\", "%252F", "/../", "?/"]);
    let often = pen.one(&[0, 0, 8, 60, 255]);
    let mut path = first.to_owned();
    path.push_str(bucket);
    path.push_str(between);
    for byte in key.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
        // Rarely unencoded, because a question mark in a key then begins a query, and a plus sign
        // stays one.
        let is_raw = plain || byte.is_ascii_graphic() && pen.chance(20);
        if is_raw && !pen.chance(often) {
            path.push(char::from(byte));
        } else {
            path.push_str(&pen.escape(byte));
        }
    }
    path
}
