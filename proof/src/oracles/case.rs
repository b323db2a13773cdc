//! The input of an oracle.

use std::time::Duration;

use stowage_world::history::{Facts, History};

/// A run, as seen by an oracle.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// All events.
    pub history: &'a History,
    /// The final state.
    pub end: &'a Facts,
    /// Properties of the run that are necessary for a fair judgement.
    pub setting: &'a Setting,
    /// Texts that the operator exposed besides objects: logs, metrics.
    pub shown: &'a [Shown],
}

/// A text that the operator exposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Source of the text, such as `the log`.
    pub place: String,
    /// The whole text.
    pub text: String,
}

/// Properties of a run that are necessary for a fair judgement: some promises don't hold after
/// other actors' changes.
#[derive(Clone, Debug, Default)]
pub struct Setting {
    /// Highest number of operators that worked at once.
    pub operators: u32,
    /// True if operators elect a leader.
    pub elects: bool,
    /// True if passes over other kinds read claims too: those over ObjectBucketClaims do.
    pub others_read: bool,
    /// True if an operator serves only some namespaces: the status of a backend then counts only
    /// the claims of those.
    pub serves_some: bool,
    /// Time that the gateway may be behind the Secrets.
    pub gateway_lag: Duration,
    /// Additional lag of each of several gateways.
    pub further_lags: Vec<Duration>,
    /// Texts that no tenant may read: keys, addresses and names of the installation.
    pub hidden: Vec<String>,
    /// True if no fault was planned, neither for the operator nor for a gateway.
    pub is_undisturbed: bool,
    /// Maximum number of objects that the operator may remove from a bucket before it reads the
    /// claim again.
    pub purge_slice: usize,
}
