//! `KeyHolder` for a claim.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::api::{AccessKeyId, BucketRecord, Credential, DamagedSecret, SecretContent, wire};

use super::super::cause::SecretCause;
use super::super::credentials::{Handled, KeyHolder, KeyStep, KeyStop, Publisher};
use super::super::halt::Halt;
use super::super::known::Secrets;
use super::super::secret::Stored;
use super::super::step::{Act, Look, Step};
use super::super::stop::Stop;
use super::{Freshness, View};

impl KeyHolder for View {
    type Step = Step;
    type Stop = Stop;
    type Record = BucketRecord;
    type Key = Credential;

    const REMOVABLE: &'static [&'static str] = &BucketRecord::REMOVABLE;
    const REMOVABLE_OF_KEYS: &'static [&'static str] = &["quota_soft_bytes", "quota_hard_bytes"];
    const REQUEST_IS_TOLD: bool = true;
    const LOST_KEY_HANDLES_REQUEST: bool = false;
    const FIRST_IS_TOLD: bool = true;

    fn handled(record: &BucketRecord) -> Handled<'_> {
        Handled {
            generation: record.generation,
            revoked_through: record.revoked_through,
            rotate_request: record.handled_rotate_request.as_ref(),
            revoke_request: record.handled_revoke_request.as_ref(),
        }
    }

    /// Also notes in the record that the claim was bound by it, because the record is the memory of
    /// its bucket.
    fn bumped(&self, record: &BucketRecord, generation: u64, handled_rotate_request: Option<String>) -> BucketRecord {
        BucketRecord { generation, handled_rotate_request, ..self.keep_bound(record) }
    }

    /// Also notes that the claim was bound, because nothing else shows that once the keys are gone.
    fn revoked(&self, record: &BucketRecord, revoked_through: u64, lowest: u64) -> BucketRecord {
        BucketRecord {
            revoked_through,
            handled_revoke_request: self.claim().revoke_request.clone(),
            lowest: record.lowest.map(|known| known.max(lowest)),
            settled: record.settled || self.is_bound_by(record),
            ..record.clone()
        }
    }

    fn content(&self, record: &BucketRecord) -> SecretContent {
        record.content(&self.setting().operator_namespace)
    }

    fn read_key(record: &BucketRecord, key: &Stored) -> Result<Credential, DamagedSecret> {
        Credential::read(&key.0, &record.uid, record.generation)
    }

    fn rotate_request(&self) -> Option<&String> {
        self.claim().rotate_request.as_ref()
    }

    fn revoke_request(&self) -> Option<&String> {
        self.claim().revoke_request.as_ref()
    }

    fn highest_generation(&self) -> u64 {
        let used = self.credentials().filter_map(|secret| self.labelled_generation(secret));
        // The status is not authoritative, but a number that it shows was used.
        let shown = self.claim().status.shown_generation();
        let targets = self.records().map(|(record, _)| record.generation);
        used.chain(shown).chain(targets).max().unwrap_or(0)
    }

    fn aimed_by_this_pass(&self) -> Option<u64> {
        self.deeds.aimed_by_this_pass
    }

    fn secrets(&self) -> &Secrets {
        self.internal.known()
    }

    fn is_doubted(&self) -> bool {
        self.internal.is_doubted()
    }

    fn key_name(&self, generation: u64) -> String {
        AccessKeyId::of(&self.claim().uid, generation).secret_name()
    }

    fn keys(&self) -> Vec<&Stored> {
        self.credentials().collect()
    }

    /// Returns the generation from the label only. A claim can have any number of Secrets with the
    /// name of a credential, and a search for each one's generation would cost as much as there
    /// were keys.
    fn generation(&self, key: &Stored) -> Option<u64> {
        self.labelled_generation(key)
    }

    /// Returns true if one of the claim's records revokes the key.
    fn is_revoked(&self, key: &Stored) -> bool {
        let through = self.records().map(|(record, _)| record.revoked_through).max().unwrap_or(0);
        through > 0 && self.proved_generation(key, through).is_some_and(|generation| generation <= through)
    }

    fn require_live(&self) -> Result<(), Halt> {
        if self.claim.freshness >= Freshness::Live { Ok(()) } else { Err(Look::Claim.into()) }
    }

    /// A claim that moves has two records.
    fn require_highest(&self, record: &BucketRecord) -> Result<(), Halt> {
        self.require_wanted_record(&record.name())
    }

    /// Reads the record if it is not current. Another operator that bumps the generation or
    /// acquires a bucket writes the record first, so a fresh record proves that none did. If the
    /// record is not complete, the claim's internal Secrets are listed as well.
    fn require_settled(&self, record: &BucketRecord) -> Result<(), Halt> {
        let name = record.name().to_string();
        self.read_unless(self.secrets().is_current(&name), &name)?;
        if record.tells_all() { Ok(()) } else { self.require_list() }
    }

    /// Keys that the view knows were deleted at the start of the walk.
    fn require_revoked(&self, record: &BucketRecord) -> Result<(), Halt> {
        if record.revoked_through < record.lowest_generation() {
            return Ok(());
        }
        if !record.tells_all() {
            self.require_list()?;
        }
        match self.unread_below(record.revoked_through.saturating_add(1)) {
            Some((_, name)) => Err(Look::Internal(name).into()),
            None => Ok(()),
        }
    }
}

impl Publisher for View {
    fn uid(&self) -> &str {
        self.claim().uid.as_str()
    }

    fn consumer_secrets(&self) -> &Secrets {
        &self.consumers
    }

    fn conditions_before(&self) -> &[Condition] {
        &self.status_before().conditions
    }

    fn id(key: &Credential) -> &str {
        key.id.as_str()
    }

    /// A key with an expiry usually has a successor, so the record must be current for it.
    fn require_live_key(&self, record: &BucketRecord, key: &Credential) -> Result<(), Halt> {
        let name = key.id.secret_name();
        self.read_unless(self.is_live(&name), &name)?;
        let is_to_end = self.own(&name).is_some_and(|secret| secret.annotation(wire::EXPIRES_AT).is_some());
        if is_to_end { self.require_settled(record) } else { self.require_settled_if_in_doubt(record) }
    }
}

impl From<KeyStep> for Step {
    fn from(step: KeyStep) -> Self {
        match step {
            KeyStep::Read(name) => Self::Look(Look::Internal(name)),
            KeyStep::ReadConsumer(name) => Self::Look(Look::Consumer(name)),
            KeyStep::CreateConsumer(content) => Self::Act(Act::CreateConsumer(content)),
            KeyStep::Patch(patch) => Self::Act(Act::Patch(patch)),
            KeyStep::Delete(secret) => Self::Act(Act::Delete(secret)),
        }
    }
}

impl From<KeyStop> for Stop {
    fn from(stop: KeyStop) -> Self {
        Self::new(match stop {
            KeyStop::Kept { secret, finalizers } => SecretCause::Kept { secret, finalizers },
            KeyStop::Damaged(damage) => SecretCause::CredentialDamaged { why: damage.to_string() },
            KeyStop::StampDamaged { secret } => SecretCause::StampDamaged { secret },
            KeyStop::Conflict { secret, why } => SecretCause::Conflict { secret, why },
        })
    }
}
