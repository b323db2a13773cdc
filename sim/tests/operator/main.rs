//! The production operator in the simulated world. One binary, because each links everything.

#![expect(clippy::print_stdout, reason = "counts and traces, shown with --nocapture and on failure")]

mod backends;
mod concurrency;
mod create;
mod deletion;
mod determinism;
mod edits;
mod events;
mod faults;
mod memory;
mod metrics;
mod ownership;
mod policies;
mod probes;
mod removal;
mod requests;
mod rotation;
mod rotation_limits;
mod status;
mod support;
mod trouble;
mod troubles;
mod wakes;
mod wire;
