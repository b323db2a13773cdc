//! What keeps a claim from being Ready, for whoever asks why.

use crate::api::Reason;

use super::remedy::remedies;
use super::stop::Stop;

/// What keeps a claim from being Ready, and what would change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// Reason of `Ready=False`.
    pub reason: Reason,
    /// Message of the condition.
    pub message: String,
    /// What would change it: each by itself, in words that complete "it goes on when …".
    pub remedies: Vec<String>,
}

impl Obstacle {
    pub(super) fn of(stop: &Stop) -> Self {
        Self { reason: stop.reason(), message: stop.message(), remedies: remedies(&stop.cause) }
    }
}
