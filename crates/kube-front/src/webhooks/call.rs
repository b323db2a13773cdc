//! The call of a webhook, in the place of a network.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;

/// Most bytes of a webhook's answer that are taken: 3 MiB, as of a request.
pub const ANSWER_LIMIT: usize = 3 * 1024 * 1024;

/// Calls admission webhooks, in the place of a network that this crate doesn't have.
pub trait Webhooks: Send + Sync {
    /// Sends a review to a webhook by POST, as JSON, and gives the body of its answer: one of at
    /// most [`ANSWER_LIMIT`] bytes. No redirect is followed. After [`Call::timeout`] nobody waits
    /// for it any more, and the future is dropped.
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Bytes, NoAnswer>>;
}

/// What a webhook is to be asked.
#[derive(Clone)]
pub struct Call {
    /// Where: `https://…`, with the seconds that there are in its query.
    pub url: String,
    /// What that names.
    pub place: Place,
    /// Whose certificates are believed, in PEM; empty for the system's authorities.
    pub ca_bundle: Vec<u8>,
    /// An `AdmissionReview`. It holds the whole object, which may be a Secret.
    pub review: Bytes,
    /// How long it has.
    pub timeout: Duration,
}

/// What a URL of a webhook names.
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

/// Why a webhook has no say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// No answer came, and why.
    Unreached(String),
    /// It answered with another code than one of success, and with this text, if it was one.
    Refused {
        /// Of HTTP.
        code: u16,
        /// What is shown of it is cut off.
        text: Option<String>,
    },
}
