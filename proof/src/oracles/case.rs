//! A case: what an oracle is given to judge a run by.

use std::time::Duration;

use stowage_world::history::{Facts, History};

/// A run, as an oracle sees it.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// Everything that happened.
    pub history: &'a History,
    /// How all stands in the end.
    pub end: &'a Facts,
    /// What must be known of the run to judge it fairly.
    pub setting: &'a Setting,
    /// What the operator let be seen besides objects: logs, metrics.
    pub shown: &'a [Shown],
}

/// Text that the operator let be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Where, such as `the log`.
    pub place: String,
    /// All of it.
    pub text: String,
}

/// What must be known of a run to judge it fairly: some promises end where others' hands begin.
#[derive(Clone, Debug, Default)]
pub struct Setting {
    /// How many operators worked at once, at most.
    pub operators: u32,
    /// Whether operators elect the one that works.
    pub elects: bool,
    /// Whether more than the passes over claims read them: those over ObjectBucketClaims do.
    pub others_read: bool,
    /// Whether an operator serves some namespaces alone: what a backend tells counts the claims of
    /// those.
    pub serves_some: bool,
    /// How far the gateway may be behind the Secrets.
    pub gateway_lag: Duration,
    /// How much farther each of several gateways may be.
    pub further_lags: Vec<Duration>,
    /// Words that no tenant may read: keys, addresses and names of the installation.
    pub hidden: Vec<String>,
    /// Whether nothing was planned to go wrong, for the operator or a gateway.
    pub is_undisturbed: bool,
    /// Most that the operator may take out of a bucket before it reads the claim again.
    pub purge_slice: usize,
}
