//! Halts of a walk over an ObjectBucketClaim (spec §9).

use super::super::step::Then;
use super::super::walk;
use super::step::{ObcAct, ObcLook, ObcStep};

/// Reason that a walk halts, including the next step.
pub(super) type Halt = walk::Halt<ObcStep, Stop>;

/// Phase that a stop leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Pending,
    Bound,
    Failed,
}

impl Phase {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Bound => "Bound",
            Self::Failed => "Failed",
        }
    }
}

/// Reason that a claim is not as requested.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stop {
    pub(super) phase: Phase,
    /// Reason and message of the Event. `None` if the state resolves by itself.
    pub(super) word: Option<(String, String)>,
    pub(super) then: Then,
}

impl Stop {
    pub(super) fn new(phase: Phase, reason: &str, note: String) -> Self {
        Self { phase, word: Some((reason.to_owned(), note)), then: Then::AwaitChange }
    }

    /// Creates a stop that resolves by itself.
    pub(super) fn waiting() -> Self {
        Self { phase: Phase::Pending, word: None, then: Then::AwaitChange }
    }
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Self {
        Self::Stop(Box::new(stop))
    }
}

impl From<ObcLook> for Halt {
    fn from(look: ObcLook) -> Self {
        Self::Step(Box::new(look.into()))
    }
}

impl From<ObcAct> for Halt {
    fn from(act: ObcAct) -> Self {
        Self::Step(Box::new(act.into()))
    }
}
