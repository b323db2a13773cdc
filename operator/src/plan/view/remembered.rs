//! State that passes over a claim leave for later passes, within one process.

use std::time::Duration;

use crate::api::BucketRecord;

use super::super::answer::Checked;
use super::super::target::Target;
use super::bucket::Drift;
use super::{Deeds, View};

/// Results of earlier passes over a claim in this process. The operator works correctly without
/// them.
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    /// Number of consecutive failed passes that are to be retried.
    pub setbacks: u32,
    /// Location at which the claim's bucket was missing when it was last looked at.
    pub missing_at: Option<Target>,
    /// Time left until an unanswered request that changes a bucket can no longer take effect.
    pub unanswered: Option<Duration>,
    /// True if a drift check of the claim's bucket is due.
    pub look_due: bool,
    /// Time until the claim's Secrets from an older version are completed. Claims take turns.
    /// `None` for now.
    pub complete_after: Option<Duration>,
    /// Buckets that a claim in deletion has released.
    pub let_go: Vec<LetGo>,
    /// For a claim in deletion: no credential exists up to this generation, according to live reads
    /// by name.
    pub revoked_through: u64,
    /// For a claim in deletion: number of deleted credentials that were not reported yet.
    pub revoked: u32,
    /// Time until the claim may be written again, if it is over its write limit.
    pub held_off: Option<Duration>,
}

/// A bucket that a claim has released: its record was deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct LetGo {
    /// Record of the released bucket.
    pub record: BucketRecord,
    /// True if the bucket is gone, as observed or caused by the pass that deleted the record.
    pub gone: bool,
}

impl View {
    /// Starts a pass with the results of earlier passes in this process.
    #[must_use]
    pub fn begin(self, remembered: Remembered) -> Self {
        let Remembered { setbacks, missing_at, unanswered, look_due, complete_after, held_off, .. } = remembered;
        let Remembered { let_go, revoked_through, revoked, .. } = remembered;
        let drift = Drift { due: look_due, checked: Checked::No, missing_at };
        let deeds = Deeds { let_go, absent_through: revoked_through, revoked, ..Deeds::default() };
        Self { setbacks, unanswered, complete_after, held_off, drift, deeds, ..self }
    }

    /// Returns the results for the next pass in this process.
    pub fn remembered(&self) -> Remembered {
        Remembered {
            setbacks: self.setbacks,
            missing_at: self.missing_at(),
            unanswered: self.unanswered,
            look_due: self.drift.due,
            // Turns are assigned again at the start of the next pass.
            complete_after: None,
            let_go: self.deeds.let_go.clone(),
            revoked_through: self.deeds.absent_through,
            revoked: self.deeds.revoked,
            // The write limit is also checked again by then.
            held_off: None,
        }
    }
}
