//! The production operator in the simulated world. One binary, because each links everything.

#![expect(clippy::print_stdout, reason = "counts and traces, shown with --nocapture and on failure")]

mod backends;
mod create;
mod deletion;
mod determinism;
mod edits;
mod faults;
mod matrix;
mod metrics;
mod ownership;
mod removal;
mod rotation;
mod support;
mod trouble;
mod wire;
