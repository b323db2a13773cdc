//! What passes over a claim leave each other, within one process.

use std::time::Duration;

use crate::api::BucketRecord;

use super::super::answer::Checked;
use super::super::target::Target;
use super::bucket::Drift;
use super::{Deeds, View};

/// What earlier passes of this process saw of a claim, and what a pass leaves for the next: nothing
/// that could not be done without.
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    /// Passes in a row that failed and are to be tried again.
    pub setbacks: u32,
    /// Where the claim's bucket was missing when it was last looked at.
    pub missing_at: Option<Target>,
    /// A call that changes a bucket got no answer, and may still happen for this long.
    pub unanswered: Option<Duration>,
    /// A drift check of the claim's bucket is due.
    pub look_due: bool,
    /// How long it is until the claim's Secrets that an older version made are to be completed:
    /// claims take turns. `None` = now.
    pub complete_after: Option<Duration>,
    /// Buckets that a claim which goes has let go of.
    pub let_go: Vec<LetGo>,
    /// Of a claim that goes: up to this generation no name of a credential is taken, as live reads
    /// by name showed.
    pub revoked_through: u64,
    /// Credentials of a claim that goes that were deleted, and not told of.
    pub revoked: u32,
    /// Time until the claim may be written about again: it is over its pace.
    pub held_off: Option<Duration>,
}

/// A bucket that a claim has let go of: its record was removed.
#[derive(Clone, Debug, PartialEq)]
pub struct LetGo {
    /// Its record.
    pub record: BucketRecord,
    /// It is gone, as the pass that removed the record saw or saw to.
    pub gone: bool,
}

impl View {
    /// A pass begins, which knows what earlier passes of this process saw.
    #[must_use]
    pub fn begin(self, remembered: Remembered) -> Self {
        let Remembered { setbacks, missing_at, unanswered, look_due, complete_after, held_off, .. } = remembered;
        let Remembered { let_go, revoked_through, revoked, .. } = remembered;
        let drift = Drift { due: look_due, checked: Checked::No, missing_at };
        let deeds = Deeds { let_go, absent_through: revoked_through, revoked, ..Deeds::default() };
        Self { setbacks, unanswered, complete_after, held_off, drift, deeds, ..self }
    }

    /// What the next pass of this process should know of the claim.
    pub fn remembered(&self) -> Remembered {
        Remembered {
            setbacks: self.setbacks,
            missing_at: self.missing_at(),
            unanswered: self.unanswered,
            look_due: self.drift.due,
            // Whose turn it is next is found out when the next pass begins.
            complete_after: None,
            let_go: self.deeds.let_go.clone(),
            revoked_through: self.deeds.absent_through,
            revoked: self.deeds.revoked,
            // Nor how much has been written by then.
            held_off: None,
        }
    }
}
