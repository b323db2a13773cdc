//! The signatures of a chunked body: each covers the one before it, and the first covers the
//! head's.
//!
//! Source: "Signature calculations for the authorization header: transferring payload in multiple
//! chunks" and "… including trailing headers" in Amazon S3's API reference.

use std::fmt;

use jiff::Timestamp;
use ring::hmac;

use super::raw::HASH_OF_NOTHING;
use super::scope::{Scope, stamp};
use super::secret::{Signature, hex_of, is_signed};

/// The position in a body's chain of signatures. Each chunk has to be checked once, in order; the
/// last one is empty.
pub struct Chain {
    key: hmac::Key,
    /// The time and the scope, a line each.
    middle: Vec<u8>,
    previous: Signature,
}

impl Chain {
    pub(super) fn new(key: hmac::Key, time: Timestamp, scope: &Scope, seed: Signature) -> Self {
        let mut middle = stamp(time).to_vec();
        middle.push(b'\n');
        scope.push_to(&mut middle);
        middle.push(b'\n');
        Self { key, middle, previous: seed }
    }

    /// Returns true if the next chunk, whose data has this hash, has this signature (64 hexadecimal
    /// digits). After a mismatch the chain does not advance, and the body must not be trusted any
    /// more.
    #[must_use]
    pub fn check_chunk(&mut self, sha256_of_data: &[u8; 32], signature: &str) -> bool {
        // The format has a hash of the chunk's headers here, and chunks have no headers.
        self.check("AWS4-HMAC-SHA256-PAYLOAD\n", Some(HASH_OF_NOTHING.as_bytes()), sha256_of_data, signature)
    }

    /// Returns true if the trailers have this signature. The hash is of their text: lines of
    /// `name:value`, each ending in a line feed, without `x-amz-trailer-signature`.
    #[must_use]
    pub fn check_trailer(&mut self, sha256_of_trailer_text: &[u8; 32], signature: &str) -> bool {
        self.check("AWS4-HMAC-SHA256-TRAILER\n", None, sha256_of_trailer_text, signature)
    }

    fn check(&mut self, algorithm: &str, headers: Option<&[u8]>, hash: &[u8; 32], signature: &str) -> bool {
        let Some(signature) = Signature::parse(signature) else { return false };
        let mut text = Vec::with_capacity(384);
        text.extend_from_slice(algorithm.as_bytes());
        text.extend_from_slice(&self.middle);
        text.extend_from_slice(&self.previous.hex());
        text.push(b'\n');
        if let Some(headers) = headers {
            text.extend_from_slice(headers);
            text.push(b'\n');
        }
        text.extend_from_slice(&hex_of(hash));
        let holds = is_signed(&self.key, &text, &signature);
        if holds {
            self.previous = signature;
        }
        holds
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chain([REDACTED])")
    }
}
