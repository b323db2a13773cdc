//! The production operator in the simulated world. One binary, because each links everything.

#![expect(clippy::print_stdout, reason = "counts and traces, shown with --nocapture and on failure")]

mod create;
mod faults;
mod ownership;
mod support;
