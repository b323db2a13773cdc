//! Response bodies of the simulated Kubernetes API, for clients that may be paused by a fault.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use faults::Gate;
use http_body::{Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};

/// Response body of the simulated API: its own, or one that a fault made.
#[derive(Debug)]
pub struct ApiBody {
    body: UnsyncBoxBody<Bytes, Infallible>,
    /// Counts the bytes of the API's own body.
    received: Arc<AtomicU64>,
    /// Delays frames while the calling process is paused; `None` for a body that a fault made,
    /// which is complete at once.
    gate: Option<Gate>,
}

impl ApiBody {
    /// Wraps the API's own body, counting its bytes and delaying them at a gate.
    pub fn counted(body: UnsyncBoxBody<Bytes, Infallible>, received: Arc<AtomicU64>, gate: Gate) -> Self {
        Self { body, received, gate: Some(gate) }
    }
}

impl From<Vec<u8>> for ApiBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self { body: Full::from(bytes).boxed_unsync(), received: Arc::default(), gate: None }
    }
}

impl http_body::Body for ApiBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if let Some(gate) = &self.gate {
            ready!(gate.poll_open(context));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(data) = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()) {
            self.received.fetch_add(data.len() as u64, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
