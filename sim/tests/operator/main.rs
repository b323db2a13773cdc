//! The production operator in the simulated world. One binary, because each links everything.

#![expect(clippy::print_stdout, reason = "counts and traces, shown with --nocapture and on failure")]

mod backends;
mod create;
mod deletion;
mod determinism;
mod edits;
mod events;
mod faults;
mod ownership;
mod removal;
mod rotation;
mod status;
mod support;
mod trouble;
mod troubles;
mod wire;
