//! Bodies that are not valid: no store ever gets all of one.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures::executor::block_on;
use futures::{StreamExt as _, stream};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use rstest::rstest;
use stowage_gateway::body::checksum::Checksum;
use stowage_gateway::body::{Body, Broken, Trailers, outgoing};
use stowage_gateway::refusal::{Code, Refusal};
use tokio::io::AsyncReadExt as _;
use tower::BoxError;

use crate::client::{self, Framing, OTHERS};
use crate::store::{self, Put};
use crate::to_the_store::{OLD_STORE, STORE, payload, way};

/// Returns the reason why this body was refused. Also checks that the store got less than all of
/// it.
fn refused(framing: Framing, length: u64, pieces: Vec<Bytes>, store: Trailers) -> Option<Code> {
    let mut way = match way(framing, length, pieces, store) {
        Ok(way) => way,
        Err(refusal) => return Some(refusal.code),
    };
    match block_on(store::take(&mut way)) {
        Put::Whole(_) => None,
        Put::Cut(got) => {
            assert!(got.len() as u64 <= way.length.saturating_sub(1));
            assert!(way.failure.passed() < length || length == 0, "all data has gone");
            Some(way.failure.reason().expect("a reason").code)
        }
    }
}

const SIGNED: [Framing; 2] = [Framing::Signed, Framing::SignedTrailer(Checksum::Crc32c)];

/// Changes every byte of a client's message, adds one and removes one: every byte is verified.
#[test]
fn every_byte_counts() {
    let unsigned = Framing::UnsignedTrailer(Checksum::Crc64Nvme);
    for (framing, ability) in [(SIGNED[0], STORE), (SIGNED[1], STORE), (SIGNED[1], OLD_STORE), (unsigned, OLD_STORE)] {
        for length in [0, 1, 40] {
            let data = client::data(length);
            let sent = client::send(framing, &data, &[16], OTHERS);
            assert_eq!(refused(framing, length as u64, vec![sent.clone().into()], ability), None);
            for at in 0..sent.len() {
                for change in [1_u8, 255] {
                    let mut tampered = sent.clone();
                    tampered[at] = tampered[at].wrapping_add(change);
                    for split in [1, 7, usize::MAX] {
                        let code = refused(framing, length as u64, client::pieces(&tampered, &[split]), ability);
                        let shown = String::from_utf8_lossy(&tampered);
                        assert!(code.is_some(), "{framing:?}, byte {at}: {shown}");
                    }
                }
            }
        }
    }
}

/// A body that ends early at any byte, one with extra data after it, and one with a repeated byte.
#[test]
fn no_more_and_no_less() {
    let framings = [SIGNED[0], SIGNED[1], Framing::UnsignedTrailer(Checksum::Crc32), Framing::Plain];
    for (framing, ability) in framings.into_iter().flat_map(|framing| [(framing, STORE), (framing, OLD_STORE)]) {
        let data = client::data(40);
        let sent = client::send(framing, &data, &[16], OTHERS);
        for split in [1, 7, usize::MAX] {
            for end in 0..sent.len() {
                let code = refused(framing, 40, client::pieces(&sent[..end], &[split]), ability);
                assert_eq!(code, Some(Code::IncompleteBody), "{framing:?}, {end}");
            }
            if framing != Framing::Plain {
                let more = [&sent[..], b"\r\n"].concat();
                let code = refused(framing, 40, client::pieces(&more, &[split]), ability);
                assert_eq!(code, Some(Code::IncompleteBody), "{framing:?}");
            }
        }
        // HTTP itself ends a plain body at its announced length.
        let wrong = if framing == Framing::Plain { &[41][..] } else { &[39, 41] };
        for length in wrong {
            let code = refused(framing, *length, vec![sent.clone().into()], ability);
            assert_eq!(code, Some(Code::IncompleteBody));
        }
    }
}

/// The kinds of tampering, each with the code in the response.
#[rstest]
#[case(SIGNED[0], |sent: String| sent.replacen("xyz", "xyw", 1), Code::SignatureDoesNotMatch)]
#[case(SIGNED[0], |sent: String| sent.replacen("chunk-signature=", "chunk-signature=0", 1), Code::IncompleteBody)]
#[case(SIGNED[0], |sent: String| without(&sent, "3;", "0;"), Code::IncompleteBody)]
#[case(SIGNED[1], |sent: String| sent.replacen("r-signature:", "r-signature:0", 1), Code::MalformedTrailerError)]
#[case(SIGNED[1], |sent: String| without(&sent, "x-amz-checksum", "x-amz-trailer-s"), Code::MalformedTrailerError)]
#[case(SIGNED[1], |sent: String| without(&sent, "x-amz-trailer-s", "\r\n"), Code::MalformedTrailerError)]
#[case(SIGNED[1], |sent: String| another_checksum(&sent), Code::SignatureDoesNotMatch)]
#[case(Framing::UnsignedTrailer(Checksum::Crc32c), |sent: String| another_checksum(&sent), Code::BadDigest)]
#[case(Framing::UnsignedTrailer(Checksum::Crc32c), |sent: String| sent.replacen("xyz", "xyw", 1), Code::BadDigest)]
fn the_client_is_told(#[case] framing: Framing, #[case] tamper: fn(String) -> String, #[case] expected: Code) {
    let sent = String::from_utf8(client::send(framing, b"xyzxyz", &[3], OTHERS)).unwrap();
    let tampered = tamper(sent).into_bytes();
    for split in [1, usize::MAX] {
        assert_eq!(refused(framing, 6, client::pieces(&tampered, &[split]), OLD_STORE), Some(expected));
    }
}

/// Returns the text without the part from one mark up to the next.
fn without(text: &str, from: &str, to: &str) -> String {
    let start = text.find(from).expect("where it begins");
    let end = start + text[start..].find(to).expect("where it ends");
    [&text[..start], &text[end..]].concat()
}

fn another_checksum(sent: &str) -> String {
    let value = client::checksum(Checksum::Crc32c, b"xyzxyz");
    sent.replacen(&value, &client::checksum(Checksum::Crc32c, b"other"), 1)
}

/// A checksum that is signed but isn't that of the data is refused as well.
#[test]
fn a_signed_checksum_is_verified() {
    let framing = Framing::SignedTrailer(Checksum::XxHash3);
    let sent = client::send(framing, b"abc", &[], OTHERS);
    let good = refused(framing, 3, vec![sent.clone().into()], STORE);
    assert_eq!(good, None, "only the store can verify it");
    // As a CRC-64 the same value would be wrong. The signature covers the trailer's name too.
    let sent = String::from_utf8(sent).unwrap().replace("xxhash3", "crc64nvme");
    let code = refused(Framing::SignedTrailer(Checksum::Crc64Nvme), 3, vec![sent.into()], STORE);
    assert_eq!(code, Some(Code::SignatureDoesNotMatch));
}

/// An error of the connection makes the body incomplete. The gateway's own errors are kept.
#[rstest]
#[case(io::Error::from(io::ErrorKind::ConnectionReset).into(), Code::IncompleteBody)]
#[case(Broken(Refusal::new(Code::RequestTimeout, "")).into(), Code::RequestTimeout)]
fn a_source_that_fails_is_told(#[case] error: BoxError, #[case] expected: Code) {
    let frames = stream::iter([Ok(Frame::data(Bytes::from_static(b"ab"))), Err(error)]);
    let body = StreamBody::new(frames).boxed_unsync();
    let mut way = block_on(outgoing(body, payload(Framing::Plain, 3), STORE, None)).expect("it can go");
    let clone = way.failure.clone();
    assert_eq!(block_on(store::take(&mut way)), Put::Cut(b"ab".to_vec()));
    assert_eq!(clone.reason().map(|refusal| refusal.code), Some(expected));
    assert_eq!(clone.passed(), 2);
}

/// Returns the body of a PUT whose client waits for the response: each piece comes when the one
/// before was taken.
fn slowly(pieces: Vec<Bytes>) -> Body {
    let frames = stream::iter(pieces).then(|piece| async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok::<_, BoxError>(Frame::data(piece))
    });
    StreamBody::new(frames).boxed_unsync()
}

/// The bytes on a store's socket, from hyper's client, for a body whose last signature is wrong:
/// fewer than announced, followed by the end of the connection.
#[tokio::test(start_paused = true)]
async fn a_connection_to_the_store_is_cut() {
    for (framing, good) in SIGNED.into_iter().flat_map(|framing| [(framing, true), (framing, false)]) {
        let data = client::data(200_000);
        let mut sent = client::send(framing, &data, &[65_536], OTHERS);
        let last = sent.iter().rposition(|byte| byte.is_ascii_hexdigit()).unwrap();
        sent[last] = if good { sent[last] } else { sent[last] ^ 1 };
        let body = slowly(client::pieces(&sent, &[50_000]));
        let way = outgoing(body, payload(framing, 200_000), STORE, client::chain(framing)).await.expect("it can go");
        let (length, failure) = (way.length, way.failure.clone());

        let (gateway, mut store) = tokio::io::duplex(16 << 10);
        let (mut client, connection) = hyper::client::conn::http1::handshake(TokioIo::new(gateway)).await.unwrap();
        tokio::spawn(connection);
        let request = http::Request::put("/b/k").header("host", "store").body(way.body).unwrap();
        let answer = tokio::spawn(async move { client.send_request(request).await });
        let mut got = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(9), store.read_to_end(&mut got)).await;
        let head = got.windows(4).position(|window| window == b"\r\n\r\n").expect("a head") + 4;
        assert!(String::from_utf8_lossy(&got[..head]).contains(&format!("content-length: {length}\r\n")));
        if good {
            assert!(read.is_err(), "the connection stays");
            assert_eq!((got.len() - head) as u64, length);
        } else {
            assert!(read.is_ok(), "the connection is cut");
            assert!(((got.len() - head) as u64) < length);
            assert!(answer.await.unwrap().is_err());
            let code = failure.reason().map(|refusal| refusal.code);
            assert_eq!(code, Some(Code::SignatureDoesNotMatch));
        }
    }
}

proptest! {
    #[test]
    fn tampering_anywhere_is_found(
        framing in proptest::sample::select(SIGNED.to_vec()),
        length in 1_usize..20_000,
        chunk in 1000_usize..9000,
        split in 1_usize..9000,
        at in any::<proptest::sample::Index>(),
        mask in 1_u8..,
    ) {
        let mut sent = client::send(framing, &client::data(length), &[chunk], OTHERS);
        let at = at.index(sent.len());
        let before = sent[at];
        sent[at] ^= mask;
        // The digits of a size and the name of a trailer are case-insensitive.
        prop_assume!(!before.eq_ignore_ascii_case(&sent[at]));
        prop_assert!(refused(framing, length as u64, client::pieces(&sent, &[split]), STORE).is_some());
    }
}
