//! The body announced by a head.

use rstest::rstest;
use stowage_gateway::body::checksum::Checksum;
use stowage_gateway::body::{Announced, MAX_LENGTH, Payload};
use stowage_gateway::refusal::Code;

use crate::client::sha256_hex;

const SIGNED: &str = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";
const SIGNED_TRAILER: &str = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER";
const UNSIGNED_TRAILER: &str = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
const CRC32: Option<&str> = Some("x-amz-checksum-crc32");
const LENGTH: Announced = Announced::Length(1000);
const ZEROES: &str = "0000000000000000000000000000000000000000000000000000000000000000";

#[rstest]
#[case("UNSIGNED-PAYLOAD", LENGTH, None, None, Ok(Payload::Unsigned { length: 1000 }))]
#[case("UNSIGNED-PAYLOAD", Announced::Nothing, None, None, Ok(Payload::Empty))]
#[case("UNSIGNED-PAYLOAD", Announced::Length(0), None, None, Ok(Payload::Unsigned { length: 0 }))]
#[case("UNSIGNED-PAYLOAD", Announced::Chunked, None, None, Err(Code::MissingContentLength))]
#[case("UNSIGNED-PAYLOAD", Announced::Length(MAX_LENGTH + 1), None, None, Err(Code::EntityTooLarge))]
#[case("UNSIGNED-PAYLOAD", Announced::Length(u64::MAX), None, None, Err(Code::EntityTooLarge))]
#[case(ZEROES, LENGTH, None, None, Ok(Payload::Hash { sha256: [0; 32], length: 1000 }))]
#[case(ZEROES, Announced::Nothing, None, None, Err(Code::XAmzContentSHA256Mismatch))]
#[case(ZEROES, Announced::Length(0), None, None, Err(Code::XAmzContentSHA256Mismatch))]
#[case(ZEROES, Announced::Chunked, None, None, Err(Code::MissingContentLength))]
#[case(&ZEROES[1..], LENGTH, None, None, Err(Code::InvalidArgument))]
#[case("", LENGTH, None, None, Err(Code::InvalidArgument))]
#[case("unsigned-payload", LENGTH, None, None, Err(Code::InvalidArgument))]
#[case("STREAMING-UNSIGNED-PAYLOAD", LENGTH, Some("9"), None, Err(Code::InvalidArgument))]
#[case("STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", LENGTH, Some("9"), None, Err(Code::NotImplemented))]
#[case("STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER", LENGTH, Some("9"), CRC32, Err(Code::NotImplemented))]
#[case(SIGNED, LENGTH, Some("9"), None, Ok(Payload::SignedChunks { decoded: 9 }))]
#[case(SIGNED, Announced::Chunked, Some("9"), None, Ok(Payload::SignedChunks { decoded: 9 }))]
#[case(SIGNED, LENGTH, Some("9"), CRC32, Err(Code::InvalidRequest))]
#[case(SIGNED, LENGTH, None, None, Err(Code::MissingContentLength))]
#[case(SIGNED, Announced::Nothing, Some("0"), None, Err(Code::MissingContentLength))]
#[case(SIGNED, LENGTH, Some(""), None, Err(Code::InvalidArgument))]
#[case(SIGNED, LENGTH, Some("+9"), None, Err(Code::InvalidArgument))]
#[case(SIGNED, LENGTH, Some("-9"), None, Err(Code::InvalidArgument))]
#[case(SIGNED, LENGTH, Some(" 9"), None, Err(Code::InvalidArgument))]
#[case(SIGNED, LENGTH, Some("9,9"), None, Err(Code::InvalidArgument))]
#[case(SIGNED, LENGTH, Some("5368709120"), None, Ok(Payload::SignedChunks { decoded: MAX_LENGTH }))]
#[case(SIGNED, LENGTH, Some("5368709121"), None, Err(Code::EntityTooLarge))]
#[case(SIGNED, LENGTH, Some("99999999999999999999999"), None, Err(Code::EntityTooLarge))]
#[case(
    SIGNED_TRAILER, LENGTH, Some("9"), CRC32,
    Ok(Payload::SignedChunksTrailer { decoded: 9, trailer: Some(Checksum::Crc32) }),
)]
#[case(SIGNED_TRAILER, LENGTH, Some("9"), None, Ok(Payload::SignedChunksTrailer { decoded: 9, trailer: None }))]
#[case(SIGNED_TRAILER, LENGTH, Some("9"), Some("x-amz-meta-a"), Err(Code::InvalidRequest))]
#[case(
    UNSIGNED_TRAILER, Announced::Chunked, Some("9"), Some("x-amz-checksum-xxhash3"),
    Ok(Payload::UnsignedTrailer { decoded: 9, trailer: Some(Checksum::XxHash3) }),
)]
#[case(UNSIGNED_TRAILER, Announced::Chunked, None, CRC32, Err(Code::MissingContentLength))]
#[case(
    UNSIGNED_TRAILER,
    LENGTH,
    Some("9"),
    Some("x-amz-checksum-crc32,x-amz-checksum-sha1"),
    Err(Code::InvalidRequest)
)]
fn a_head_is_read_once(
    #[case] sha256: &str,
    #[case] announced: Announced,
    #[case] decoded: Option<&str>,
    #[case] trailer: Option<&str>,
    #[case] expected: Result<Payload, Code>,
) {
    let payload = Payload::parse(sha256, announced, decoded, trailer);
    assert_eq!(payload.as_ref().map_err(|refusal| refusal.code), expected.as_ref().map_err(|code| *code));
}

#[test]
fn the_hash_of_nothing_is_good_for_nothing() {
    let nothing = sha256_hex(b"");
    assert_eq!(Payload::parse(&nothing, Announced::Nothing, None, None), Ok(Payload::Empty));
    let Ok(Payload::Hash { length, .. }) = Payload::parse(&nothing, Announced::Length(0), None, None) else {
        panic!("it is a hash")
    };
    assert_eq!(length, 0);
}
