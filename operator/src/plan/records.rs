//! The records of a claim: mostly one, two while it moves from one bucket to another (spec §3.7).

use crate::api::{AccessKeyId, BucketClaimStatus, BucketRecord, Endpoint, PinnedBackend, RecordName, wire};

use super::answer::Stored;
use super::bind::target;
use super::bucket;
use super::credentials::published_generation;
use super::step::Target;
use super::view::View;

/// How far what a consumer Secret tells may be ahead of all that the operator keeps itself: a few rotations whose traces
/// somebody deleted. A tenant may write any number there, and a deletion asks for the key of every number up to the record's.
const AHEAD: u64 = 16;

impl View {
    /// Every record of this claim, by name, and the Secret that it was read from.
    pub fn records(&self) -> impl Iterator<Item = &(BucketRecord, Stored)> {
        self.own.records().iter().filter(|(record, _)| record.uid == self.claim.uid)
    }

    /// The record of this name.
    pub fn record_named(&self, name: &RecordName) -> Option<(BucketRecord, Stored)> {
        self.records().find(|(_, stored)| stored.name() == name.as_str()).cloned()
    }

    /// The record that the claim is bound by, and the Secret that it was read from: of those with a key to their
    /// bucket the one that aims highest. Without any key, one on the backend that the spec names goes first.
    ///
    /// The generation alone won't do: a record that is held for a move aims higher from the start. Two that aim alike are of one
    /// bucket whose endpoint was edited: of these, one that is on its way out has been left.
    pub fn record(&self) -> Option<(BucketRecord, Stored)> {
        let asked_for = self.claim.desired.as_ref().ok().map(|desired| desired.backend.as_str());
        let latest = self.records().max_by_key(|(record, stored)| {
            let bound = self.is_bound_by(record);
            let asked_for = !bound && Some(record.backend.as_str()) == asked_for;
            (bound, asked_for, record.generation, stored.kept_by().is_none())
        });
        latest.cloned()
    }

    /// Whether there is a key to the record's bucket, or was one. That there are keys at all says nothing of the bucket: of
    /// a move whose first record is gone they are those to the bucket that was left. What is not the operator's own says
    /// nothing either: labels and owner references can be forged (spec §2).
    pub(super) fn is_bound_by(&self, record: &BucketRecord) -> bool {
        let shown = |told: &BucketClaimStatus| {
            let at = |at: &PinnedBackend| {
                at.name == record.backend || Endpoint::parse(&at.endpoint).is_ok_and(|there| there == record.endpoint)
            };
            told.bucket_name.as_deref() == Some(record.bucket.as_str())
                && told.backend.as_ref().is_none_or(at)
                && told.access_key_id.as_deref() == Some(AccessKeyId::of(&record.uid, record.generation).as_str())
        };
        // One of the record's generation may be to the bucket of another record, which aimed at it while this one was hidden.
        let another =
            |secret: &Stored| self.records().any(|(other, _)| !other.is_of_bucket_of(record) && names(secret, other));
        record.settled
            || self.keys_to(record).next().is_some()
            || self.credential(record.generation).is_some_and(|secret| !another(secret))
            || shown(&self.claim.status)
    }

    /// The record, to be aimed at another generation. Where no key tells any more that the claim was bound by it, it notes so
    /// itself: the status does not know that number.
    pub(super) fn remembered(&self, record: &BucketRecord) -> BucketRecord {
        let untold = self.keys_to(record).next().is_none() && self.is_bound_by(record);
        BucketRecord { settled: record.settled || untold, ..record.clone() }
    }

    /// Whether what this pass knows of a bucket is about this one.
    pub(super) fn asked_about(&self, at: &Target) -> bool {
        self.bucket_at.as_ref().is_none_or(|asked| asked == at)
    }

    /// Whether it is about the record's bucket, at whatever endpoint its backend has now.
    pub(super) fn asked_about_bound(&self, record: &BucketRecord) -> bool {
        self.bucket_at.as_ref().is_none_or(|asked| leads_to(asked, record))
    }

    /// From now on, what this pass knows of a bucket is about this one.
    pub(super) fn turn_to(&mut self, at: &Target) {
        if self.bucket_at.as_ref() == Some(at) {
            return;
        }
        self.missing_at = missing_at(self);
        self.bucket_at = Some(at.clone());
        (self.bucket, self.bucket_empty, self.created) = (None, None, None);
        (self.tagged, self.versioning) = (false, None);
        (self.purge, self.removed) = (None, None);
    }

    /// The claim's credentials that name the record's bucket.
    pub(super) fn keys_to(&self, record: &BucketRecord) -> impl Iterator<Item = &Stored> {
        self.credentials().filter(|secret| names(secret, record))
    }

    /// The generation that a credential's label gives, if its name is the one that follows from it.
    pub(super) fn labelled_generation(&self, secret: &Stored) -> Option<u64> {
        let generation = secret.label(wire::ROTATION_GENERATION)?.parse().ok()?;
        (AccessKeyId::of(&self.claim.uid, generation).secret_name() == secret.name()).then_some(generation)
    }

    /// A generation above any that was aimed at or used, as far as this pass knows.
    pub(super) fn next_generation(&self) -> u64 {
        let ours = self.consumers.values().flatten().filter(|secret| secret.is_controlled_by(&self.claim.uid));
        let published = ours.filter_map(|secret| published_generation(self, secret));
        let credible = published.filter(|published| self.may_have_published(*published));
        credible.max().unwrap_or(0).max(self.known_generation()).saturating_add(1)
    }

    /// Whether this generation can have been in use, going by all but consumer Secrets.
    pub(super) fn may_have_published(&self, generation: u64) -> bool {
        generation <= self.known_generation().saturating_add(AHEAD)
    }

    /// The highest generation that credentials, records or the status tell of; 0 if none does.
    fn known_generation(&self) -> u64 {
        let used = self.credentials().filter_map(|secret| self.labelled_generation(secret));
        // The status is no memory, but a number that it shows was used.
        let shown = self.claim.status.told_generation();
        let aimed = self.records().map(|(record, _)| record.generation);
        used.chain(shown).chain(aimed).max().unwrap_or(0)
    }
}

/// Where the bucket of a claim that was bound is missing, as far as this pass and those before it saw.
pub fn missing_at(view: &View) -> Option<Target> {
    // One that was never bound is not missing: it may be another operator that makes it just now.
    let (record, _) =
        view.record().filter(|(record, _)| view.is_bound_by(record) && bucket::is_missing(view, record))?;
    let asked = view.bucket_at.as_ref().filter(|_| view.bucket.is_some() && view.asked_about_bound(&record));
    asked.or(view.missing_at.as_ref()).cloned().or_else(|| Some(target(&record)))
}

/// The bucket that the claim's record is about.
pub fn bucket_of(view: &View) -> Option<Target> {
    view.record().map(|(record, _)| target(&record))
}

/// Whether this is the record's bucket, at whatever endpoint its backend has now.
pub(super) fn leads_to(at: &Target, record: &BucketRecord) -> bool {
    at.backend == record.backend && at.bucket == record.bucket
}

/// Whether a credential is for the record's bucket.
pub(super) fn names(secret: &Stored, record: &BucketRecord) -> bool {
    secret.text("backend") == Some(record.backend.as_str())
        && secret.text("bucket_name") == Some(record.bucket.as_str())
}
