//! The output for the store of valid bodies.

use bytes::Bytes;
use futures::executor::block_on;
use http_body::Body as _;
use proptest::prelude::*;
use rstest::rstest;
use stowage_gateway::body::checksum::Checksum;
use stowage_gateway::body::{CHUNK, Outgoing, Payload, Trailers, outgoing};
use stowage_gateway::refusal::{Code, Refusal};

use crate::client::{self, Chain, Framing, MINIO_GO, OTHERS, TRAILER_SEED};
use crate::store::{self, Put};

pub const STORE: Trailers = Trailers::Understood;
pub const OLD_STORE: Trailers = Trailers::Unknown;
const TRAILER: &str = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";

pub fn payload(framing: Framing, length: u64) -> Payload {
    match framing {
        Framing::Plain => Payload::Unsigned { length },
        Framing::Signed => Payload::SignedChunks { decoded: length },
        Framing::SignedTrailer(of) => Payload::SignedChunksTrailer { decoded: length, trailer: Some(of) },
        Framing::UnsignedTrailer(of) => Payload::UnsignedTrailer { decoded: length, trailer: Some(of) },
    }
}

/// Returns the body for a store from `pieces`, announced as `length` bytes in this framing.
pub fn way(framing: Framing, length: u64, pieces: Vec<Bytes>, store: Trailers) -> Result<Outgoing, Refusal> {
    block_on(outgoing(client::body(pieces), payload(framing, length), store, client::chain(framing)))
}

/// The client's framing, the store's support of trailers, and the checksum that the store gets.
#[rstest]
#[case(Framing::Plain, STORE, None)]
#[case(Framing::Signed, STORE, None)]
#[case(Framing::SignedTrailer(Checksum::Crc32), STORE, Some(Checksum::Crc32))]
#[case(Framing::SignedTrailer(Checksum::XxHash128), STORE, Some(Checksum::XxHash128))]
#[case(Framing::SignedTrailer(Checksum::Crc32), OLD_STORE, None)]
#[case(Framing::SignedTrailer(Checksum::XxHash128), OLD_STORE, None)]
#[case(Framing::UnsignedTrailer(Checksum::Crc64Nvme), STORE, Some(Checksum::Crc64Nvme))]
#[case(Framing::UnsignedTrailer(Checksum::XxHash3), STORE, Some(Checksum::XxHash3))]
#[case(Framing::UnsignedTrailer(Checksum::Sha512), OLD_STORE, None)]
fn a_body_that_is_right_arrives(
    #[case] framing: Framing,
    #[case] ability: Trailers,
    #[case] checksum: Option<Checksum>,
    #[values(0, 1, 70_000)] length: usize,
    #[values(OTHERS, MINIO_GO)] line_end: &str,
    #[values(1, 4000, 1 << 20)] split: usize,
) {
    let data = client::data(length);
    let sent = client::send(framing, &data, &[65_536], line_end);
    let mut way = way(framing, length as u64, client::pieces(&sent, &[split]), ability).expect("it can go");
    assert_eq!(way.body.size_hint().exact(), Some(way.length));
    let Put::Whole(got) = block_on(store::take(&mut way)) else { panic!("{:?}", way.failure.reason()) };
    assert_eq!(way.failure.reason(), None);
    assert_eq!(way.failure.passed(), length as u64);
    assert_eq!(way.trailer, checksum.map(Checksum::header));
    assert_eq!(way.decoded_length, checksum.map(|_| length as u64));
    assert_eq!(way.payload, if checksum.is_some() { TRAILER } else { "UNSIGNED-PAYLOAD" });
    let Some(checksum) = checksum else { return assert_eq!(got, data) };
    let parsed = store::parse(&got);
    assert_eq!(parsed.data, data);
    assert_eq!(parsed.trailers, [(checksum.header().to_owned(), client::checksum(checksum, &data))]);
}

/// Without a checksum, a trailer would have nothing for the store, so the body is sent unframed.
#[rstest]
#[case(true, "0\r\n\r\n")]
#[case(false, "")]
fn a_trailer_may_be_empty(#[case] unsigned: bool, #[case] end: &str) {
    let mut chain = Chain::from(TRAILER_SEED);
    let mut sent = "3\r\nabc\r\n".to_owned() + end;
    if !unsigned {
        let chunks = [client::sha256_hex(b"abc"), client::sha256_hex(b"")].map(|hash| chain.chunk(&hash));
        let trailer = chain.trailer(&client::sha256_hex(b""));
        let [first, last] = chunks;
        sent = format!("3;chunk-signature={first}\r\nabc\r\n0;chunk-signature={last}\r\n");
        sent += &format!("x-amz-trailer-signature:{trailer}\r\n\r\n");
    }
    let (payload, chain) = match unsigned {
        true => (Payload::UnsignedTrailer { decoded: 3, trailer: None }, None),
        false => {
            let chain = client::chain(Framing::SignedTrailer(Checksum::Crc32));
            (Payload::SignedChunksTrailer { decoded: 3, trailer: None }, chain)
        }
    };
    let mut way = block_on(outgoing(client::body(vec![sent.into()]), payload, STORE, chain)).expect("it can go");
    assert_eq!((way.length, way.trailer, way.payload.as_ref()), (3, None, "UNSIGNED-PAYLOAD"));
    assert_eq!(block_on(store::take(&mut way)), Put::Whole(b"abc".to_vec()));
}

// covers: 6.body
#[rstest]
fn a_body_with_another_hash_than_was_signed_is_cut(#[values(STORE, OLD_STORE)] store: Trailers) {
    let data = client::data(10_000);
    let hash = |data: &[u8]| hex::decode(client::sha256_hex(data)).unwrap().try_into().unwrap();
    for (sha256, good) in [(hash(&data), true), (hash(b"other"), false)] {
        let payload = Payload::Hash { sha256, length: 10_000 };
        let body = client::body(client::pieces(&data, &[999]));
        let mut way = block_on(outgoing(body, payload, store, None)).expect("it can go");
        assert_eq!(way.payload, hex::encode(sha256));
        let put = block_on(store::take(&mut way));
        if good {
            assert_eq!(put, Put::Whole(data.clone()));
        } else {
            assert!(matches!(put, Put::Cut(_)));
            assert_eq!(way.failure.reason().map(|refusal| refusal.code), Some(Code::XAmzContentSHA256Mismatch));
        }
    }
}

/// An empty body with another hash is refused.
#[rstest]
fn nothing_has_the_hash_of_nothing(#[values(STORE, OLD_STORE)] store: Trailers) {
    for (sha256, good) in [(client::sha256_hex(b""), true), (client::sha256_hex(b"abc"), false)] {
        let sha256 = hex::decode(sha256).unwrap().try_into().unwrap();
        let way = block_on(outgoing(client::body(vec![]), Payload::Hash { sha256, length: 0 }, store, None));
        let expected = if good { Ok(0) } else { Err(Code::XAmzContentSHA256Mismatch) };
        assert_eq!(way.map(|way| way.length).map_err(|refusal| refusal.code), expected);
    }
}

#[test]
fn no_body_is_no_body() {
    let mut way = block_on(outgoing(client::body(vec![]), Payload::Empty, STORE, None)).expect("it can go");
    assert_eq!((way.length, way.body.is_end_stream()), (0, true));
    assert_eq!(block_on(store::take(&mut way)), Put::Whole(vec![]));
}

#[test]
fn what_nobody_can_verify_is_refused_beforehand() {
    for checksum in [Checksum::Md5, Checksum::XxHash64, Checksum::XxHash3, Checksum::XxHash128] {
        let way = way(Framing::UnsignedTrailer(checksum), 3, vec![], OLD_STORE);
        assert_eq!(way.map(|_| ()).map_err(|refusal| refusal.code), Err(Code::NotImplemented));
    }
    for framing in [Framing::Signed, Framing::SignedTrailer(Checksum::Crc32)] {
        let way = block_on(outgoing(client::body(vec![]), payload(framing, 3), STORE, None));
        assert_eq!(way.map(|_| ()).map_err(|refusal| refusal.code), Err(Code::InvalidRequest));
    }
}

/// MinIO refuses chunks beyond 16 MiB, and some SDKs send an object as one chunk.
#[rstest]
#[case(CHUNK - 1, &[CHUNK - 1])]
#[case(CHUNK, &[CHUNK])]
#[case(CHUNK + 1, &[CHUNK, 1])]
#[case(3 * CHUNK + 17, &[CHUNK, CHUNK, CHUNK, 17])]
fn one_chunk_of_a_client_becomes_many(
    #[case] length: u64,
    #[case] sizes: &[u64],
    #[values(100_000, usize::MAX)] split: usize,
) {
    let framing = Framing::UnsignedTrailer(Checksum::Crc32c);
    let data = client::data(length as usize);
    let sent = client::send(framing, &data, &[], OTHERS);
    let mut way = way(framing, length, client::pieces(&sent, &[split]), STORE).expect("it can go");
    let Put::Whole(got) = block_on(store::take(&mut way)) else { panic!("{:?}", way.failure.reason()) };
    let parsed = store::parse(&got);
    assert!(parsed.data == data);
    assert_eq!(parsed.sizes.iter().map(|size| *size as u64).collect::<Vec<_>>(), sizes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn lengths_are_exact_and_data_is_whole(
        length in prop_oneof![0_usize..40, 4000_usize..5000, 1_040_000_usize..1_060_000],
        checksum in proptest::sample::select(Checksum::ALL.to_vec()),
        signed in any::<bool>(),
        chunks in proptest::collection::vec(10_000_usize..300_000, 1..4),
        splits in proptest::collection::vec(1000_usize..200_000, 1..4),
    ) {
        let framing = if signed { Framing::SignedTrailer(checksum) } else { Framing::UnsignedTrailer(checksum) };
        let data = client::data(length);
        let sent = client::send(framing, &data, &chunks, OTHERS);
        let mut way = way(framing, length as u64, client::pieces(&sent, &splits), STORE).expect("it can go");
        let Put::Whole(got) = block_on(store::take(&mut way)) else { panic!("{:?}", way.failure.reason()) };
        let parsed = store::parse(&got);
        prop_assert!(parsed.data == data);
        prop_assert_eq!(&parsed.trailers[0].1, &client::checksum(checksum, &data));
    }
}
