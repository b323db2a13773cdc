//! What a client of a real store must live with and a store at rest never shows: answers that are
//! old, half done or cut.
//!
//! A request that carries a [`Disturbance`] among its extensions is answered so; requests that it
//! can't happen to are answered as ever.

use bytes::Bytes;
use http::{Response, StatusCode};
use s3s::Body;

/// What is wrong with the answer to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// A read is answered from the state before the last write, see
    /// [`Store::remember_past`](super::Store::remember_past).
    Stale,
    /// Of the keys of a DeleteObjects the first stays, with an `InternalError` of its own in an
    /// answer of 200.
    PartialDelete,
    /// The second half of the answer's body is missing.
    Truncated,
}

/// Cuts the body of an answer in half. What said how long it was goes too: the answer looks
/// complete.
pub(super) fn truncate(response: &mut Response<Body>) {
    let Some(whole) = response.body().bytes().filter(|_| response.status() != StatusCode::NO_CONTENT) else { return };
    *response.body_mut() = Body::from(Bytes::copy_from_slice(&whole[..whole.len() / 2]));
    response.headers_mut().remove(http::header::CONTENT_LENGTH);
}
