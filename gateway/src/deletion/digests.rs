//! Digests of a document in the head of its request: those of the client, and those for the store.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONTENT_TYPE, InvalidHeaderValue};
use http::{HeaderMap, HeaderName, HeaderValue};
use md5::{Digest as _, Md5};

use crate::body::checksum::Checksum;
use crate::refusal::{Code, Refusal};

const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");
/// Headers whose names begin like a checksum's, and which are none.
const NO_CHECKSUMS: [&str; 3] = ["x-amz-checksum-algorithm", "x-amz-checksum-mode", "x-amz-checksum-type"];

/// Holds a body against the digests that the head has of it: `Content-MD5` and `x-amz-checksum-*`.
///
/// # Errors
/// `BadDigest` where it has another, `InvalidDigest` and `InvalidRequest` for a value that is none,
/// `NotImplemented` for a checksum that can't be computed here.
pub fn verify(headers: &HeaderMap, body: &[u8]) -> Result<(), Refusal> {
    verify_md5(headers, body)?;
    let mut checksums = headers.iter().filter(|(name, _)| is_checksum(name));
    checksums.try_for_each(|(name, value)| verify_checksum(name, value, body))
}

/// Holds a body against `Content-MD5` alone, where checksums are about an object.
///
/// # Errors
/// `BadDigest` where it has another, `InvalidDigest` for a value that is none.
pub fn verify_md5(headers: &HeaderMap, body: &[u8]) -> Result<(), Refusal> {
    if let Some(value) = headers.get(CONTENT_MD5) {
        let digest = STANDARD.decode(value.as_bytes()).ok().filter(|digest| digest.len() == Checksum::Md5.bytes());
        let digest =
            digest.ok_or_else(|| Refusal::new(Code::InvalidDigest, "The Content-MD5 you specified is not valid."))?;
        if digest != md5(body) {
            return Err(differs(CONTENT_MD5.as_str()));
        }
    }
    Ok(())
}

fn verify_checksum(name: &HeaderName, value: &HeaderValue, body: &[u8]) -> Result<(), Refusal> {
    let unknown = || {
        let message = format!("{name} can't be verified here. Use another checksum.");
        Refusal::new(Code::NotImplemented, message)
    };
    let checksum = Checksum::ALL.into_iter().find(|checksum| checksum.header() == name.as_str());
    let checksum = checksum.ok_or_else(unknown)?;
    let value = value.to_str().ok().and_then(|value| checksum.value(value).ok());
    let value =
        value.ok_or_else(|| Refusal::new(Code::InvalidRequest, format!("Value for {name} header is invalid.")))?;
    let is_it = match (checksum, checksum.start()) {
        (Checksum::Md5, _) => md5(body) == value,
        (_, Some(mut running)) => {
            running.update(body);
            running.is(&value)
        }
        (_, None) => return Err(unknown()),
    };
    if is_it { Ok(()) } else { Err(differs(name.as_str())) }
}

/// Puts what is true of another body in the place of what the client said of its own. S3 wants one
/// digest of this document. Every store knows `Content-MD5`, and those of before 2022 no other.
///
/// # Errors
/// Never: base64 can stand in a header.
pub fn write_anew(headers: &mut HeaderMap, body: &[u8]) -> Result<(), InvalidHeaderValue> {
    let is_about_body = |name: &&HeaderName| is_checksum(name) || *name == "x-amz-sdk-checksum-algorithm";
    let theirs: Vec<HeaderName> = headers.keys().filter(is_about_body).cloned().collect();
    for name in theirs.iter().map(HeaderName::as_str).chain(NO_CHECKSUMS) {
        headers.remove(name);
    }
    headers.insert(CONTENT_MD5, HeaderValue::from_str(&STANDARD.encode(md5(body)))?);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    Ok(())
}

fn is_checksum(name: &HeaderName) -> bool {
    name.as_str().starts_with("x-amz-checksum-") && !NO_CHECKSUMS.contains(&name.as_str())
}

fn md5(body: &[u8]) -> Vec<u8> {
    Md5::digest(body).to_vec()
}

fn differs(name: &str) -> Refusal {
    Refusal::new(Code::BadDigest, format!("The {name} you specified did not match what was received."))
}
