//! The memory of one stream, counted by its live buffers while nothing moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::executor::block_on;
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use rstest::rstest;
use stowage_gateway::body::checksum::Checksum;
use stowage_gateway::body::{WITHHELD, outgoing};
use tower::BoxError;

use crate::client::{self, Framing, OTHERS};
use crate::to_the_store::{OLD_STORE, STORE, payload};

/// A buffer that counts the live bytes of its kind.
struct Counted {
    bytes: Vec<u8>,
    alive: Arc<AtomicUsize>,
}

impl Counted {
    fn piece(bytes: &[u8], alive: &Arc<AtomicUsize>) -> Bytes {
        alive.fetch_add(bytes.len(), Ordering::SeqCst);
        Bytes::from_owner(Self { bytes: bytes.to_vec(), alive: Arc::clone(alive) })
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.alive.fetch_sub(self.bytes.len(), Ordering::SeqCst);
    }
}

/// Whenever the client is polled for more, only a small copy of its data is kept; and while the
/// store is slow, one piece.
#[rstest]
fn a_stream_holds_one_piece(
    #[values(
        Framing::Plain,
        Framing::Signed,
        Framing::SignedTrailer(Checksum::Sha256),
        Framing::UnsignedTrailer(Checksum::Crc32)
    )]
    framing: Framing,
    #[values(16, 60_000, 300_000)] split: usize,
    #[values(STORE, OLD_STORE)] store: stowage_gateway::body::Trailers,
) {
    const LENGTH: usize = 1 << 20;
    let sent = client::send(framing, &client::data(LENGTH), &[100_000], OTHERS);
    let alive = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&alive);
    let pieces = client::pieces(&sent, &[split]).into_iter().map(move |piece| {
        assert_eq!(counter.load(Ordering::SeqCst), 0, "something was held while more was asked for");
        Ok::<_, BoxError>(Frame::data(Counted::piece(&piece, &counter)))
    });
    let body = StreamBody::new(stream::iter(pieces)).boxed_unsync();
    let way = outgoing(body, payload(framing, LENGTH as u64), store, client::chain(framing));
    let mut way = block_on(way).expect("it can go");
    let mut total = 0;
    while let Some(frame) = block_on(way.body.frame()) {
        total += frame.expect("it is right").data_ref().map_or(0, Bytes::len);
        assert!(alive.load(Ordering::SeqCst) <= split);
    }
    assert_eq!(total as u64, way.length);
    const { assert!(WITHHELD <= 64 << 10) }
}

/// The size of the state machine itself, without its allocations.
#[test]
fn a_stream_is_small() {
    let bytes = size_of::<stowage_gateway::body::decoder::Decoder>();
    assert!(bytes <= 1024, "{bytes}");
}
