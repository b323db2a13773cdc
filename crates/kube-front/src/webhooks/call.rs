//! Calls of webhooks: the [`Webhooks`] trait, a call and its possible failures.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;

/// Maximum size in bytes of a webhook's answer: 3 MiB, the same as for a request.
pub const ANSWER_LIMIT: usize = 3 * 1024 * 1024;

/// Calls admission webhooks. The implementation provides the network, which this crate doesn't
/// have.
pub trait Webhooks: Send + Sync {
    /// Sends a review to a webhook as JSON with POST and returns the body of the answer, at most
    /// [`ANSWER_LIMIT`] bytes. Redirects must not be followed. The future is dropped after
    /// [`Call::timeout`].
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Bytes, NoAnswer>>;
}

/// One call of a webhook: its URL, body and timeout.
#[derive(Clone)]
pub struct Call {
    /// The URL: `https://…`, with the timeout in seconds in its query.
    pub url: String,
    /// The kind of host in the URL.
    pub place: Place,
    /// Trusted certificates in PEM; empty for the system's authorities.
    pub ca_bundle: Vec<u8>,
    /// An `AdmissionReview`. It contains the whole object, which may be a Secret.
    pub review: Bytes,
    /// Time limit of the call.
    pub timeout: Duration,
}

/// The kind of host in a webhook's URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A host (`clientConfig.url`).
    Host,
    /// A Service in the cluster (`clientConfig.service`).
    Service,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Call");
        out.field("url", &self.url).field("place", &self.place).field("timeout", &self.timeout);
        out.finish_non_exhaustive()
    }
}

/// The reasons why a webhook gave no review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// No answer arrived, for this reason.
    Unreached(String),
    /// The webhook answered with a status code other than success, and with this text if it was
    /// text.
    Refused {
        /// The HTTP status code.
        code: u16,
        /// The text of the body. It is truncated when shown.
        text: Option<String>,
    },
}
