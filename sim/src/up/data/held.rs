//! Answers that are held back until the data they contain is durable: a client still sees after a
//! crash what it has seen before.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http_body::{Body, Frame};

use super::Data;

/// A body whose parts are each held back until all changes before them are durable.
pub(in crate::up) struct Held<B> {
    inner: B,
    data: Option<Data>,
    /// The next part, and the future that it waits for.
    waiting: Option<(Frame<Bytes>, BoxFuture<'static, ()>)>,
}

impl<B> Held<B> {
    /// Creates a body. Without a data directory nothing is held back.
    pub(in crate::up) fn new(inner: B, data: Option<Data>) -> Self {
        Self { inner, data, waiting: None }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Held<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = &mut *self;
        if this.waiting.is_none() {
            let frame = match ready!(Pin::new(&mut this.inner).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                other => return Poll::Ready(other),
            };
            match &this.data {
                Some(data) if !data.changes.is_settled() => this.waiting = Some((frame, data.settled().boxed())),
                _ => return Poll::Ready(Some(Ok(frame))),
            }
        }
        if let Some((_, safe)) = &mut this.waiting {
            ready!(safe.poll_unpin(context));
        }
        Poll::Ready(this.waiting.take().map(|(frame, _)| Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.waiting.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        if self.waiting.is_none() { self.inner.size_hint() } else { http_body::SizeHint::default() }
    }
}
