//! An access as a holder of keys.

use crate::api::{AccessReason, AccessRecord, SecretContent};

use super::super::credentials::{Handled, KeyHolder, Requests};
use super::super::patch::SecretPatch;
use super::super::secret::{SecretRef, Stored};
use super::super::view::Knowledge;
use super::step::{AccessAct, AccessLook, AccessStep};
use super::view::{AccessView, Halt, Stop};

/// So many names of revoked keys are looked at before the next is made: more live at once only if
/// somebody made them.
const SEARCHED: u64 = 1000;

/// Each function that a view has, too, is that one.
impl KeyHolder for AccessView {
    type Step = AccessStep;
    type Stop = Stop;
    type Record = AccessRecord;

    const REMOVABLE: &'static [&'static str] = &[];

    fn handled(record: &AccessRecord) -> Handled<'_> {
        Handled {
            generation: record.generation,
            revoked_through: record.revoked_through,
            requests: Requests {
                rotate: record.handled_rotate_request.as_ref(),
                revoke: record.handled_revoke_request.as_ref(),
            },
        }
    }

    fn bumped(&self, record: &AccessRecord, generation: u64, handled_rotate_request: Option<String>) -> AccessRecord {
        AccessRecord { generation, handled_rotate_request, ..record.clone() }
    }

    fn content(&self, record: &AccessRecord) -> SecretContent {
        record.content(&self.setting.operator_namespace)
    }

    fn requests(&self) -> Requests<'_> {
        Requests { rotate: self.access.rotate_request.as_ref(), revoke: self.access.revoke_request.as_ref() }
    }

    fn next_generation(&self) -> u64 {
        self.highest() + 1
    }

    fn aimed_by_this_pass(&self) -> Option<u64> {
        self.aimed
    }

    fn key(&self, generation: u64) -> Option<&Stored> {
        self.internal.present(&self.key_name(generation))
    }

    /// By their names where the labels were changed: an access has few keys.
    fn numbered_keys(&self) -> Vec<(u64, &Stored)> {
        self.keys()
    }

    fn revoked_keys(&self) -> Vec<&Stored> {
        let keys = self.keys().into_iter();
        keys.filter(|(generation, _)| self.is_revoked(*generation)).map(|(_, key)| key).collect()
    }

    fn is_live(&self, name: &str) -> bool {
        self.internal.is_live(name)
    }

    fn require_live(&self) -> Result<(), Halt> {
        Self::require_live(self)
    }

    /// An access has one record: none but this one can aim higher.
    fn require_highest(&self, _: &AccessRecord) -> Result<(), Halt> {
        Self::require_settled(self)
    }

    fn require_settled(&self, _: &AccessRecord) -> Result<(), Halt> {
        Self::require_settled(self)
    }

    fn require_settled_if_in_doubt(&self, _: &AccessRecord) -> Result<(), Halt> {
        Self::require_settled_if_in_doubt(self)
    }

    /// No record is of an older version, which tells less: every name can be looked for at once.
    fn require_revoked(&self, record: &AccessRecord) -> Result<(), Halt> {
        for generation in record.lowest.max(record.revoked_through.saturating_sub(SEARCHED))..=record.revoked_through {
            let name = self.key_name(generation);
            // One that a live read shows was deleted when this walk began, and is known to be kept.
            if !self.internal.is_live(&name) {
                Self::require_absent(self, &name)?;
            }
        }
        Ok(())
    }

    fn require_not_taken(&self, name: &str) -> Result<(), Halt> {
        let is_taken = self.internal.get(name) == Knowledge::Taken;
        if is_taken { Err(AccessLook::Internal(name.to_owned()).into()) } else { Ok(()) }
    }

    fn require_absent(&self, name: &str) -> Result<(), Halt> {
        Self::require_absent(self, name)
    }

    fn require_absent_twice(&self, name: &str) -> Result<(), Halt> {
        Self::require_absent_twice(self, name)
    }

    fn read_internal(name: String) -> AccessStep {
        AccessLook::Internal(name).into()
    }

    fn patch(patch: SecretPatch) -> AccessStep {
        AccessAct::Patch(patch).into()
    }

    fn delete(secret: SecretRef) -> AccessStep {
        AccessAct::Delete(secret).into()
    }

    fn kept(secret: &Stored, finalizers: String) -> Stop {
        let why = format!("Secret {} is kept by finalizers of others: {finalizers}", secret.name());
        Stop::new(AccessReason::DeletionBlocked, why)
    }
}
