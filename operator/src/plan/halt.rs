//! The types of [`walk`] for claims, and conversions into them, so that `?` ends a walk.

use super::step::{Act, Look, Step};
use super::stop::Stop;
use super::walk;

/// End of a complete walk over a claim.
pub(super) type Outcome = walk::Outcome<Stop>;

/// Reason that a walk over a claim halts: usually the next step.
pub(super) type Halt = walk::Halt<Step, Stop>;

impl From<Look> for Halt {
    fn from(look: Look) -> Self {
        Self::Step(Box::new(Step::Look(look)))
    }
}

impl From<Act> for Halt {
    fn from(act: Act) -> Self {
        Self::Step(Box::new(Step::Act(act)))
    }
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Self {
        Self::Stop(Box::new(stop))
    }
}
