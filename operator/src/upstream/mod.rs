//! The S3-compatible store behind a backend.
//!
//! It has the few operations that the operator needs. Each has a deadline, a limit of concurrent
//! calls and a circuit breaker, and an error never counts as absence (spec §3.5).

mod access;
mod bounded;
mod bucket;
mod caller;
mod circuit;
mod client;
mod connect;
mod content_md5;
mod error;
mod pages;
mod purge;
mod registry;
#[cfg(test)]
mod scripted;
mod silence;
mod slice;
mod whole;

pub use access::{Access, Limits};
pub use caller::Caller;
pub use client::Upstream;
pub use connect::{Connect, RustlsConnect};
pub use error::{Class, Flaw, UpstreamError};
pub use registry::{AccessError, Upstreams};
pub use silence::{Doubt, Silence};
pub use slice::Slice;
pub use store_tls::{ConnectError, Trust};
