//! Facts about one bucket: the last one that the pass queried.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::api::{BucketRecord, wire};

use super::super::answer::{
    BackendSeen, BucketSeen, Checked, CreateAnswer, DeleteAnswer, OwnerSeen, PurgeEnd, VersioningSeen,
};
use super::super::target::Target;
use super::View;

/// Facts about the bucket that the pass queried last.
#[derive(Clone, Debug, Default)]
pub(super) struct BucketFacts {
    /// The bucket, or `None` if no bucket was queried yet.
    pub(super) at: Option<Target>,
    /// Result of the last look at it.
    pub(super) seen: Option<BucketSeen>,
    /// Account that owns the bucket.
    pub(super) owner: Option<OwnerSeen>,
    /// True if the bucket is empty.
    pub(super) empty: Option<bool>,
    /// Answer to CreateBucket.
    pub(super) created: Option<CreateAnswer>,
    /// True if the ownership tags are set, or the store does not support tagging.
    pub(super) tagged: bool,
    /// Versioning of the bucket, as this pass read or set it.
    pub(super) versioning: Option<VersioningSeen>,
    /// End of the last slice of emptying.
    pub(super) purge: Option<PurgeEnd>,
    /// Answer to DeleteBucket.
    pub(super) removed: Option<DeleteAnswer>,
}

/// Drift check of the bucket that the claim is bound to.
#[derive(Clone, Debug)]
pub(super) struct Drift {
    /// True if a check is due.
    pub(super) due: bool,
    /// Result of the check in this pass.
    pub(super) checked: Checked,
    /// Location at which the bucket was missing when it was last looked at.
    pub(super) missing_at: Option<Target>,
}

/// Returns true if the tags contain the UID of the record's claim.
pub(in super::super) fn names_claim_uid(tags: &BTreeMap<String, String>, record: &BucketRecord) -> bool {
    tags.get(wire::TAG_CLAIM_UID).map(String::as_str) == Some(record.uid.as_str())
}

impl View {
    /// Returns the last look at this bucket in this pass.
    pub(in super::super) fn bucket_seen(&self, at: &Target) -> Option<&BucketSeen> {
        self.bucket.seen.as_ref().filter(|_| self.asked_about(at))
    }

    /// Returns the last look at any bucket.
    pub fn last_look(&self) -> Option<&BucketSeen> {
        self.bucket.seen.as_ref()
    }

    /// Returns the account that owns the queried bucket.
    pub(in super::super) fn bucket_owner(&self) -> Option<OwnerSeen> {
        self.bucket.owner
    }

    /// Returns true if the queried bucket is empty.
    pub(in super::super) fn bucket_empty(&self) -> Option<bool> {
        self.bucket.empty
    }

    /// Returns the answer to CreateBucket.
    pub(in super::super) fn bucket_created(&self) -> Option<CreateAnswer> {
        self.bucket.created
    }

    /// Returns true if the tags of the bucket are set, or the store does not support tagging.
    pub(in super::super) fn bucket_tagged(&self) -> bool {
        self.bucket.tagged
    }

    /// Returns the versioning of this bucket, as this pass read or set it.
    pub(in super::super) fn versioning(&self, at: &Target) -> Option<VersioningSeen> {
        self.bucket.versioning.filter(|_| self.asked_about(at))
    }

    /// Returns the end of the last slice of emptying it.
    pub(in super::super) fn purge_end(&self) -> Option<&PurgeEnd> {
        self.bucket.purge.as_ref()
    }

    /// Returns the answer to DeleteBucket.
    pub(in super::super) fn bucket_removed(&self) -> Option<DeleteAnswer> {
        self.bucket.removed
    }

    /// Returns the result of the drift check in this pass.
    pub fn checked(&self) -> Checked {
        self.drift.checked
    }

    /// Returns true if a drift check of the claim's bucket is due.
    pub(in super::super) fn is_look_due(&self) -> bool {
        self.drift.due
    }

    /// Returns the location at which an earlier look missed the record's bucket.
    pub(in super::super) fn missed_at(&self, record: &BucketRecord) -> Option<&Target> {
        self.drift.missing_at.as_ref().filter(|missed| missed.is_of(record))
    }

    /// Returns the time for which an unanswered request that changes a bucket may still take
    /// effect.
    pub(in super::super) fn unanswered(&self) -> Option<Duration> {
        self.unanswered
    }

    /// Returns true if the facts are about this bucket, or there are none yet.
    pub(in super::super) fn asked_about(&self, at: &Target) -> bool {
        self.bucket.at.as_ref().is_none_or(|asked| asked == at)
    }

    /// Returns true if the facts are about the record's bucket, at any endpoint, or there are none
    /// yet.
    fn asked_about_bucket_of(&self, record: &BucketRecord) -> bool {
        self.bucket.at.as_ref().is_none_or(|asked| asked.is_of(record))
    }

    /// Drops the facts if they are about another bucket, and starts to collect facts about this
    /// one.
    pub(super) fn turn_to(&mut self, at: &Target) {
        if self.bucket.at.as_ref() != Some(at) {
            self.drift.missing_at = self.missing_at();
            self.bucket = BucketFacts { at: Some(at.clone()), ..BucketFacts::default() };
        }
    }

    /// Returns true if the bucket of a bound claim is missing, as seen by this pass or, without a
    /// look, by an earlier one. A bucket that reappears, or that is at another endpoint, counts as
    /// the claim's only if its tags prove it.
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

    /// Returns the location at which the bucket of a bound claim is missing, as seen by this pass
    /// or earlier ones.
    pub(super) fn missing_at(&self) -> Option<Target> {
        // The bucket of a claim that was never bound is not missing: another operator may be
        // creating it just now.
        let (record, _) = self.record().filter(|(record, _)| self.is_bound_by(record) && self.is_missing(record))?;
        let has_looked = self.bucket.seen.is_some() && self.asked_about_bucket_of(record);
        let asked = self.bucket.at.as_ref().filter(|_| has_looked);
        asked.or(self.drift.missing_at.as_ref()).cloned().or_else(|| Some(Target::of(record)))
    }

    /// Returns true if this pass saw that the bucket does not exist, or deleted it.
    pub(super) fn is_gone(&self, record: &BucketRecord) -> bool {
        let seen_absent = self.bucket.seen == Some(BucketSeen::Absent) && self.bucket.at == Some(Target::of(record));
        seen_absent || self.is_removed(record)
    }

    /// Returns true if DeleteBucket reported in this pass that the record's bucket is gone.
    pub(in super::super) fn is_removed(&self, record: &BucketRecord) -> bool {
        matches!(self.bucket.removed, Some(DeleteAnswer::Deleted | DeleteAnswer::Absent))
            && self.asked_about_bucket_of(record)
    }
}
