//! How a walk over an ObjectBucketClaim ends before its end (spec §9).

use super::super::step::Then;
use super::step::{ObcAct, ObcLook, ObcStep};

/// How a walk ends that doesn't come to its end.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Halt {
    /// There is something to do first.
    Do(Box<ObcStep>),
    /// It can't go on.
    Stop(Stop),
    /// It is another provisioner's, or nobody's.
    NotOurs,
}

/// The phase that a stop comes to.
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

/// Why a claim is not as it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stop {
    pub(super) phase: Phase,
    /// What is told, and how; nothing where it will be over by itself.
    pub(super) word: Option<(String, String)>,
    pub(super) then: Then,
}

impl Stop {
    pub(super) fn new(phase: Phase, reason: &str, note: String) -> Self {
        Self { phase, word: Some((reason.to_owned(), note)), then: Then::AwaitChange }
    }

    /// It will be over by itself.
    pub(super) fn waiting() -> Self {
        Self { phase: Phase::Pending, word: None, then: Then::AwaitChange }
    }
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl From<ObcLook> for Halt {
    fn from(look: ObcLook) -> Self {
        Self::Do(Box::new(look.into()))
    }
}

impl From<ObcAct> for Halt {
    fn from(act: ObcAct) -> Self {
        Self::Do(Box::new(act.into()))
    }
}
