//! The production operator in the simulated world. One binary, because each links everything.

#![expect(clippy::print_stdout, reason = "counts and traces, shown with --nocapture and on failure")]

mod accesses;
mod ahead;
mod answers;
mod backends;
mod by_name;
mod concurrency;
mod consent;
mod create;
mod deletion;
mod determinism;
mod edits;
mod elections;
mod endpoints;
mod events;
mod forged;
mod installations;
mod kept;
mod memory;
mod metrics;
mod moves;
mod neighbours;
mod orphans;
mod ownership;
mod places;
mod probes;
mod removal;
mod removal_blocked;
mod removal_faults;
mod requests;
mod rest;
mod revocation;
mod rotation;
mod rotation_limits;
mod secrecy;
mod status;
mod stops;
mod support;
mod trouble;
mod troubles;
mod turns;
mod two;
mod usage;
mod wakes;
mod wire;
