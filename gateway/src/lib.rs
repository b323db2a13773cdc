//! The S3 front that tenants talk to: verifies virtual credentials, authorises, and passes requests
//! on to stores.
//!
//! ```text
//! server  →  front  →  head, sigv4, decide  →  body, upstream  →  answer
//!                         registry (what the watches tell)
//! ```
//!
//! One request is parsed once, into one struct ([`head`]); what is asked of the store is built from
//! that struct alone. Who may do what is a pure function ([`decide`]). Bodies flow: nothing is
//! buffered whole ([`body`]), but documents ([`document`], [`deletion`]).

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
