//! What a pass knows of one bucket: the one that it asked about last.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::api::{BucketRecord, wire};

use super::super::answer::{
    BackendSeen, BucketSeen, Checked, CreateAnswer, DeleteAnswer, OwnerSeen, PurgeEnd, VersioningSeen,
};
use super::super::target::Target;
use super::View;

/// What a pass knows of the bucket that it asked about last.
#[derive(Clone, Debug, Default)]
pub(super) struct BucketFacts {
    /// Which one; `None` = none yet.
    pub(super) at: Option<Target>,
    /// The last look at it.
    pub(super) seen: Option<BucketSeen>,
    /// Whose account it is of.
    pub(super) owner: Option<OwnerSeen>,
    /// Whether it is empty.
    pub(super) empty: Option<bool>,
    /// What CreateBucket answered.
    pub(super) created: Option<CreateAnswer>,
    /// The ownership tags were put, or the store has none.
    pub(super) tagged: bool,
    /// Its versioning, as this pass read or set it.
    pub(super) versioning: Option<VersioningSeen>,
    /// How the last slice of emptying ended.
    pub(super) purge: Option<PurgeEnd>,
    /// What DeleteBucket answered.
    pub(super) removed: Option<DeleteAnswer>,
}

/// The drift check of the bucket that the claim is bound to.
#[derive(Clone, Debug)]
pub(super) struct Drift {
    /// It is due.
    pub(super) due: bool,
    /// What came of it in this pass.
    pub(super) checked: Checked,
    /// Where the bucket was missing when it was last looked at.
    pub(super) missing_at: Option<Target>,
}

/// Whether tags say that the bucket is this claim's.
pub(in super::super) fn names_claim_uid(tags: &BTreeMap<String, String>, record: &BucketRecord) -> bool {
    tags.get(wire::TAG_CLAIM_UID).map(String::as_str) == Some(record.uid.as_str())
}

impl View {
    /// The last look at this bucket in this pass.
    pub(in super::super) fn bucket_seen(&self, at: &Target) -> Option<&BucketSeen> {
        self.bucket.seen.as_ref().filter(|_| self.asked_about(at))
    }

    /// The last look at any bucket.
    pub fn last_look(&self) -> Option<&BucketSeen> {
        self.bucket.seen.as_ref()
    }

    /// Whose account the bucket asked about is of.
    pub(in super::super) fn bucket_owner(&self) -> Option<OwnerSeen> {
        self.bucket.owner
    }

    /// Whether the bucket asked about is empty.
    pub(in super::super) fn bucket_empty(&self) -> Option<bool> {
        self.bucket.empty
    }

    /// What CreateBucket answered of it.
    pub(in super::super) fn bucket_created(&self) -> Option<CreateAnswer> {
        self.bucket.created
    }

    /// Whether its tags are put, or the store has none.
    pub(in super::super) fn bucket_tagged(&self) -> bool {
        self.bucket.tagged
    }

    /// The versioning of this bucket, as this pass read or set it.
    pub(in super::super) fn versioning(&self, at: &Target) -> Option<VersioningSeen> {
        self.bucket.versioning.filter(|_| self.asked_about(at))
    }

    /// How the last slice of emptying it ended.
    pub(in super::super) fn purge_end(&self) -> Option<&PurgeEnd> {
        self.bucket.purge.as_ref()
    }

    /// What DeleteBucket answered of it.
    pub(in super::super) fn bucket_removed(&self) -> Option<DeleteAnswer> {
        self.bucket.removed
    }

    /// What came of the drift check in this pass.
    pub fn checked(&self) -> Checked {
        self.drift.checked
    }

    /// Whether a drift check of the claim's bucket is due.
    pub(in super::super) fn is_look_due(&self) -> bool {
        self.drift.due
    }

    /// Where an earlier look missed the record's bucket.
    pub(in super::super) fn missed_at(&self, record: &BucketRecord) -> Option<&Target> {
        self.drift.missing_at.as_ref().filter(|missed| missed.is_of(record))
    }

    /// How long a call that changes a bucket, and got no answer, may still happen.
    pub(in super::super) fn unanswered(&self) -> Option<Duration> {
        self.unanswered
    }

    /// Whether what this pass knows of a bucket is about this one.
    pub(in super::super) fn asked_about(&self, at: &Target) -> bool {
        self.bucket.at.as_ref().is_none_or(|asked| asked == at)
    }

    /// Whether it is about the record's bucket, at whatever endpoint its backend has now.
    fn asked_about_bucket_of(&self, record: &BucketRecord) -> bool {
        self.bucket.at.as_ref().is_none_or(|asked| asked.is_of(record))
    }

    /// From now on, what this pass knows of a bucket is about this one.
    pub(super) fn turn_to(&mut self, at: &Target) {
        if self.bucket.at.as_ref() != Some(at) {
            self.drift.missing_at = self.missing_at();
            self.bucket = BucketFacts { at: Some(at.clone()), ..BucketFacts::default() };
        }
    }

    /// Whether the bucket of a claim that was bound is missing: seen in this pass or, without a
    /// look, in an earlier one. One that is back, or at another endpoint, counts as the claim's
    /// only if its tags say so.
    pub(in super::super) fn is_missing(&self, record: &BucketRecord) -> bool {
        let points_to = match self.backends.get(&record.backend) {
            Some(BackendSeen::Present { backend, .. }) => Some(&backend.endpoint),
            Some(BackendSeen::Missing | BackendSeen::Invalid(_)) | None => None,
        };
        let missed = self.missed_at(record);
        let was_missing = missed.is_some_and(|missed| points_to.is_none_or(|now| *now == missed.endpoint));
        let moved = self.bucket.at.as_ref().is_some_and(|at| at.endpoint != record.endpoint);
        match self.bucket.seen.as_ref().filter(|_| self.asked_about_bucket_of(record)) {
            Some(BucketSeen::Absent) => true,
            Some(BucketSeen::Present(Some(tags))) => {
                (moved || (was_missing && !record.adopted)) && !names_claim_uid(tags, record)
            }
            Some(BucketSeen::Present(None)) => moved,
            Some(BucketSeen::Forbidden) => moved || was_missing,
            None => was_missing,
        }
    }

    /// Where the bucket of a claim that was bound is missing, as far as this pass and those before
    /// it saw.
    pub(super) fn missing_at(&self) -> Option<Target> {
        // One that was never bound is not missing: it may be another operator that makes it just
        // now.
        let (record, _) = self.record().filter(|(record, _)| self.is_bound_by(record) && self.is_missing(record))?;
        let has_looked = self.bucket.seen.is_some() && self.asked_about_bucket_of(record);
        let asked = self.bucket.at.as_ref().filter(|_| has_looked);
        asked.or(self.drift.missing_at.as_ref()).cloned().or_else(|| Some(Target::of(record)))
    }

    /// Whether this pass saw that there is no such bucket, or deleted it.
    pub(super) fn is_gone(&self, record: &BucketRecord) -> bool {
        let seen_absent = self.bucket.seen == Some(BucketSeen::Absent) && self.bucket.at == Some(Target::of(record));
        seen_absent || self.is_removed(record)
    }

    /// Whether DeleteBucket said in this pass that the record's bucket is gone.
    pub(in super::super) fn is_removed(&self, record: &BucketRecord) -> bool {
        matches!(self.bucket.removed, Some(DeleteAnswer::Deleted | DeleteAnswer::Absent))
            && self.asked_about_bucket_of(record)
    }
}
