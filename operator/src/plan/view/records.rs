//! Records of a claim: usually one, two while it moves between buckets (spec §3.7).

use crate::api::wire;
use crate::api::{AccessKeyId, BucketClaimStatus, BucketRecord, Credential, Endpoint, PinnedBackend, RecordName};

use super::super::secret::Stored;
use super::super::target::Target;
use super::{StoredRecord, View};

impl View {
    /// Returns every record of this claim by name, with the Secret that it was read from.
    pub fn records(&self) -> impl Iterator<Item = &StoredRecord> {
        self.internal.records().iter().filter(|(record, _)| record.uid == self.claim().uid)
    }

    /// Returns the record of this name.
    pub(in super::super) fn record_named(&self, name: &RecordName) -> Option<&StoredRecord> {
        self.records().find(|(_, stored)| stored.name() == name.as_str())
    }

    /// Returns the record that the claim is bound by, with the Secret that it was read from: among
    /// those with a key to their bucket, the one with the highest generation. If there is no key, a
    /// record for the backend in the spec is preferred.
    ///
    /// The generation alone is not enough, because the record of a move has a higher one from the
    /// start. Two records with the same generation are for one bucket whose endpoint was edited;
    /// the one being deleted has been left.
    pub fn record(&self) -> Option<&StoredRecord> {
        let asked_for = self.claim().desired.as_ref().ok().map(|desired| desired.backend.as_str());
        self.records().max_by_key(|(record, stored)| {
            let bound = self.is_bound_by(record);
            let asked_for = !bound && Some(record.backend.as_str()) == asked_for;
            (bound, asked_for, record.generation, stored.kept_by().is_none())
        })
    }

    /// Returns the bucket of the claim's record.
    pub fn bucket_of_record(&self) -> Option<Target> {
        self.record().map(|(record, _)| Target::of(record))
    }

    /// Returns true if a key to the record's bucket exists or existed.
    ///
    /// The existence of any key is not enough: if the first record of a move is lost, the keys are
    /// for the bucket that was left. Objects outside the operator namespace do not count either,
    /// because labels and owner references can be forged (spec §2).
    pub(in super::super) fn is_bound_by(&self, record: &BucketRecord) -> bool {
        let shown = |status: &BucketClaimStatus| {
            let at = |at: &PinnedBackend| {
                at.name == record.backend || Endpoint::parse(&at.endpoint).is_ok_and(|there| there == record.endpoint)
            };
            status.bucket_name.as_deref() == Some(record.bucket.as_str())
                && status.backend.as_ref().is_none_or(at)
                && status.access_key_id.as_deref() == Some(AccessKeyId::of(&record.uid, record.generation).as_str())
        };
        // A key of this generation may be for the bucket of another record, which was bumped to it
        // while this record was not visible.
        let another =
            |secret: &Stored| self.records().any(|(other, _)| !other.is_of_bucket_of(record) && secret.opens(other));
        record.settled
            || self.keys_to(record).next().is_some()
            || self.credential(record.generation).is_some_and(|secret| !another(secret))
            || shown(&self.claim().status)
    }

    /// Returns true if the claim was bound to this bucket.
    pub(super) fn is_bound_to(&self, at: &Target) -> bool {
        self.record().is_some_and(|(record, _)| self.is_bound_by(record) && at.is_of(record))
    }

    /// Returns true if the claim was ever bound: a credential with this UID is known, possibly
    /// cached, or a record says `settled` (spec §2).
    pub fn was_bound(&self) -> bool {
        self.credentials().next().is_some() || self.records().any(|(record, _)| record.settled)
    }

    /// Returns the record to be bumped. If no key shows any more that the claim was bound by it,
    /// the record notes that itself, because the status does not have the new generation.
    pub(in super::super) fn keep_bound(&self, record: &BucketRecord) -> BucketRecord {
        let untold = self.keys_to(record).next().is_none() && self.is_bound_by(record);
        BucketRecord { settled: record.settled || untold, ..record.clone() }
    }

    /// Returns the claim's credentials for the record's bucket.
    pub(in super::super) fn keys_to(&self, record: &BucketRecord) -> impl Iterator<Item = &Stored> {
        self.credentials().filter(|secret| secret.opens(record))
    }

    /// Returns the current credential of the record, if its Secret exists and is valid.
    pub(in super::super) fn target_credential(&self, record: &BucketRecord) -> Option<Credential> {
        let stored = self.credential(record.generation)?;
        Credential::read(&stored.0, &record.uid, record.generation).ok()
    }

    /// Returns the earlier credential that tenants have while the current one is not published: the
    /// one in this consumer Secret, if it opens the record's bucket and has no expiry. A revoked
    /// credential works until its Secret is deleted.
    pub(in super::super) fn earlier_credential(&self, record: &BucketRecord, consumer: &Stored) -> Option<Credential> {
        let generation = self.published_generation(consumer).filter(|it| *it < record.generation)?;
        let stored = self
            .credential(generation)
            .filter(|secret| secret.opens(record) && secret.annotation(wire::EXPIRES_AT).is_none())?;
        Credential::read(&stored.0, &record.uid, generation).ok()
    }
}
