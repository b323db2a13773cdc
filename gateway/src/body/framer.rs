//! The framing of a body for the store: plain, or in aws-chunked with a trailer.
//!
//! The client's chunks are not forwarded. Their signatures depend on the client's key, and a client
//! may send the whole object as one chunk, as the AWS SDKs for Go and Rust do: MinIO refuses chunks
//! beyond 16 MiB (minio#21611), and other stores allocate a buffer for them. So an object is split
//! again, into chunks of [`CHUNK`]. The total length is known in advance, because the lengths of
//! the object and of a checksum are.

use bytes::{Buf, Bytes};

use super::checksum::Checksum;

/// The length in bytes of all chunks to a store but the last: the same as boto3 and the AWS CLI
/// send.
pub const CHUNK: u64 = 1 << 20;

/// The framing of one object.
pub(super) enum Framer {
    /// Unframed.
    Plain,
    /// In chunks, with a trailer.
    Chunked {
        /// The checksum in the trailer.
        checksum: Checksum,
        /// Bytes of the object that are in no chunk yet.
        left: u64,
        /// Remaining bytes of the current chunk.
        open: u64,
        /// True once a chunk has begun.
        begun: bool,
    },
}

impl Framer {
    /// Creates a framing in chunks, with a trailer, for an object of `length` bytes.
    pub(super) fn chunked(checksum: Checksum, length: u64) -> Self {
        Self::Chunked { checksum, left: length, open: 0, begun: false }
    }

    /// Returns the total length of a framed object of `length` bytes, or `None` on overflow.
    pub(super) fn total(&self, length: u64) -> Option<u64> {
        let Self::Chunked { checksum, .. } = self else { return Some(length) };
        let framed = |size: u64| size.checked_add(digits(size) + 4);
        let whole = framed(CHUNK)?.checked_mul(length / CHUNK)?;
        let rest = if length.is_multiple_of(CHUNK) { 0 } else { framed(length % CHUNK)? };
        let trailer = checksum.header().len() + 1 + checksum.characters() + 2;
        whole.checked_add(rest)?.checked_add("0\r\n\r\n".len() as u64 + trailer as u64)
    }

    /// Returns the next bytes for the store, from the front of `piece`, or `None` if that is used
    /// up.
    pub(super) fn next(&mut self, piece: &mut Bytes) -> Option<Bytes> {
        if !piece.has_remaining() {
            return None;
        }
        let Self::Chunked { left, open, begun, .. } = self else { return Some(std::mem::take(piece)) };
        if *open == 0 {
            // Bytes beyond the announced length would make a chunk of size 0, which ends a body.
            // The decoder never passes any.
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

    /// Returns the bytes after the last one of the object, with the trailer's value.
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

/// Returns the number of hexadecimal digits of a positive number.
fn digits(number: u64) -> u64 {
    u64::from(number.checked_ilog2().unwrap_or(0) / 4 + 1)
}
