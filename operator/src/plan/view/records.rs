//! The records of a claim: mostly one, two while it moves from one bucket to another (spec §3.7).

use crate::api::wire;
use crate::api::{AccessKeyId, BucketClaimStatus, BucketRecord, Credential, Endpoint, PinnedBackend, RecordName};

use super::super::secret::Stored;
use super::super::target::Target;
use super::{StoredRecord, View};

impl View {
    /// Every record of this claim, by name, and the Secret that it was read from.
    pub fn records(&self) -> impl Iterator<Item = &StoredRecord> {
        self.internal.records().iter().filter(|(record, _)| record.uid == self.claim().uid)
    }

    /// The record of this name.
    pub(in super::super) fn record_named(&self, name: &RecordName) -> Option<&StoredRecord> {
        self.records().find(|(_, stored)| stored.name() == name.as_str())
    }

    /// The record that the claim is bound by, and the Secret that it was read from: of those with a
    /// key to their bucket the one that aims highest. Without any key, one on the backend that the
    /// spec names goes first.
    ///
    /// The generation alone won't do: a record that is held for a move aims higher from the start.
    /// Two that aim alike are of one bucket whose endpoint was edited: of these, one that is on its
    /// way out has been left.
    pub fn record(&self) -> Option<&StoredRecord> {
        let asked_for = self.claim().desired.as_ref().ok().map(|desired| desired.backend.as_str());
        self.records().max_by_key(|(record, stored)| {
            let bound = self.is_bound_by(record);
            let asked_for = !bound && Some(record.backend.as_str()) == asked_for;
            (bound, asked_for, record.generation, stored.kept_by().is_none())
        })
    }

    /// The bucket that the claim's record is about.
    pub fn bucket_of_record(&self) -> Option<Target> {
        self.record().map(|(record, _)| Target::of(record))
    }

    /// Whether there is a key to the record's bucket, or was one. That there are keys at all says
    /// nothing of the bucket: of a move whose first record is gone they are those to the bucket
    /// that was left. What is not the operator's own says nothing either: labels and owner
    /// references can be forged (spec §2).
    pub(in super::super) fn is_bound_by(&self, record: &BucketRecord) -> bool {
        let shown = |status: &BucketClaimStatus| {
            let at = |at: &PinnedBackend| {
                at.name == record.backend || Endpoint::parse(&at.endpoint).is_ok_and(|there| there == record.endpoint)
            };
            status.bucket_name.as_deref() == Some(record.bucket.as_str())
                && status.backend.as_ref().is_none_or(at)
                && status.access_key_id.as_deref() == Some(AccessKeyId::of(&record.uid, record.generation).as_str())
        };
        // One of the record's generation may be to the bucket of another record, which aimed at it
        // while this one was hidden.
        let another =
            |secret: &Stored| self.records().any(|(other, _)| !other.is_of_bucket_of(record) && secret.opens(other));
        record.settled
            || self.keys_to(record).next().is_some()
            || self.credential(record.generation).is_some_and(|secret| !another(secret))
            || shown(&self.claim().status)
    }

    /// Whether the claim was bound, and to this bucket.
    pub(super) fn is_bound_to(&self, at: &Target) -> bool {
        self.record().is_some_and(|(record, _)| self.is_bound_by(record) && at.is_of(record))
    }

    /// Whether the claim was bound once: a credential of this UID is known, be it from the cache,
    /// or a record says `settled` (spec §2).
    pub fn was_bound(&self) -> bool {
        self.credentials().next().is_some() || self.records().any(|(record, _)| record.settled)
    }

    /// The record, to be aimed at another generation. Where no key tells any more that the claim
    /// was bound by it, it notes so itself: the status does not know that number.
    pub(in super::super) fn keep_bound(&self, record: &BucketRecord) -> BucketRecord {
        let untold = self.keys_to(record).next().is_none() && self.is_bound_by(record);
        BucketRecord { settled: record.settled || untold, ..record.clone() }
    }

    /// The claim's credentials that name the record's bucket.
    pub(in super::super) fn keys_to(&self, record: &BucketRecord) -> impl Iterator<Item = &Stored> {
        self.credentials().filter(|secret| secret.opens(record))
    }

    /// The claim's credential at the record's target, if its Secret is there and whole.
    pub(in super::super) fn target_credential(&self, record: &BucketRecord) -> Option<Credential> {
        let stored = self.credential(record.generation)?;
        Credential::read(&stored.0, &record.uid, record.generation).ok()
    }

    /// The credential before the record's target that tenants have as long as the target is not
    /// published: that which this consumer Secret holds. It opens the record's bucket, and does not
    /// end by itself. One that is revoked works until its Secret is deleted.
    pub(in super::super) fn earlier_credential(&self, record: &BucketRecord, consumer: &Stored) -> Option<Credential> {
        let generation = self.published_generation(consumer).filter(|it| *it < record.generation)?;
        let stored = self
            .credential(generation)
            .filter(|secret| secret.opens(record) && secret.annotation(wire::EXPIRES_AT).is_none())?;
        Credential::read(&stored.0, &record.uid, generation).ok()
    }
}
