//! The credential that the record aims at (spec §3.3).

use crate::api::{BucketRecord, Credential, CredentialFacts};

use super::cause::SecretCause;
use super::credentials::{Missing, is_rotation_requested, missing_key, repair};
use super::current_generation::{bump, bump_lost};
use super::halt::Halt;
use super::patch::{Change, SecretPatch, Trigger};
use super::place;
use super::secret::Stored;
use super::step::Act;
use super::stop::Stop;
use super::view::View;

/// Data keys of an internal Secret that go when the quota they come from goes.
pub(super) const QUOTA_KEYS: [&str; 2] = ["quota_soft_bytes", "quota_hard_bytes"];

/// The credential of the record's generation. Created once, by the pass whose own write made it the
/// target.
pub(super) fn ensure_credential(
    view: &View,
    facts: &CredentialFacts,
    record: &BucketRecord,
    stored: &Stored,
) -> Result<Credential, Halt> {
    if let Some(secret) = view.credential(record.generation) {
        return keep(view, facts, record, stored, secret);
    }
    Err(match missing_key(view, record, &facts.access_key_id().secret_name())? {
        Missing::Mint => Act::Mint(facts.clone()).into(),
        Missing::Lost => bump_lost(view, record, stored),
    })
}

/// The credential that is there, brought up to date.
fn keep(
    view: &View,
    facts: &CredentialFacts,
    record: &BucketRecord,
    stored: &Stored,
    secret: &Stored,
) -> Result<Credential, Halt> {
    match Credential::read(&secret.0, &record.uid, record.generation) {
        Ok(credential) => {
            let mut content = facts.content(&view.setting().operator_namespace, None);
            place::keep(view, secret, record, &mut content)?;
            repair(view, SecretPatch::between(&secret.0, &content, &QUOTA_KEYS, Change::Repair))?;
            Ok(credential)
        }
        Err(_) if is_rotation_requested(view, record) => Err(bump(view, record, stored, Trigger::Request)),
        Err(damage) => Err(Stop::new(SecretCause::CredentialDamaged { why: damage.to_string() }).into()),
    }
}
