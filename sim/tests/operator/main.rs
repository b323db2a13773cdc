//! The production operator in the simulated world. One binary, because each links everything.

#![expect(clippy::print_stdout, reason = "counts and traces, shown with --nocapture and on failure")]

mod backends;
mod create;
mod deletion;
mod determinism;
mod edits;
mod endpoints;
mod faults;
mod matrix;
mod metrics;
mod moves;
mod neighbours;
mod orphans;
mod ownership;
mod removal;
mod rest;
mod rotation;
mod support;
mod trouble;
mod two;
mod wire;
