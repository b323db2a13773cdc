//! Uploads by a form, with fields, boundaries and file names that two parsers might read
//! differently.

use http::HeaderMap;

use super::form::{Form, Part, Quirk, Value};
use super::pen::Pen;
use super::request::{Body, Draft};
use super::scene::SHARED;

/// Boundaries, as written in the content type, and their actual values.
const BOUNDARIES: &[(&str, &str)] = &[
    ("x", "x"),
    ("----WebKitFormBoundary7MA4YWxkTrZu0gW", "----WebKitFormBoundary7MA4YWxkTrZu0gW"),
    ("\"a b\"", "a b"),
    ("\"='()+_,-./:?\"", "='()+_,-./:?"),
    ("\"x\"; boundary=y", "x"),
    ("y; boundary=\"x\"", "x"),
    ("x; charset=utf-8", "x"),
    ("\"x\\\"y\"", "x\"y"),
    ("\"x \"", "x "),
    ("\"\"", ""),
    ("x*0=a", "x"),
    ("--", "--"),
    ("a%2eb", "a.b"),
];

/// Optional fields.
const FIELDS: &[(&str, &[&str])] = &[
    ("acl", &["private", "public-read", "bucket-owner-full-control", ""]),
    ("Content-Type", &["text/plain", "multipart/form-data; boundary=x", "a\r\nx-amz-acl: public-read"]),
    ("x-amz-meta-a", &["b", "ä", "b\r\nc: d", "\u{0}"]),
    ("x-amz-acl", &["private", "public-read"]),
    ("x-amz-copy-source", &["/NEIGHBOUR/k0", "/BUCKET/k0"]),
    ("x-amz-storage-class", &["STANDARD"]),
    ("x-amz-tagging", &["a=b"]),
    ("x-amz-website-redirect-location", &["/a"]),
    ("x-amz-object-lock-mode", &["GOVERNANCE"]),
    ("x-amz-server-side-encryption", &["AES256"]),
    ("x-amz-security-token", &["a"]),
    ("tagging", &["<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>"]),
    ("success_action_status", &["201", "200", "204", "302"]),
    ("success_action_redirect", &["http://127.0.0.1/", "javascript:a", "a\r\nb: c"]),
    ("redirect", &["http://127.0.0.1/"]),
    ("bucket", &["BUCKET", "BUCKET", "NEIGHBOUR", "FILMS", "../NEIGHBOUR"]),
    ("Cache-Control", &["no-cache"]),
    ("Content-Encoding", &["gzip", "aws-chunked"]),
    ("x-ignore-a", &["b"]),
    ("AWSAccessKeyId", &["a"]),
    ("signature", &["a"]),
    ("versionId", &["PAST"]),
    ("uploadId", &["x"]),
    ("host", &["other"]),
    ("content-length", &["0"]),
    ("transfer-encoding", &["chunked"]),
    ("authorization", &["a"]),
    ("x-amz-content-sha256", &["UNSIGNED-PAYLOAD"]),
    ("x-amz-decoded-content-length", &["4"]),
];

/// File names, which may become part of a key.
const FILES: &[&str] = &[
    "a.txt",
    "a.txt",
    "ä b.txt",
    "..",
    ".",
    "../../outside.txt",
    "../NEIGHBOUR/secret/crown.txt",
    "..\\..\\outside.txt",
    "C:\\a\\b.txt",
    "a/b",
    "",
    "/",
    "${filename}",
    "a\\\"b",
    "a; name=\\\"key\\\"",
    ".sgwtmp",
    "%2e%2e",
    "k0?versionId=PAST",
    "a\u{0}b",
];

/// Further parameters and headers of a part.
const FURTHER: &[&str] = &[
    "; filename*=UTF-8''..%2fa",
    "; name=\"key\"",
    "; Name=\"policy\"",
    "; a=b",
    "\r\nContent-Type: application/octet-stream",
    "\r\nContent-Transfer-Encoding: base64",
    "\r\nContent-Disposition: form-data; name=\"key\"",
    "\r\nContent-Length: 1",
    "\r\n folded",
];

/// Generates an upload by a form.
pub(super) fn draft(pen: &mut Pen<'_>) -> Draft {
    let form = form(pen);
    let (written, boundary) = if pen.chance(60) { pen.one(BOUNDARIES) } else { ("stowage-e2e", "stowage-e2e") };
    let kind = if pen.chance(10) { "Multipart/Form-Data ;" } else { "multipart/form-data;" };
    let mut headers = HeaderMap::new();
    pen.header(&mut headers, "content-type", format!("{kind} boundary={written}").as_bytes());
    let form = Form { boundary: boundary.to_owned(), ..form };
    Draft { method: "POST", key: None, query: Vec::new(), headers, body: Body::Form(form) }
}

fn form(pen: &mut Pen<'_>) -> Form {
    let starts = match pen.number(0, 5) {
        0 => "uploads/",
        _ if pen.is_guest() => SHARED,
        _ => "",
    };
    let key = key(pen, starts);
    let mut parts = vec![part(pen, "key", Value::Bytes(key))];
    for _ in 0..pen.number(0, 2) {
        let (name, values) = pen.one(FIELDS);
        let value = pen.one(values);
        let value = pen.filled(value).into_bytes();
        let name = if pen.chance(20) { name.to_uppercase() } else { name.to_owned() };
        parts.push(part(pen, &name, Value::Bytes(value)));
    }
    if pen.chance(10) {
        let another = self::key(pen, "");
        parts.push(part(pen, "Key", Value::Bytes(another)));
    }
    let algorithm = Value::Bytes(b"AWS4-HMAC-SHA256".to_vec());
    parts.push(part(pen, "x-amz-algorithm", algorithm));
    parts.push(part(pen, "X-Amz-Credential", Value::Credential));
    parts.push(part(pen, "x-amz-date", Value::Date));
    parts.push(part(pen, "policy", Value::Policy));
    parts.push(part(pen, "x-amz-signature", Value::Signature));
    pen.shuffle(&mut parts);
    file(pen, &mut parts);
    let quirks = [Quirk::Preamble, Quirk::LineFeeds, Quirk::NoEnd, Quirk::Epilogue, Quirk::Unsigned, Quirk::Padding];
    let quirk = if pen.chance(40) { pen.one(&quirks) } else { Quirk::Nothing };
    Form { boundary: String::new(), parts, quirk, starts: starts.to_owned() }
}

/// Generates the value of the field `key`.
fn key(pen: &mut Pen<'_>, starts: &str) -> Vec<u8> {
    let key = match pen.number(0, 9) {
        0..=1 => pen.odd().into_bytes(),
        2..=3 => pen.key(),
        4..=6 => b"form/${filename}".to_vec(),
        7 => b"${filename}".to_vec(),
        8 => b"${filename}/../${filename}".to_vec(),
        _ => b"form/a".to_vec(),
    };
    let is_within = !starts.is_empty() && !pen.chance(30);
    if is_within { [starts.as_bytes(), &key].concat() } else { key }
}

fn part(pen: &mut Pen<'_>, name: &str, value: Value) -> Part {
    let further = if pen.chance(4) { pen.one(FURTHER) } else { "" };
    let head = match pen.number(0, 60) {
        0 => format!("content-disposition:form-data;name={name}{further}"),
        1 => format!("Content-Disposition: form-data; name='{name}'{further}"),
        2 => format!("Content-Disposition: FORM-DATA; NAME=\"{name}\"{further}"),
        3 => format!("Content-Disposition: attachment; name=\"{name}\"{further}"),
        _ => format!("Content-Disposition: form-data; name=\"{name}\"{further}"),
    };
    Part { head, name: name.to_lowercase(), value }
}

/// Adds the file, usually one and usually at the end.
fn file(pen: &mut Pen<'_>, parts: &mut Vec<Part>) {
    let count = pen.one(&[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 0]);
    for _ in 0..count {
        let name = pen.one(FILES);
        let name = pen.filled(name);
        let further = if pen.chance(16) { pen.one(FURTHER) } else { "" };
        let head = format!("Content-Disposition: form-data; name=\"file\"; filename=\"{name}\"{further}");
        let content = match pen.number(0, 12) {
            0 => b"--stowage-e2e".to_vec(),
            1 => b"a\r\n--stowage-e2".to_vec(),
            2 => b"\r\n--stowage-e2e\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nk0\r\n".to_vec(),
            3 => Vec::new(),
            4 => vec![b'x'; 70_000],
            5 => pen.bytes(100),
            _ => b"data".to_vec(),
        };
        parts.push(Part { head, name: String::new(), value: Value::Bytes(content) });
    }
    if pen.chance(10) {
        let last = parts.len() - 1;
        parts.swap(0, last);
    }
}
