//! What operators and gateways cost, and how they do with what others have written.
//!
//! [`Cli`] reads what to do. `measure` measures an operator on a control plane and a real store, or
//! a gateway before a store that costs nothing. `clients` are S3 clients of others, which work
//! through the gateway, a suite of tests of S3, and generated requests that no client would write.
//! `operators` are those of others, which work on the simulator's API server. `tls` makes the
//! certificate of a gateway that serves https. Everything plays in a
//! [testbed](stowage_testbed).

mod cli;
mod clients;
mod measure;
mod operators;
mod tls;

pub use cli::Cli;
