//! What a store gets: the bytes as they are, or in aws-chunks with a trailer.
//!
//! The chunks of a client are not handed on. Their signatures hang on the client's key, and a
//! client may send one chunk of the whole object, as the AWS SDKs for Go and Rust do: MinIO refuses
//! chunks beyond 16 MiB (minio#21611), and other stores allocate them. So an object is cut anew, in
//! chunks of [`CHUNK`]. The length of it all is known beforehand, because that of the object is,
//! and that of a checksum.

use bytes::{Buf, Bytes};

use super::checksum::Checksum;

/// How many bytes a chunk has that goes to a store, but the last one: what boto3 and the AWS CLI
/// send.
pub const CHUNK: u64 = 1 << 20;

/// Frames one object.
pub(super) enum Framer {
    /// The bytes as they are.
    Plain,
    /// In chunks, with a trailer.
    Chunked {
        /// What the trailer carries.
        checksum: Checksum,
        /// Bytes of the object that no chunk was begun for.
        left: u64,
        /// Bytes that the chunk at hand still takes.
        open: u64,
        /// Whether a chunk has been begun.
        begun: bool,
    },
}

impl Framer {
    /// In chunks, with a trailer, for an object of `length` bytes.
    pub(super) fn chunked(checksum: Checksum, length: u64) -> Self {
        Self::Chunked { checksum, left: length, open: 0, begun: false }
    }

    /// How many bytes the store gets for an object of `length` bytes; nothing if that can't be
    /// counted.
    pub(super) fn total(&self, length: u64) -> Option<u64> {
        let Self::Chunked { checksum, .. } = self else { return Some(length) };
        let framed = |size: u64| size.checked_add(digits(size) + 4);
        let whole = framed(CHUNK)?.checked_mul(length / CHUNK)?;
        let rest = if length.is_multiple_of(CHUNK) { 0 } else { framed(length % CHUNK)? };
        let trailer = checksum.header().len() + 1 + checksum.characters() + 2;
        whole.checked_add(rest)?.checked_add("0\r\n\r\n".len() as u64 + trailer as u64)
    }

    /// The next bytes for the store, from the front of `piece`; nothing if that is used up.
    pub(super) fn next(&mut self, piece: &mut Bytes) -> Option<Bytes> {
        if !piece.has_remaining() {
            return None;
        }
        let Self::Chunked { left, open, begun, .. } = self else { return Some(std::mem::take(piece)) };
        if *open == 0 {
            // More than was announced would be a chunk of size 0, which ends a body. The decoder
            // lets none through.
            if *left == 0 {
                piece.clear();
                return None;
            }
            *open = CHUNK.min(*left);
            *left -= *open;
            let close = if std::mem::replace(begun, true) { "\r\n" } else { "" };
            return Some(format!("{close}{open:x}\r\n").into());
        }
        let take = usize::try_from(*open).map_or(piece.len(), |open| open.min(piece.len()));
        *open -= take as u64;
        Some(piece.split_to(take))
    }

    /// What follows the last byte of the object, with the trailer's value.
    pub(super) fn end(&self, value: &str) -> Bytes {
        match self {
            Self::Plain => Bytes::new(),
            Self::Chunked { checksum, begun, .. } => {
                let close = if *begun { "\r\n" } else { "" };
                format!("{close}0\r\n{}:{value}\r\n\r\n", checksum.header()).into()
            }
        }
    }
}

/// How many hexadecimal digits a positive number has.
fn digits(number: u64) -> u64 {
    u64::from(number.checked_ilog2().unwrap_or(0) / 4 + 1)
}
