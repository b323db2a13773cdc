//! Bodies that arrive in pieces.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Frame;
use http_body_util::BodyExt as _;
use stowage_gateway::body::{Body, Broken};
use stowage_gateway::refusal::Code;
use tower::BoxError;

struct Pieces(VecDeque<Bytes>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(self.get_mut().0.pop_front().map(|piece| Ok(Frame::data(piece))))
    }
}

/// Returns the ways to cut a body: as a whole, into single bytes, and into pieces of these sizes in
/// turns.
pub(super) fn cuts(sizes: &[usize]) -> [Vec<usize>; 3] {
    [vec![usize::MAX], vec![1], if sizes.is_empty() { vec![7] } else { sizes.to_vec() }]
}

/// Parses a list of sizes such as `1,5,3`.
pub(super) fn sizes(text: &[u8]) -> Vec<usize> {
    let numbers = text.split(|byte| *byte == b',').take(16);
    numbers.filter_map(|number| str::from_utf8(number).ok()?.parse().ok()).filter(|size| *size > 0).collect()
}

/// Returns a body of these bytes, in pieces of these sizes in turns.
pub(super) fn body(bytes: &[u8], sizes: &[usize]) -> Body {
    let mut rest = Bytes::copy_from_slice(bytes);
    let mut sizes = sizes.iter().cycle();
    let mut pieces = VecDeque::new();
    while !rest.is_empty() {
        let size = sizes.next().map_or(rest.len(), |size| (*size).min(rest.len()));
        pieces.push_back(rest.split_to(size));
    }
    Pieces(pieces).boxed_unsync()
}

/// Reads a body; returns its bytes, and the error that it ended with.
pub(super) async fn all<B: http_body::Body<Data = Bytes, Error = BoxError> + Unpin>(
    mut body: B,
) -> (Vec<u8>, Option<Code>) {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => bytes.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data)),
            Err(error) => return (bytes, Some(Broken::refusal(&error).code)),
        }
    }
    (bytes, None)
}
