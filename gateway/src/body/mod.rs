//! Bodies: what comes from a client, checked and framed for a store while it flows.
//!
//! [`Payload`] says how a body is framed and what of it is signed. [`outgoing`] turns the client's
//! body into what the store gets; there is one way for all framings. Nothing is buffered whole: a
//! chunk is a counter and a running hash. [`pace`] keeps slow peers from holding a connection.

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

/// A body that flows, in either direction.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// No bytes.
#[must_use]
pub fn nothing() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// Why a body ended early: the error of a [`Body`] that the gateway itself broke off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body was broken off: {}", .0.code.as_str())]
pub struct Broken(pub Refusal);

impl Broken {
    /// What a client is told of a body that ended with `error`. An error that the gateway didn't
    /// make is the connection's, so the body is incomplete.
    #[must_use]
    pub fn refusal(error: &BoxError) -> Refusal {
        error.downcast_ref::<Self>().map_or_else(incomplete, |broken| broken.0.clone())
    }
}

/// What became of a body, told after the call to the store has ended. All clones tell the same.
///
/// A body that fails cuts the connection to the store, so the caller sees an error of that
/// connection. The reason is here.
#[derive(Clone, Debug, Default)]
pub struct Failure(Arc<Told>);

#[derive(Debug, Default)]
struct Told {
    reason: OnceLock<Refusal>,
    passed: AtomicU64,
}

impl Failure {
    /// Why the body failed; nothing while it hasn't.
    #[must_use]
    pub fn reason(&self) -> Option<Refusal> {
        self.0.reason.get().cloned()
    }

    /// How many bytes of the object were handed on to the store, framing not counted.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.0.passed.load(Ordering::Relaxed)
    }

    /// The first reason stays.
    fn fail(&self, reason: Refusal) {
        let _ = self.0.reason.set(reason);
    }

    fn pass(&self, bytes: usize) {
        self.0.passed.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// What S3 says of a body that is shorter, longer, or framed otherwise than was announced.
fn incomplete() -> Refusal {
    Refusal::new(Code::IncompleteBody, "The request body terminated unexpectedly.")
}
