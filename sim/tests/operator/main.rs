//! The production operator in the simulated world. One binary, because each links everything.

mod backends;
mod create;
mod deletion;
mod determinism;
mod faults;
mod ownership;
mod support;
mod trouble;
mod wire;
