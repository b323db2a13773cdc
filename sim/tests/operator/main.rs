//! The production operator in the simulated world. One binary, because each links everything.

mod backends;
mod create;
mod deletion;
mod faults;
mod ownership;
mod support;
mod trouble;
mod wire;
