//! A client that signs according to Amazon's documents, written independently of the gateway.

use bytes::Bytes;
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use ring::{digest, hmac};
use stowage_gateway::body::checksum::Checksum;
use stowage_gateway::body::{Body, ChunkSignatures};
use tower::BoxError;

/// The key, the day and the scope of the examples in Amazon's documents.
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const DATE: &str = "20130524T000000Z";
const SCOPE: &str = "20130524/us-east-1/s3/aws4_request";
/// The seed signatures of the examples without and with a trailer.
pub const SEED: &str = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";
pub const TRAILER_SEED: &str = "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e";

/// A client's framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Plain,
    Signed,
    SignedTrailer(Checksum),
    UnsignedTrailer(Checksum),
}

/// The line end after the checksum, as minio-go and other clients write it.
pub const MINIO_GO: &str = "\n\r\n";
pub const OTHERS: &str = "\r\n";

/// The chain of signatures, for either side.
pub struct Chain {
    key: hmac::Key,
    previous: String,
}

impl Chain {
    pub fn from(seed: &str) -> Self {
        let mut key = format!("AWS4{SECRET}").into_bytes();
        for part in SCOPE.split('/') {
            let signed = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), part.as_bytes());
            key = signed.as_ref().to_vec();
        }
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, &key), previous: seed.to_owned() }
    }

    fn sign(&mut self, text: &str) -> String {
        self.previous = hex::encode(hmac::sign(&self.key, text.as_bytes()));
        self.previous.clone()
    }

    pub fn chunk(&mut self, sha256: &str) -> String {
        let (empty, previous) = (sha256_hex(b""), &self.previous);
        let text = format!("AWS4-HMAC-SHA256-PAYLOAD\n{DATE}\n{SCOPE}\n{previous}\n{empty}\n{sha256}");
        self.sign(&text)
    }

    pub fn trailer(&mut self, sha256: &str) -> String {
        let text = format!("AWS4-HMAC-SHA256-TRAILER\n{DATE}\n{SCOPE}\n{}\n{sha256}", self.previous);
        self.sign(&text)
    }
}

impl ChunkSignatures for Chain {
    fn check_chunk(&mut self, sha256: &[u8; 32], signature: &str) -> bool {
        self.chunk(&hex::encode(sha256)) == signature
    }

    fn check_trailer(&mut self, sha256: &[u8; 32], signature: &str) -> bool {
        self.trailer(&hex::encode(sha256)) == signature
    }
}

pub fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(digest::digest(&digest::SHA256, bytes))
}

/// Returns the value of a checksum in base64, or any value of that length if it can't be computed
/// here.
pub fn checksum(of: Checksum, data: &[u8]) -> String {
    use base64::Engine as _;
    let bytes = match of {
        Checksum::Crc32 => crc_fast::crc32_iso_hdlc(data).to_be_bytes().to_vec(),
        Checksum::Crc32c => crc_fast::crc32_iscsi(data).to_be_bytes().to_vec(),
        Checksum::Crc64Nvme => crc_fast::crc64_nvme(data).to_be_bytes().to_vec(),
        Checksum::Sha1 => digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, data).as_ref().to_vec(),
        Checksum::Sha256 => digest::digest(&digest::SHA256, data).as_ref().to_vec(),
        Checksum::Sha512 => digest::digest(&digest::SHA512, data).as_ref().to_vec(),
        other => vec![7; other.bytes()],
    };
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Returns the framed form of `data`, in chunks of these sizes in rotation, with this line end
/// after the checksum.
pub fn send(framing: Framing, data: &[u8], sizes: &[usize], line_end: &str) -> Vec<u8> {
    let (seed, trailer) = match framing {
        Framing::Plain => return data.to_vec(),
        Framing::Signed => (Some(SEED), None),
        Framing::SignedTrailer(checksum) => (Some(TRAILER_SEED), Some(checksum)),
        Framing::UnsignedTrailer(checksum) => (None, Some(checksum)),
    };
    let mut chain = seed.map(Chain::from);
    let mut sent = Vec::new();
    let mut head = |chunk: &[u8], sent: &mut Vec<u8>| {
        sent.extend(format!("{:x}", chunk.len()).bytes());
        if let Some(chain) = &mut chain {
            sent.extend(format!(";chunk-signature={}", chain.chunk(&sha256_hex(chunk))).bytes());
        }
        sent.extend(b"\r\n");
    };
    let (mut rest, mut sizes) = (data, sizes.iter().cycle());
    while !rest.is_empty() {
        let size = sizes.next().map_or(rest.len(), |size| (*size).clamp(1, rest.len()));
        let (chunk, after) = rest.split_at(size);
        head(chunk, &mut sent);
        sent.extend(chunk);
        sent.extend(b"\r\n");
        rest = after;
    }
    head(b"", &mut sent);
    if let Some(of) = trailer {
        let line = format!("{}:{}", of.header(), checksum(of, data));
        sent.extend(format!("{line}{line_end}").bytes());
        if let Some(chain) = &mut chain {
            let signature = chain.trailer(&sha256_hex(format!("{line}\n").as_bytes()));
            sent.extend(format!("x-amz-trailer-signature:{signature}\r\n").bytes());
        }
    }
    sent.extend(b"\r\n");
    sent
}

/// Returns the chain by which a gateway verifies such a body.
pub fn chain(framing: Framing) -> Option<Box<dyn ChunkSignatures>> {
    match framing {
        Framing::Plain | Framing::UnsignedTrailer(_) => None,
        Framing::Signed => Some(Box::new(Chain::from(SEED))),
        Framing::SignedTrailer(_) => Some(Box::new(Chain::from(TRAILER_SEED))),
    }
}

/// Returns a body that arrives in these pieces.
pub fn body(pieces: Vec<Bytes>) -> Body {
    let frames = pieces.into_iter().map(|piece| Ok::<_, BoxError>(Frame::data(piece)));
    StreamBody::new(stream::iter(frames)).boxed_unsync()
}

/// Splits bytes into pieces of these sizes in rotation.
pub fn pieces(bytes: &[u8], sizes: &[usize]) -> Vec<Bytes> {
    let mut rest = Bytes::copy_from_slice(bytes);
    let mut sizes = sizes.iter().cycle();
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let size = sizes.next().map_or(rest.len(), |size| (*size).clamp(1, rest.len()));
        pieces.push(rest.split_to(size));
    }
    pieces
}

/// Returns bytes without a short period.
pub fn data(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8 ^ (at / 251) as u8).collect()
}
