//! Bodies: verified and framed for a store while they are streamed.
//!
//! [`Payload`] describes the framing of a body and its signed parts. [`outgoing`] turns the
//! client's body into the store's, in the same way for every framing. Nothing is buffered whole:
//! the state of a chunk is a counter and a running hash. [`pace`] keeps slow peers from occupying a
//! connection.

pub mod checksum;
pub mod decoder;
mod filter;
mod framer;
mod outgoing;
pub mod pace;
mod payload;
mod recheck;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty};
use tower::BoxError;

use crate::refusal::{Code, Refusal};

pub use self::filter::{ChunkSignatures, WITHHELD};
pub use self::framer::CHUNK;
pub use self::outgoing::{Outgoing, Trailers, outgoing};
pub use self::payload::{Announced, MAX_LENGTH, Payload};
pub use self::recheck::{RECHECK, Recheck, rechecked, rechecked_upload};

/// A streamed body, in either direction.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// Returns an empty body.
#[must_use]
pub fn nothing() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// The error of a [`Body`] that the gateway itself broke off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body was broken off: {}", .0.code.as_str())]
pub struct Broken(pub Refusal);

impl Broken {
    /// Returns the refusal for a body that ended with `error`. An error that is not the gateway's
    /// is one of the connection, so the body is incomplete.
    #[must_use]
    pub fn refusal(error: &BoxError) -> Refusal {
        error.downcast_ref::<Self>().map_or_else(incomplete, |broken| broken.0.clone())
    }
}

/// The outcome of a body, to be read after the call to the store has ended. Clones share it.
///
/// A body that fails cuts the connection to the store, so the caller only sees an error of that
/// connection. The reason is here.
#[derive(Clone, Debug, Default)]
pub struct Failure(Arc<Told>);

#[derive(Debug, Default)]
struct Told {
    reason: OnceLock<Refusal>,
    passed: AtomicU64,
}

impl Failure {
    /// Returns the reason why the body failed, or `None` if it hasn't.
    #[must_use]
    pub fn reason(&self) -> Option<Refusal> {
        self.0.reason.get().cloned()
    }

    /// Returns the number of bytes of the object sent to the store, without framing.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.0.passed.load(Ordering::Relaxed)
    }

    /// Records a reason. The first one is kept.
    fn fail(&self, reason: Refusal) {
        let _ = self.0.reason.set(reason);
    }

    fn pass(&self, bytes: usize) {
        self.0.passed.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// S3's refusal of a body that is shorter or longer than announced, or framed differently.
fn incomplete() -> Refusal {
    Refusal::new(Code::IncompleteBody, "The request body terminated unexpectedly.")
}
