//! Digests of a document in the request's headers: verification of the client's, and new ones for
//! the store.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONTENT_TYPE, InvalidHeaderValue};
use http::{HeaderMap, HeaderName, HeaderValue};
use md5::{Digest as _, Md5};

use crate::body::checksum::Checksum;
use crate::refusal::{Code, Refusal};

const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");
/// Headers named like a checksum that are not one.
const NO_CHECKSUMS: [&str; 3] = ["x-amz-checksum-algorithm", "x-amz-checksum-mode", "x-amz-checksum-type"];

/// Verifies a body against the digests in its headers: `Content-MD5` and `x-amz-checksum-*`.
///
/// # Errors
/// `BadDigest` on a mismatch, `InvalidDigest` and `InvalidRequest` for an invalid value,
/// `NotImplemented` for a checksum that the gateway can't compute.
pub fn verify(headers: &HeaderMap, body: &[u8]) -> Result<(), Refusal> {
    verify_md5(headers, body)?;
    let mut checksums = headers.iter().filter(|(name, _)| is_checksum(name));
    checksums.try_for_each(|(name, value)| verify_checksum(name, value, body))
}

/// Verifies a body against `Content-MD5` only, for operations whose checksum headers describe an
/// object.
///
/// # Errors
/// `BadDigest` on a mismatch, `InvalidDigest` for an invalid value.
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

/// Replaces the client's digests with one of the new body.
///
/// S3 requires a digest of this document. Every store supports `Content-MD5`, and stores from
/// before 2022 support no other.
///
/// # Errors
/// Never fails: base64 is valid in a header.
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
