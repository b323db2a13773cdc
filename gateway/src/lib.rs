//! An S3 gateway for tenants: verifies virtual credentials, authorises requests and forwards them
//! to stores.
//!
//! ```text
//! server  →  front  →  head, sigv4, decide  →  body, upstream  →  answer
//!                         registry (a cache of the cluster, filled by watches)
//! ```
//!
//! A request is parsed once, into one struct ([`head`]), and the request to the store is built from
//! that struct alone. Authorisation is a pure function ([`decide`]). Bodies are streamed
//! ([`body`]); only XML documents are buffered whole ([`document`], [`deletion`]). Replicas share
//! nothing but the usage of buckets with a limit ([`quota`]), by objects of the API server.

#![warn(clippy::too_many_lines)]

pub mod answer;
pub mod audit;
pub mod body;
mod cli;
mod clock;
pub mod cors;
pub mod decide;
pub mod deletion;
pub mod document;
pub mod form;
pub mod front;
pub mod head;
pub mod limits;
pub mod metrics;
pub mod quota;
pub mod refusal;
pub mod registry;
pub mod server;
pub mod sigv4;
pub mod upstream;
pub mod uri;
mod xml;

pub use cli::Cli;
