//! Explanation of why a claim is not Ready, for the `why` command.

use crate::api::Reason;

use super::remedy::remedies;
use super::stop::Stop;

/// Reason that a claim is not Ready, with its remedies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// Reason of `Ready=False`.
    pub reason: Reason,
    /// Message of the condition.
    pub message: String,
    /// Remedies. Each is sufficient by itself and completes the sentence "it goes on when …".
    pub remedies: Vec<String>,
}

impl Obstacle {
    pub(super) fn of(stop: &Stop) -> Self {
        Self { reason: stop.reason(), message: stop.message(), remedies: remedies(&stop.cause) }
    }
}
