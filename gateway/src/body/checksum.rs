//! The checksums of trailers.
//!
//! Names and lengths are those of
//! <https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity.html>.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crc_fast::{CrcAlgorithm, Digest};
use ring::digest;

use crate::refusal::{Code, Refusal};

/// A checksum algorithm, named like its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Checksum {
    /// `x-amz-checksum-crc32`
    Crc32,
    /// `x-amz-checksum-crc32c`
    Crc32c,
    /// `x-amz-checksum-crc64nvme`
    Crc64Nvme,
    /// `x-amz-checksum-sha1`
    Sha1,
    /// `x-amz-checksum-sha256`
    Sha256,
    /// `x-amz-checksum-sha512`
    Sha512,
    /// `x-amz-checksum-md5`
    Md5,
    /// `x-amz-checksum-xxhash64`
    XxHash64,
    /// `x-amz-checksum-xxhash3`
    XxHash3,
    /// `x-amz-checksum-xxhash128`
    XxHash128,
}

impl Checksum {
    /// All algorithms.
    pub const ALL: [Self; 10] = [
        Self::Crc32,
        Self::Crc32c,
        Self::Crc64Nvme,
        Self::Sha1,
        Self::Sha256,
        Self::Sha512,
        Self::Md5,
        Self::XxHash64,
        Self::XxHash3,
        Self::XxHash128,
    ];

    /// Returns the algorithm that an `x-amz-trailer` header announces.
    ///
    /// # Errors
    /// `InvalidRequest` for any other name, and for more than one.
    pub fn announced(trailer: &str) -> Result<Self, Refusal> {
        let name = trailer.trim_matches([' ', '\t']);
        let known = Self::ALL.into_iter().find(|checksum| checksum.header().eq_ignore_ascii_case(name));
        let message = "The value specified in the x-amz-trailer header is not supported.";
        known.ok_or_else(|| Refusal::new(Code::InvalidRequest, message))
    }

    /// Returns the name of the header and the trailer.
    #[must_use]
    pub fn header(self) -> &'static str {
        match self {
            Self::Crc32 => "x-amz-checksum-crc32",
            Self::Crc32c => "x-amz-checksum-crc32c",
            Self::Crc64Nvme => "x-amz-checksum-crc64nvme",
            Self::Sha1 => "x-amz-checksum-sha1",
            Self::Sha256 => "x-amz-checksum-sha256",
            Self::Sha512 => "x-amz-checksum-sha512",
            Self::Md5 => "x-amz-checksum-md5",
            Self::XxHash64 => "x-amz-checksum-xxhash64",
            Self::XxHash3 => "x-amz-checksum-xxhash3",
            Self::XxHash128 => "x-amz-checksum-xxhash128",
        }
    }

    /// Returns the length of a value in bytes.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::Crc32 | Self::Crc32c => 4,
            Self::Crc64Nvme | Self::XxHash64 | Self::XxHash3 => 8,
            Self::Md5 | Self::XxHash128 => 16,
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }

    /// Returns the length of a value in base64, with its padding. It makes the length of a trailer
    /// known in advance.
    #[must_use]
    pub fn characters(self) -> usize {
        self.bytes().div_ceil(3) * 4
    }

    /// Decodes a trailer's value.
    ///
    /// # Errors
    /// `InvalidRequest` if it is not base64 of this algorithm's length.
    pub fn value(self, text: &str) -> Result<Vec<u8>, Refusal> {
        let value = STANDARD.decode(text).ok().filter(|value| value.len() == self.bytes());
        let message = || format!("Value for {} trailing header is invalid.", self.header());
        value.ok_or_else(|| Refusal::new(Code::InvalidRequest, message()))
    }

    /// Starts a computation, or returns `None` for the algorithms that only a store can verify.
    #[must_use]
    pub fn start(self) -> Option<Running> {
        let crc = |algorithm| Some(Running::Crc(Digest::new(algorithm)));
        let sha = |algorithm| Some(Running::Sha(digest::Context::new(algorithm)));
        match self {
            Self::Crc32 => crc(CrcAlgorithm::Crc32IsoHdlc),
            Self::Crc32c => crc(CrcAlgorithm::Crc32Iscsi),
            Self::Crc64Nvme => crc(CrcAlgorithm::Crc64Nvme),
            Self::Sha1 => sha(&digest::SHA1_FOR_LEGACY_USE_ONLY),
            Self::Sha256 => sha(&digest::SHA256),
            Self::Sha512 => sha(&digest::SHA512),
            Self::Md5 | Self::XxHash64 | Self::XxHash3 | Self::XxHash128 => None,
        }
    }
}

/// A checksum in progress.
pub enum Running {
    /// A cyclic redundancy check of 32 or 64 bits.
    Crc(Digest),
    /// A member of the SHA family.
    Sha(digest::Context),
}

impl Running {
    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Crc(crc) => crc.update(bytes),
            Self::Sha(sha) => sha.update(bytes),
        }
    }

    /// Returns true if the bytes so far have this checksum. For a CRC of fewer than 64 bits,
    /// compares its last bytes.
    #[must_use]
    pub fn is(&self, expected: &[u8]) -> bool {
        match self {
            Self::Crc(crc) => !expected.is_empty() && crc.finalize().to_be_bytes().ends_with(expected),
            Self::Sha(sha) => sha.clone().finish().as_ref() == expected,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The check values of the CRC catalogue for `123456789`, and of FIPS 180-4 for `abc`.
    #[rstest]
    #[case(Checksum::Crc32, "123456789", "cbf43926")]
    #[case(Checksum::Crc32c, "123456789", "e3069283")]
    #[case(Checksum::Crc64Nvme, "123456789", "ae8b14860a799888")]
    #[case(Checksum::Sha1, "abc", "a9993e364706816aba3e25717850c26c9cd0d89d")]
    #[case(Checksum::Sha256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")]
    fn the_published_check_values_hold(#[case] checksum: Checksum, #[case] text: &str, #[case] value: &str) {
        let mut running = checksum.start().expect("it can be computed");
        running.update(&text.as_bytes()[..2]);
        running.update(&text.as_bytes()[2..]);
        let mut value = hex::decode(value).expect("hex");
        assert!(running.is(&value));
        assert_eq!(value.len(), checksum.bytes());
        assert_eq!(STANDARD.encode(&value).len(), checksum.characters());
        value[0] ^= 1;
        assert!(!running.is(&value));
        assert!(!running.is(&[]));
    }

    #[test]
    fn lengths_are_those_of_base64() {
        let lengths = Checksum::ALL.map(Checksum::characters);
        assert_eq!(lengths, [8, 8, 12, 28, 44, 88, 24, 12, 12, 24]);
    }

    #[rstest]
    #[case("x-amz-checksum-crc32", Some(Checksum::Crc32))]
    #[case(" X-Amz-Checksum-SHA256\t", Some(Checksum::Sha256))]
    #[case("x-amz-checksum-crc32,x-amz-checksum-sha1", None)]
    #[case("x-amz-checksum-crc16", None)]
    #[case("x-amz-meta-a", None)]
    #[case("", None)]
    fn one_known_trailer_may_be_announced(#[case] header: &str, #[case] expected: Option<Checksum>) {
        let refused = Err(Code::InvalidRequest);
        assert_eq!(Checksum::announced(header).map_err(|refusal| refusal.code), expected.map_or(refused, Ok));
    }

    #[rstest]
    #[case("sOO8/Q==", true)]
    #[case("sOO8/Q=", false)]
    #[case("sOO8/Q", false)]
    #[case("sOO8/R==", false)]
    #[case("sOO8/QA=", false)]
    #[case(" sOO8/Q==", false)]
    #[case("", false)]
    fn a_value_is_base64_of_its_length(#[case] text: &str, #[case] good: bool) {
        assert_eq!(Checksum::Crc32c.value(text).is_ok(), good);
    }
}
