//! An input: a body with its encoding and its cuts, and the head of its request.

use std::sync::LazyLock;

use http::{HeaderMap, HeaderValue};
use sha2::{Digest, Sha256};
use stowage_gateway::body::checksum::Checksum;
use stowage_gateway::body::{MAX_LENGTH, Payload};
use stowage_gateway::sigv4::{Raw, Verified, claim, verify};

use super::super::{pieces, reading, signing};

/// Encoding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    /// Not encoded, with its hash in the head, which is correct if true.
    Hash(bool),
    Signed,
    SignedTrailer,
    UnsignedTrailer,
}

/// An input.
pub(super) struct Case<'a> {
    pub(super) kind: Kind,
    pub(super) checksum: Option<Checksum>,
    pub(super) length: u64,
    pub(super) sizes: Vec<usize>,
    pub(super) body: &'a [u8],
}

impl<'a> Case<'a> {
    pub(super) fn read(input: &'a [u8]) -> Option<Self> {
        let (first, body) = reading::split(input, b'\n');
        let words: Vec<&[u8]> = first.split(|byte| *byte == b' ').collect();
        let [kind, checksum, length, cut] = words[..] else { return None };
        let kind = match kind {
            b"plain" => Kind::Plain,
            b"hash" => Kind::Hash(true),
            b"other-hash" => Kind::Hash(false),
            b"signed" => Kind::Signed,
            b"signed-trailer" => Kind::SignedTrailer,
            b"unsigned-trailer" => Kind::UnsignedTrailer,
            _ => return None,
        };
        let checksum = match checksum {
            b"none" => None,
            b"crc32" => Some(Checksum::Crc32),
            b"sha256" => Some(Checksum::Sha256),
            _ => return None,
        };
        let length = str::from_utf8(length).ok()?.parse().ok().filter(|length| *length <= MAX_LENGTH)?;
        Some(Self { kind, checksum, length, sizes: pieces::sizes(cut), body: body? })
    }

    pub(super) fn payload(&self, body: &[u8]) -> Payload {
        let Self { kind, checksum: trailer, length: decoded, .. } = *self;
        let mut sha256: [u8; 32] = Sha256::digest(body).into();
        match kind {
            Kind::Plain => Payload::Unsigned { length: decoded },
            Kind::Hash(right) => {
                sha256[0] ^= u8::from(!right);
                Payload::Hash { sha256, length: decoded }
            }
            Kind::Signed => Payload::SignedChunks { decoded },
            Kind::SignedTrailer => Payload::SignedChunksTrailer { decoded, trailer },
            Kind::UnsignedTrailer => Payload::UnsignedTrailer { decoded, trailer },
        }
    }

    pub(super) fn is_signed(&self) -> bool {
        matches!(self.kind, Kind::Signed | Kind::SignedTrailer)
    }

    pub(super) fn frames_trailer(&self) -> bool {
        matches!(self.kind, Kind::SignedTrailer | Kind::UnsignedTrailer)
    }
}

/// A request with a body in chunks.
pub(super) struct Signed {
    pub(super) seed: String,
    pub(super) verified: Verified,
}

pub(super) static SIGNED: LazyLock<Signed> = LazyLock::new(|| {
    const WORD: &str = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";
    let mut lines: HeaderMap = HeaderMap::new();
    for (name, value) in [("host", "gateway.example"), ("x-amz-content-sha256", WORD), ("x-amz-date", signing::STAMP)] {
        lines.insert(name, HeaderValue::from_static(value));
    }
    let names = ["host", "x-amz-content-sha256", "x-amz-date"];
    let seed = signing::request("PUT", b"/photos/a", &[], (&lines, &names), WORD);
    let header = signing::authorization(&names, &seed);
    lines.insert("authorization", HeaderValue::from_str(&header).expect("a header"));
    let raw = Raw { method: "PUT", path: b"/photos/a", query: &[], headers: &lines };
    let claim = claim(&raw).expect("it can be read").expect("it is signed");
    let verified = verify(&raw, &claim, WORD, &signing::secret(), signing::REGION, signing::now()).expect("it holds");
    Signed { seed, verified }
});
