//! A claim as a holder of keys.

use crate::api::{BucketRecord, SecretContent};

use super::super::cause::SecretCause;
use super::super::credentials::{Handled, KeyHolder, Requests};
use super::super::halt::Halt;
use super::super::patch::SecretPatch;
use super::super::secret::{SecretRef, Stored};
use super::super::step::{Act, Look, Step};
use super::super::stop::Stop;
use super::View;

/// Each function that a view has, too, is that one.
impl KeyHolder for View {
    type Step = Step;
    type Stop = Stop;
    type Record = BucketRecord;

    const REMOVABLE: &'static [&'static str] = &BucketRecord::REMOVABLE;

    fn handled(record: &BucketRecord) -> Handled<'_> {
        Handled {
            generation: record.generation,
            revoked_through: record.revoked_through,
            requests: Requests {
                rotate: record.handled_rotate_request.as_ref(),
                revoke: record.handled_revoke_request.as_ref(),
            },
        }
    }

    /// A claim's record is also the memory of its bucket: it notes that the claim was bound by it.
    fn bumped(&self, record: &BucketRecord, generation: u64, handled_rotate_request: Option<String>) -> BucketRecord {
        BucketRecord { generation, handled_rotate_request, ..self.keep_bound(record) }
    }

    fn content(&self, record: &BucketRecord) -> SecretContent {
        record.content(&self.setting().operator_namespace)
    }

    fn requests(&self) -> Requests<'_> {
        let claim = self.claim();
        Requests { rotate: claim.rotate_request.as_ref(), revoke: claim.revoke_request.as_ref() }
    }

    fn next_generation(&self) -> u64 {
        Self::next_generation(self)
    }

    fn aimed_by_this_pass(&self) -> Option<u64> {
        Self::aimed_by_this_pass(self)
    }

    fn key(&self, generation: u64) -> Option<&Stored> {
        self.credential(generation)
    }

    /// By their labels alone: any number of Secrets may have the name of a credential, and a search
    /// for each one's generation costs as much as there were keys.
    fn numbered_keys(&self) -> Vec<(u64, &Stored)> {
        self.credentials().filter_map(|secret| Some((self.labelled_generation(secret)?, secret))).collect()
    }

    fn revoked_keys(&self) -> Vec<&Stored> {
        self.credentials().filter(|secret| self.is_revoked(secret)).collect()
    }

    fn is_live(&self, name: &str) -> bool {
        Self::is_live(self, name)
    }

    fn require_live(&self) -> Result<(), Halt> {
        self.require_live_claim()
    }

    /// A claim that moves has two records.
    fn require_highest(&self, record: &BucketRecord) -> Result<(), Halt> {
        self.require_wanted_record(&record.name())
    }

    fn require_settled(&self, record: &BucketRecord) -> Result<(), Halt> {
        Self::require_settled(self, record)
    }

    fn require_settled_if_in_doubt(&self, record: &BucketRecord) -> Result<(), Halt> {
        Self::require_settled_if_in_doubt(self, record)
    }

    fn require_revoked(&self, record: &BucketRecord) -> Result<(), Halt> {
        Self::require_revoked(self, record)
    }

    fn require_not_taken(&self, name: &str) -> Result<(), Halt> {
        Self::require_not_taken(self, name)
    }

    fn require_absent(&self, name: &str) -> Result<(), Halt> {
        Self::require_absent(self, name)
    }

    fn require_absent_twice(&self, name: &str) -> Result<(), Halt> {
        Self::require_absent_twice(self, name)
    }

    fn read_internal(name: String) -> Step {
        Step::Look(Look::Internal(name))
    }

    fn patch(patch: SecretPatch) -> Step {
        Step::Act(Act::Patch(patch))
    }

    fn delete(secret: SecretRef) -> Step {
        Step::Act(Act::Delete(secret))
    }

    fn kept(secret: &Stored, finalizers: String) -> Stop {
        Stop::new(SecretCause::Kept { secret: secret.name().to_owned(), finalizers })
    }
}
