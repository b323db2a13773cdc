//! Measurements of operators and gateways, and compatibility tests with third-party software.
//!
//! [`Cli`] parses the command line. `measure` measures an operator on a control plane and a real
//! store, or a gateway in front of a null store. `clients` plays third-party S3 clients through the
//! gateway, a test suite of S3, and generated requests that no client would write. `operators`
//! plays third-party operators on the simulator's API server. `tls` creates the certificate of a
//! gateway that serves https. Everything runs in a [testbed](stowage_testbed).

mod cli;
mod clients;
mod measure;
mod operators;
mod tls;

pub use cli::Cli;
