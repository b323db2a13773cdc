//! Bodies in signed chunks, as an SDK sends them over plain HTTP ("Signature calculations for the
//! Authorization header: transferring payload in multiple chunks", Amazon S3 API Reference).

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use jiff::Timestamp;
use ring::hmac;
use stowage_testbed::simulated::REGION;
use stowage_testbed::store::Key;

use super::hash::{OF_NOTHING, sha256};
use super::pattern;

/// Bytes of the object in each chunk but the last.
const CHUNK: u64 = 64 << 10;
/// Size of a chunk's framing, without the digits of its length.
const FRAME: u64 = ";chunk-signature=\r\n\r\n".len() as u64 + 64;

/// Signer of a body's chunks.
pub(super) struct Chain {
    key: hmac::Key,
    stamp: String,
    scope: String,
}

/// Returns the encoded size of an object of this length.
pub(super) fn encoded(length: u64) -> u64 {
    let frame = |chunk: u64| FRAME + format!("{chunk:x}").len() as u64 + chunk;
    let last = length % CHUNK;
    length / CHUNK * frame(CHUNK) + if last > 0 { frame(last) } else { 0 } + frame(0)
}

impl Chain {
    pub(super) fn new(key: &Key, now: Timestamp) -> Self {
        let (date, stamp) = (now.strftime("%Y%m%d").to_string(), now.strftime("%Y%m%dT%H%M%SZ").to_string());
        let root = hmac::Key::new(hmac::HMAC_SHA256, format!("AWS4{}", key.secret).as_bytes());
        let step =
            |key: hmac::Key, part: &&str| hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&key, part.as_bytes()).as_ref());
        let key = [&date, REGION, "s3", "aws4_request"].iter().fold(root, step);
        Self { key, stamp, scope: format!("{date}/{REGION}/s3/aws4_request") }
    }

    /// Returns the body that follows this head.
    pub(super) fn of(&self, head: &[u8], length: u64) -> Result<Bytes> {
        let text = std::str::from_utf8(head).context("a head that is no text")?;
        let seed = text.split("Signature=").nth(1).and_then(|rest| rest.get(..64));
        let mut signature = seed.context("a head without a signature")?.to_owned();
        let mut body = Vec::new();
        let mut at = 0;
        loop {
            let mut chunk = Vec::new();
            let size = CHUNK.min(length - at);
            while (chunk.len() as u64) < size {
                chunk.extend_from_slice(pattern::piece(at + chunk.len() as u64, size - chunk.len() as u64));
            }
            let hash = hex::encode(sha256(&chunk));
            let (stamp, scope) = (&self.stamp, &self.scope);
            let text = format!("AWS4-HMAC-SHA256-PAYLOAD\n{stamp}\n{scope}\n{signature}\n{OF_NOTHING}\n{hash}");
            signature = hex::encode(hmac::sign(&self.key, text.as_bytes()));
            body.extend_from_slice(format!("{size:x};chunk-signature={signature}\r\n").as_bytes());
            body.extend_from_slice(&chunk);
            body.extend_from_slice(b"\r\n");
            at += size;
            if size == 0 {
                break;
            }
        }
        ensure!(body.len() as u64 == encoded(length), "chunks of another length than was told");
        Ok(body.into())
    }
}
