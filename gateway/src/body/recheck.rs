//! Repeated authorisation of a request while its body is streamed: access may be revoked before a
//! long body ends.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio::time::Instant;
use tower::BoxError;

use super::{Body, Broken, Failure, Outgoing};
use crate::refusal::Refusal;

/// Interval at which the request of a body that is being streamed is authorised again.
pub const RECHECK: Duration = Duration::from_secs(10);

/// A check that a request is still allowed.
pub type Recheck = Box<dyn FnMut() -> BoxFuture<'static, Result<(), Refusal>> + Send>;

/// Streams a body to a store while `recheck` allows it. The check runs before the last bytes,
/// without which no store keeps an object, and before bytes that come [`RECHECK`] after the last
/// check.
///
/// # Errors
/// Returns the result of `recheck` if the body is empty.
pub async fn rechecked_upload(out: Outgoing, mut recheck: Recheck) -> Result<Outgoing, Refusal> {
    if out.length == 0 {
        recheck().await?;
        return Ok(out);
    }
    let body = Rechecked::new(out.body, Some(out.length), recheck, out.failure.clone());
    Ok(Outgoing { body: body.boxed_unsync(), ..out })
}

/// Streams a body to a client while `recheck` allows it.
#[must_use]
pub fn rechecked(body: Body, recheck: Recheck) -> Body {
    Rechecked::new(body, None, recheck, Failure::default()).boxed_unsync()
}

struct Rechecked {
    body: Body,
    /// Remaining bytes, if the last ones are held back.
    left: Option<u64>,
    recheck: Recheck,
    asked: Instant,
    /// A piece that waits for the check.
    held: Option<(Bytes, BoxFuture<'static, Result<(), Refusal>>)>,
    failure: Failure,
    is_broken: bool,
}

impl Rechecked {
    fn new(body: Body, left: Option<u64>, recheck: Recheck, failure: Failure) -> Self {
        Self { body, left, recheck, asked: Instant::now(), held: None, failure, is_broken: false }
    }

    /// Counts a piece. Returns true if a check has to run before it is passed on.
    fn is_due(&mut self, piece: &Bytes) -> bool {
        self.left = self.left.map(|left| left.saturating_sub(piece.len() as u64));
        self.left == Some(0) || self.asked.elapsed() >= RECHECK
    }
}

impl HttpBody for Rechecked {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if this.is_broken {
            return Poll::Ready(None);
        }
        if this.held.is_none() {
            let frame = match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                ended => return Poll::Ready(ended),
            };
            match frame.into_data() {
                Ok(piece) if this.is_due(&piece) => this.held = Some((piece, (this.recheck)())),
                Ok(piece) => return Poll::Ready(Some(Ok(Frame::data(piece)))),
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        let Some((_, answer)) = &mut this.held else { return Poll::Ready(None) };
        let answer = ready!(answer.as_mut().poll(context));
        this.asked = Instant::now();
        let piece = this.held.take().map_or_else(Bytes::new, |(piece, _)| piece);
        Poll::Ready(Some(match answer {
            Ok(()) => Ok(Frame::data(piece)),
            Err(refusal) => {
                this.is_broken = true;
                this.failure.fail(refusal.clone());
                Err(Broken(refusal).into())
            }
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.is_broken || self.held.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let held = self.held.as_ref().map_or(0, |(piece, _)| piece.len() as u64);
        let inner = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(held));
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(held));
        }
        hint
    }
}
