//! The framing of a body and its signed parts, parsed once from the head.

use super::checksum::Checksum;
use crate::refusal::{Code, Refusal};

/// Maximum length of an object or a part in one request, in bytes: 5 GiB, as in Amazon S3.
pub const MAX_LENGTH: u64 = 5 << 30;

/// The end of a body, as announced by its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announced {
    /// Neither `Content-Length` nor `Transfer-Encoding`: there is no body.
    Nothing,
    /// `Content-Length`, in bytes.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
}

/// The kind of a body, with the number of bytes of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// No body.
    Empty,
    /// The client signed the body's SHA-256.
    Hash {
        /// The signed hash.
        sha256: [u8; 32],
        /// Length of the body, in bytes.
        length: u64,
    },
    /// `UNSIGNED-PAYLOAD`
    Unsigned {
        /// Length of the body, in bytes.
        length: u64,
    },
    /// `STREAMING-AWS4-HMAC-SHA256-PAYLOAD`: each chunk is signed.
    SignedChunks {
        /// Length of the object, in bytes: `x-amz-decoded-content-length`.
        decoded: u64,
    },
    /// `STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER`: each chunk and the trailer are signed.
    SignedChunksTrailer {
        /// Length of the object, in bytes.
        decoded: u64,
        /// The checksum in the trailer.
        trailer: Option<Checksum>,
    },
    /// `STREAMING-UNSIGNED-PAYLOAD-TRAILER`
    UnsignedTrailer {
        /// Length of the object, in bytes.
        decoded: u64,
        /// The checksum in the trailer.
        trailer: Option<Checksum>,
    },
}

impl Payload {
    /// Parses the kind of a body from its head: `x-amz-content-sha256` (`UNSIGNED-PAYLOAD` for a
    /// presigned request without it), the announced end, `x-amz-decoded-content-length` and
    /// `x-amz-trailer`.
    ///
    /// The caller has to refuse a request that needs a body and announces none.
    ///
    /// # Errors
    /// `MissingContentLength` if the length of the object isn't known in advance, `EntityTooLarge`
    /// beyond [`MAX_LENGTH`], `InvalidArgument` and `InvalidRequest` for invalid values,
    /// `NotImplemented` for SigV4A, `XAmzContentSHA256Mismatch` if an empty body is announced with
    /// another hash.
    pub fn parse(
        sha256: &str,
        announced: Announced,
        decoded: Option<&str>,
        trailer: Option<&str>,
    ) -> Result<Self, Refusal> {
        let streaming = || -> Result<_, Refusal> {
            Ok((decoded_length(announced, decoded)?, trailer.map(Checksum::announced).transpose()?))
        };
        match sha256 {
            "UNSIGNED-PAYLOAD" => Ok(plain_length(announced)?.map_or(Self::Empty, |length| Self::Unsigned { length })),
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" if trailer.is_some() => Err(Refusal::new(
                Code::InvalidRequest,
                "A trailer is announced, but x-amz-content-sha256 names a body without one.",
            )),
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" => Ok(Self::SignedChunks { decoded: streaming()?.0 }),
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER" => {
                streaming().map(|(decoded, trailer)| Self::SignedChunksTrailer { decoded, trailer })
            }
            "STREAMING-UNSIGNED-PAYLOAD-TRAILER" => {
                streaming().map(|(decoded, trailer)| Self::UnsignedTrailer { decoded, trailer })
            }
            "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD" | "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER" => {
                Err(Refusal::new(Code::NotImplemented, "Signature Version 4A is not supported. Use AWS4-HMAC-SHA256."))
            }
            hash => Self::hashed(hash, announced),
        }
    }

    fn hashed(hash: &str, announced: Announced) -> Result<Self, Refusal> {
        let mut sha256 = [0; 32];
        hex::decode_to_slice(hash, &mut sha256).map_err(|_| {
            let message = "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-AWS4-HMAC-SHA256-PAYLOAD, \
                STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER, STREAMING-UNSIGNED-PAYLOAD-TRAILER, or a valid \
                sha256 value.";
            Refusal::new(Code::InvalidArgument, message)
        })?;
        match plain_length(announced)? {
            None | Some(0) if sha256 != sha256_of_nothing() => Err(hash_differs()),
            None => Ok(Self::Empty),
            Some(length) => Ok(Self::Hash { sha256, length }),
        }
    }

    /// Returns the length of the object or document in bytes.
    #[must_use]
    pub fn length(self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Hash { length, .. } | Self::Unsigned { length } => length,
            Self::SignedChunks { decoded }
            | Self::SignedChunksTrailer { decoded, .. }
            | Self::UnsignedTrailer { decoded, .. } => decoded,
        }
    }
}

/// S3's refusal of a body that is not the signed one.
pub(super) fn hash_differs() -> Refusal {
    let message = "The provided 'x-amz-content-sha256' header does not match what was computed.";
    Refusal::new(Code::XAmzContentSHA256Mismatch, message)
}

fn sha256_of_nothing() -> [u8; 32] {
    let mut hash = [0; 32];
    let digest = ring::digest::digest(&ring::digest::SHA256, b"");
    hash.iter_mut().zip(digest.as_ref()).for_each(|(to, from)| *to = *from);
    hash
}

fn plain_length(announced: Announced) -> Result<Option<u64>, Refusal> {
    match announced {
        Announced::Nothing => Ok(None),
        Announced::Length(length) => bounded(length).map(Some),
        Announced::Chunked => Err(no_length()),
    }
}

/// Parses the decoded length. Allows digits only, because readers differ about signs and blanks.
fn decoded_length(announced: Announced, decoded: Option<&str>) -> Result<u64, Refusal> {
    let text = decoded.filter(|_| announced != Announced::Nothing).ok_or_else(no_length)?;
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let message = "x-amz-decoded-content-length must be a number of bytes.";
    let number = digits.then(|| text.parse().unwrap_or(u64::MAX));
    bounded(number.ok_or_else(|| Refusal::new(Code::InvalidArgument, message))?)
}

fn bounded(length: u64) -> Result<u64, Refusal> {
    if length > MAX_LENGTH {
        let refusal = Refusal::new(Code::EntityTooLarge, "Your proposed upload exceeds the maximum allowed size.");
        return Err(refusal.with("ProposedSize", length.to_string()).with("MaxSizeAllowed", MAX_LENGTH.to_string()));
    }
    Ok(length)
}

fn no_length() -> Refusal {
    Refusal::new(Code::MissingContentLength, "You must provide the Content-Length HTTP header.")
}
