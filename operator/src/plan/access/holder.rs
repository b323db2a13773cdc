//! `KeyHolder` for an access (spec §3.3, §8).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::api::{AccessCredential, AccessKeyId, AccessReason, AccessRecord, DamagedSecret, SecretContent, wire};

use super::super::cause::Foreign;
use super::super::credentials::{Handled, KeyHolder, KeyStep, KeyStop, Publisher};
use super::super::known::Secrets;
use super::super::secret::Stored;
use super::step::{AccessAct, AccessLook, AccessStep};
use super::view::{AccessView, Halt, Stop};

/// Maximum number of revoked keys to look up by name before the next key is created. More keys
/// exist at once only if somebody created them by hand.
const SEARCHED: u64 = 1000;

impl AccessView {
    /// Returns the keys with their generations, lowest first.
    pub(super) fn numbered_keys(&self) -> Vec<(u64, &Stored)> {
        let mut keys: Vec<_> = self.internal.all().filter_map(|key| Some((self.generation(key)?, key))).collect();
        keys.sort_unstable_by_key(|(number, _)| *number);
        keys
    }

    /// Returns true if the Secret of this name is a revoked key.
    pub(super) fn is_revoked_key(&self, name: &str) -> bool {
        self.keys().iter().any(|key| key.name() == name && self.is_revoked(key))
    }
}

/// Returns true if a Secret is a key of the access. A foreign Secret with such a name but without
/// role and UID is none: it opens nothing, and must not be written.
fn is_key(view: &AccessView, secret: &Stored) -> bool {
    let role = wire::Role::AccessCredential;
    wire::Role::of_internal(secret.name()) == Some(role)
        && (secret.label(wire::ROLE) == Some(role.as_str())
            || secret.text("access_uid") == Some(view.access.uid.as_str()))
}

impl KeyHolder for AccessView {
    type Step = AccessStep;
    type Stop = Stop;
    type Record = AccessRecord;
    type Key = AccessCredential;

    const REMOVABLE: &'static [&'static str] = &[];
    const REMOVABLE_OF_KEYS: &'static [&'static str] = &[];
    const REQUEST_IS_TOLD: bool = false;
    const LOST_KEY_HANDLES_REQUEST: bool = true;
    const FIRST_IS_TOLD: bool = false;

    fn handled(record: &AccessRecord) -> Handled<'_> {
        Handled {
            generation: record.generation,
            revoked_through: record.revoked_through,
            rotate_request: record.handled_rotate_request.as_ref(),
            revoke_request: record.handled_revoke_request.as_ref(),
        }
    }

    fn bumped(&self, record: &AccessRecord, generation: u64, handled_rotate_request: Option<String>) -> AccessRecord {
        AccessRecord { generation, handled_rotate_request, ..record.clone() }
    }

    fn revoked(&self, record: &AccessRecord, revoked_through: u64, lowest: u64) -> AccessRecord {
        AccessRecord {
            revoked_through,
            handled_revoke_request: self.access.revoke_request.clone(),
            lowest: record.lowest.max(lowest),
            ..record.clone()
        }
    }

    fn content(&self, record: &AccessRecord) -> SecretContent {
        record.content(&self.setting.operator_namespace)
    }

    fn read_key(record: &AccessRecord, key: &Stored) -> Result<AccessCredential, DamagedSecret> {
        AccessCredential::read(&key.0, &record.uid, record.generation)
    }

    fn rotate_request(&self) -> Option<&String> {
        self.access.rotate_request.as_ref()
    }

    fn revoke_request(&self) -> Option<&String> {
        self.access.revoke_request.as_ref()
    }

    fn highest_generation(&self) -> u64 {
        let told = self.access.status.rotation_generation.and_then(|it| u64::try_from(it).ok());
        let recorded = self.record().map(|(record, _)| record.generation);
        let keys = self.internal.all().filter_map(|key| self.labelled_generation(key));
        told.into_iter().chain(recorded).chain(keys).chain([self.highest_gone]).max().unwrap_or(0)
    }

    fn aimed_by_this_pass(&self) -> Option<u64> {
        self.aimed
    }

    fn secrets(&self) -> &Secrets {
        &self.internal
    }

    fn is_doubted(&self) -> bool {
        self.is_doubted
    }

    fn key_name(&self, generation: u64) -> String {
        AccessKeyId::of_access(&self.access.uid, generation).access_secret_name()
    }

    fn keys(&self) -> Vec<&Stored> {
        self.numbered_keys().into_iter().map(|(_, key)| key).collect()
    }

    /// Returns the generation from the label, or by name if the label was edited. The name is
    /// searched up to the highest known generation, because an access has few keys.
    fn generation(&self, key: &Stored) -> Option<u64> {
        let named = || is_key(self, key).then(|| self.proved_generation(key, self.highest_generation()))?;
        self.labelled_generation(key).or_else(named)
    }

    fn is_revoked(&self, key: &Stored) -> bool {
        let is_ended = |through: u64| self.generation(key).is_some_and(|generation| generation <= through);
        self.record().is_some_and(|(record, _)| is_ended(record.revoked_through))
    }

    fn require_live(&self) -> Result<(), Halt> {
        if self.is_live { Ok(()) } else { Err(AccessLook::Access.into()) }
    }

    /// An access has only one record, so no other record can have a higher generation.
    fn require_highest(&self, record: &AccessRecord) -> Result<(), Halt> {
        self.require_settled(record)
    }

    /// Reads the record if it is not current: another operator that continues the work writes the
    /// record first.
    fn require_settled(&self, record: &AccessRecord) -> Result<(), Halt> {
        let name = AccessRecord::name(&record.uid);
        self.read_unless(self.internal.is_current(&name), &name)
    }

    /// Looks every name up at once, because no access record is from an older version with fewer
    /// notes.
    fn require_revoked(&self, record: &AccessRecord) -> Result<(), Halt> {
        for generation in record.lowest.max(record.revoked_through.saturating_sub(SEARCHED))..=record.revoked_through {
            let name = self.key_name(generation);
            // A key found by a live read was deleted at the start of this walk and is kept by a
            // finalizer.
            if !self.internal.is_live(&name) {
                self.require_absent(&name)?;
            }
        }
        Ok(())
    }
}

impl Publisher for AccessView {
    fn uid(&self) -> &str {
        self.access.uid.as_str()
    }

    fn consumer_secrets(&self) -> &Secrets {
        &self.consumers
    }

    fn conditions_before(&self) -> &[Condition] {
        &self.before.conditions
    }

    fn id(key: &AccessCredential) -> &str {
        key.id.as_str()
    }

    fn require_live_key(&self, record: &AccessRecord, key: &AccessCredential) -> Result<(), Halt> {
        let name = key.id.access_secret_name();
        self.read_unless(self.is_live(&name), &name)?;
        self.require_settled(record)
    }
}

impl From<KeyStep> for AccessStep {
    fn from(step: KeyStep) -> Self {
        match step {
            KeyStep::Read(name) => AccessLook::Internal(name).into(),
            KeyStep::ReadConsumer(name) => AccessLook::Consumer(name).into(),
            KeyStep::CreateConsumer(content) => AccessAct::CreateConsumer(content).into(),
            KeyStep::Patch(patch) => AccessAct::Patch(patch).into(),
            KeyStep::Delete(secret) => AccessAct::Delete(secret).into(),
        }
    }
}

impl From<KeyStop> for Stop {
    fn from(stop: KeyStop) -> Self {
        let (reason, message) = match stop {
            KeyStop::Kept { secret, finalizers } => (
                AccessReason::DeletionBlocked,
                format!("Secret {secret} is kept by finalizers of others: {finalizers}"),
            ),
            KeyStop::Damaged(damage) => (AccessReason::CreationInconsistent, damage.to_string()),
            KeyStop::StampDamaged { secret } => {
                (AccessReason::CreationInconsistent, format!("the time in Secret {secret} can't be read"))
            }
            KeyStop::Conflict { secret, why } => {
                let why = match why {
                    Foreign::NotControlled => "exists and is not this access's",
                    Foreign::Immutable => "is immutable",
                    Foreign::OtherType => "has a type other than Opaque",
                };
                let way_out = "remove it or give writeConnectionSecretToRef another name";
                (AccessReason::SecretConflict, format!("Secret {secret} {why}; {way_out}"))
            }
        };
        Self::new(reason, message)
    }
}
