//! Oracles: what the operator promises (I1 … E3 of the promises below), judged from a history and an end.
//!
//! Pure functions over plain data. An oracle knows the contract and nothing of how the operator keeps it, so that it
//! can be wrong neither in the same way nor for the same reason.

mod promise;

use std::time::Duration;

use crate::effects::Fault;
use crate::history::{Facts, History};

pub use promise::Promise;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which one.
    pub promise: Promise,
    /// What was seen, in one sentence with names and times; never a secret key.
    pub message: String,
    /// Index of the event in the history at which it shows; `None` for what only the end shows.
    pub event: Option<usize>,
}

/// A run, as an oracle sees it.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// Everything that happened.
    pub history: &'a History,
    /// How all stands in the end.
    pub end: &'a Facts,
    /// What must be known of the run to judge it fairly.
    pub setting: &'a Setting,
}

/// What must be known of a run to judge it fairly: some promises end where others' hands begin.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The faults of the plan that met a call.
    pub faults: Vec<Fault>,
    /// How many operators ran at once, at most.
    pub operators: u32,
    /// How far the gateway may be behind the Secrets.
    pub gateway_lag: Duration,
    /// How far the consumer Secrets that tenants read may be behind, plus how long they take to go over to a new key.
    pub patience_of_tenants: Duration,
}

/// Judges a run by every oracle, in the order of their promises.
pub fn judge(case: &Case<'_>) -> Vec<Violation> {
    let _ = case;
    Vec::new()
}
