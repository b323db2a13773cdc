//! Bodies that pass through the proxy, or that a fault has created.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use tower::BoxError;

/// Body of a request or an answer. It is streamed and never buffered as a whole.
#[derive(Debug)]
pub struct Body(UnsyncBoxBody<Bytes, BoxError>);

impl Body {
    /// Wraps a body that passes through.
    pub fn new(body: impl http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static) -> Self {
        Self(body.map_err(Into::into).boxed_unsync())
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(Full::from(bytes))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.0).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
