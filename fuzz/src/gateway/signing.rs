//! Signature Version 4, implemented as a client (Amazon S3, "Authenticating requests").

use http::{HeaderMap, HeaderValue};
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use stowage_api::SecretKey;
use stowage_gateway::sigv4::SigningSecret;

pub(super) const KEY_ID: &str = "AKIAFUZZ";
pub(super) const REGION: &str = "us-east-1";
pub(super) const STAMP: &str = "20300101T000000Z";
pub(super) const SCOPE: &str = "20300101/us-east-1/s3/aws4_request";
const SECRET: &str = "a secret of this test";

/// Returns the time of all requests.
pub(super) fn now() -> Timestamp {
    Timestamp::from_second(1_893_456_000).expect("a time")
}

/// Returns the secret that the gateway verifies with.
pub(super) fn secret() -> SigningSecret {
    SigningSecret::new(&SecretKey::new(SECRET.to_owned()))
}

/// Returns a wrong secret.
pub(super) fn other_secret() -> SigningSecret {
    SigningSecret::new(&SecretKey::new(format!("{SECRET}.")))
}

/// Returns the SHA-256 in hexadecimal digits.
pub(super) fn hash(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Returns the signature of a string to sign.
pub(super) fn sign(text: &[u8]) -> String {
    let day = SCOPE.split('/').fold(format!("AWS4{SECRET}").into_bytes(), |key, part| hmac(&key, part.as_bytes()));
    hex::encode(hmac(&day, text))
}

/// Computes HMAC-SHA-256 (RFC 2104).
fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let padded = |with: u8| -> Vec<u8> { (0..64).map(|at| key.get(at).copied().unwrap_or(0) ^ with).collect() };
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().to_vec()
}

/// The signatures of a body in chunks, each computed over the one before.
pub(super) struct Chain(pub(super) String);

impl Chain {
    pub(super) fn chunk(&mut self, data: &[u8]) -> String {
        let text = format!("AWS4-HMAC-SHA256-PAYLOAD\n{STAMP}\n{SCOPE}\n{}\n{}\n{}", self.0, hash(b""), hash(data));
        self.0 = sign(text.as_bytes());
        self.0.clone()
    }

    pub(super) fn trailer(&mut self, lines: &[u8]) -> String {
        let text = format!("AWS4-HMAC-SHA256-TRAILER\n{STAMP}\n{SCOPE}\n{}\n{}", self.0, hash(lines));
        self.0 = sign(text.as_bytes());
        self.0.clone()
    }
}

/// Escapes a text for the canonical request; the bytes in `keep` are not escaped.
pub(super) fn escaped(bytes: &[u8], keep: &[u8]) -> String {
    let one = |byte: &u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(*byte).to_string(),
        _ if keep.contains(byte) => char::from(*byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    bytes.iter().map(one).collect()
}

/// Returns the signature of a request with these decoded parts. Header names must be sorted.
pub(super) fn request(
    method: &str,
    path: &[u8],
    query: &[(Vec<u8>, Vec<u8>)],
    (headers, signed): (&HeaderMap, &[&str]),
    payload: &str,
) -> String {
    let mut pairs: Vec<_> = query.iter().map(|(name, value)| (escaped(name, b""), escaped(value, b""))).collect();
    pairs.sort();
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut text = format!("{method}\n{}\n{}\n", escaped(path, b"/"), pairs.join("&")).into_bytes();
    for name in signed {
        let blank = |byte: &u8| *byte == b' ' || *byte == b'\t';
        let plain = |value: &HeaderValue| -> Vec<u8> {
            value.as_bytes().split(blank).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(&b' ')
        };
        let values: Vec<Vec<u8>> = headers.get_all(*name).iter().map(plain).collect();
        text.extend([name.as_bytes(), b":", &values.join(&b','), b"\n"].concat());
    }
    text.extend(format!("\n{}\n{payload}", signed.join(";")).bytes());
    sign(format!("AWS4-HMAC-SHA256\n{STAMP}\n{SCOPE}\n{}", hash(&text)).as_bytes())
}

/// Returns the `Authorization` header.
pub(super) fn authorization(signed: &[&str], signature: &str) -> String {
    let names = signed.join(";");
    format!("AWS4-HMAC-SHA256 Credential={KEY_ID}/{SCOPE}, SignedHeaders={names}, Signature={signature}")
}
