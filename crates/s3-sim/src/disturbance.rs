//! Faults that clients of a real store must tolerate and that an idle one never shows: responses
//! that are stale, partial or truncated.
//!
//! A request with a [`Disturbance`] among its extensions is answered accordingly. Requests to which
//! it does not apply are answered normally.

use bytes::Bytes;
use http::{Response, StatusCode};
use s3s::Body;

/// Fault in the response to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// A read is answered from the state before the last write, see
    /// [`Store::remember_past`](super::Store::remember_past).
    Stale,
    /// Of the keys of a DeleteObjects the first is not deleted, and has an `InternalError` in a
    /// response with status 200.
    PartialDelete,
    /// The second half of the response's body is missing.
    Truncated,
}

/// Removes the second half of a response's body. The Content-Length is removed too, so that the
/// response looks complete.
pub(super) fn truncate(response: &mut Response<Body>) {
    let Some(whole) = response.body().bytes().filter(|_| response.status() != StatusCode::NO_CONTENT) else { return };
    *response.body_mut() = Body::from(Bytes::copy_from_slice(&whole[..whole.len() / 2]));
    response.headers_mut().remove(http::header::CONTENT_LENGTH);
}
