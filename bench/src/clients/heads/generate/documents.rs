//! Documents: objects to delete, parts of an object, and tags.

use http::HeaderMap;
use stowage_gateway::uri::Pair;
use stowage_testbed::sigv4::checksum;

use super::pen::Pen;
use super::request::{Body, Draft};
use super::scene::SHARED;
use super::xml::{blank, document, element, stranger};

/// Generates a request with a document.
pub(super) fn draft(pen: &mut Pen<'_>) -> Draft {
    let (key, method, query, body) = match pen.number(0, 9) {
        0..=6 => (None, "POST", vec![mark("delete")], deletion(pen)),
        7 => {
            let upload = Pair { name: b"uploadId".to_vec(), value: pen.upload().into() };
            (Some(pen.key()), "POST", vec![upload], completion(pen))
        }
        _ => (Some(pen.key()), "PUT", vec![mark("tagging")], tagging(pen)),
    };
    let headers = headers(pen, &body);
    Draft { method, key, query, headers, body: Body::Bytes(body) }
}

fn mark(name: &str) -> Pair {
    Pair { name: name.into(), value: Vec::new() }
}

fn headers(pen: &mut Pen<'_>, body: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if pen.chance(100) {
        let kind = pen.one(&["application/xml", "text/plain", "application/xml; charset=utf-16", "multipart/related"]);
        pen.header(&mut headers, "content-type", kind.as_bytes());
    }
    if pen.chance(40) {
        let of = if pen.chance(220) { body } else { b"another" };
        pen.header(&mut headers, "x-amz-checksum-sha256", checksum(of).as_bytes());
    }
    if pen.chance(20) {
        pen.header(&mut headers, "x-amz-sdk-checksum-algorithm", b"SHA256");
    }
    headers
}

/// Generates the document of a DeleteObjects request.
fn deletion(pen: &mut Pen<'_>) -> Vec<u8> {
    let count = match pen.number(0, 200) {
        0 => pen.one(&[1000, 1001]),
        1 => 0,
        _ => pen.number(1, 4),
    };
    let mut inside = String::new();
    for at in 0..count {
        if at < 4 {
            inside.push_str(&object(pen));
        } else {
            inside.push_str(&format!("<Object><Key>{SHARED}many/{at}</Key></Object>"));
        }
        inside.push_str(stranger(pen));
    }
    if pen.chance(60) {
        let quiet = pen.one(&["true", "false", "TRUE", " true ", "1", "yes", ""]);
        inside.push_str(&element(pen, "Quiet", quiet));
    }
    document(pen, "Delete", &inside)
}

fn object(pen: &mut Pen<'_>) -> String {
    let mut parts = vec![];
    let key = if pen.chance(40) { pen.odd() } else { String::from_utf8_lossy(&pen.key()).into_owned() };
    parts.push(element(pen, "Key", &key));
    if pen.chance(50) {
        let version = pen.version();
        parts.push(element(pen, "VersionId", &version));
    }
    if pen.chance(16) {
        parts.push(element(pen, "ETag", "\"a\""));
    }
    if pen.chance(16) {
        let size = pen.one(&["4", " 4 ", "-1", "+4", "0x4", "4.0", "18446744073709551615", "18446744073709551616"]);
        parts.push(element(pen, "Size", size));
    }
    if pen.chance(16) {
        let time = pen.one(&["Sat, 01 Jan 2000 00:00:00 GMT", "2000-01-01T00:00:00Z", "yesterday"]);
        parts.push(element(pen, "LastModifiedTime", time));
    }
    if pen.chance(4) {
        let another = pen.odd();
        parts.push(element(pen, "Key", &another));
    }
    pen.shuffle(&mut parts);
    let inside: String = parts.iter().map(|part| format!("{}{part}", blank(pen))).collect();
    format!("<Object>{inside}{}{}</Object>{}", stranger(pen), blank(pen), blank(pen))
}

/// Generates the document of a CompleteMultipartUpload request.
fn completion(pen: &mut Pen<'_>) -> Vec<u8> {
    let mut inside = String::new();
    for _ in 0..pen.number(0, 3) {
        let number = pen.one(&["1", "2", " 1 ", "01", "0", "-1", "10001", "x", "4294967296"]);
        let etag = pen.one(&["\"a\"", "a", "", "\"../a\"", "*"]);
        let mut parts = vec![element(pen, "PartNumber", number), element(pen, "ETag", etag)];
        if pen.chance(30) {
            let name = pen.one(&["ChecksumCRC32", "ChecksumSHA256", "ChecksumCRC64NVME", "ChecksumMD6", "Size"]);
            parts.push(element(pen, name, "AAAAAA=="));
        }
        pen.shuffle(&mut parts);
        inside.push_str(&format!("<Part>{}{}</Part>{}", parts.concat(), stranger(pen), blank(pen)));
    }
    document(pen, "CompleteMultipartUpload", &inside)
}

/// Generates the document of a PutObjectTagging request.
fn tagging(pen: &mut Pen<'_>) -> Vec<u8> {
    let mut inside = String::new();
    for at in 0..pen.number(0, 3) {
        let (name, value) = (pen.text(2), pen.text(2));
        let name = format!("{at}{}", String::from_utf8_lossy(&name));
        let mut parts = vec![element(pen, "Key", &name), element(pen, "Value", &String::from_utf8_lossy(&value))];
        pen.shuffle(&mut parts);
        inside.push_str(&format!("<Tag>{}{}</Tag>{}", parts.concat(), stranger(pen), blank(pen)));
    }
    let set = format!("<TagSet>{inside}</TagSet>{}", stranger(pen));
    document(pen, "Tagging", &set)
}
