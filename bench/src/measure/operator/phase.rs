//! The phases of a measurement.

use clap::ValueEnum;
use serde::Serialize;

use crate::measure::figures::{self, Part};
use crate::measure::table;

/// Values of one turn.
pub(crate) type Figures = figures::Figures<Phase>;
/// Column of one command, or of the bare loop.
pub(crate) type Column = table::Column<Phase>;

/// A part of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Phase {
    /// Claims created at once, until the last is Bound.
    Create,
    /// No changes.
    Idle,
    /// SIGTERM, start, and one new claim.
    Restart,
    /// Buckets with objects are emptied while claims are created on the same store.
    Purge,
    /// The claims of `create` deleted at once, until the last is gone.
    Delete,
    /// A hanging store with claims, while claims are created on another one.
    Hung,
    /// A bare loop of the same writes and S3 calls, beside the same watches and clients.
    Ceiling,
}

impl Phase {
    /// All phases, in the order in which they are measured.
    pub(crate) const ALL: [Self; 7] =
        [Self::Create, Self::Idle, Self::Restart, Self::Purge, Self::Delete, Self::Hung, Self::Ceiling];

    const fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Idle => "idle",
            Self::Restart => "restart",
            Self::Purge => "purge",
            Self::Delete => "delete",
            Self::Hung => "hung",
            Self::Ceiling => "ceiling",
        }
    }
}

impl Part for Phase {
    fn all() -> &'static [Self] {
        &Self::ALL
    }

    fn name(self) -> &'static str {
        self.word()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_phases_are_measured_in_their_order() {
        let mut sorted = Phase::ALL;
        sorted.sort_unstable();
        assert_eq!(sorted, Phase::ALL);
        assert_eq!(Phase::ALL.len(), Phase::value_variants().len());
    }
}
