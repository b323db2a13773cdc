//! The credential that the record aims at (spec §3.3).

use crate::api::{BucketRecord, Credential, CredentialFacts};

use super::aim;
use super::cause::SecretCause;
use super::halt::Halt;
use super::patch::{Change, SecretPatch, Trigger};
use super::place;
use super::secret::Stored;
use super::step::Act;
use super::stop::Stop;
use super::view::View;
use super::write::repair;

/// Data keys of an internal Secret that go when the quota they come from goes.
pub(super) const QUOTA_KEYS: [&str; 2] = ["quota_soft_bytes", "quota_hard_bytes"];

/// The credential of the record's generation. Created once, by the pass whose own write made it the
/// target; a target that is gone raises the target, so that no id is ever given a second secret.
pub(super) fn ensure_credential(
    view: &View,
    facts: &CredentialFacts,
    record: &BucketRecord,
    stored: &Stored,
) -> Result<Credential, Halt> {
    if let Some(secret) = view.credential(record.generation) {
        return keep(view, facts, record, stored, secret);
    }
    view.require_live_claim()?;
    let name = facts.access_key_id().secret_name();
    view.require_not_taken(&name)?;
    if view.aimed_by_this_pass() == Some(record.generation) {
        view.require_settled_if_in_doubt(record)?;
        aim::require_revoked(view, record)?;
        return Err(Act::Mint(facts.clone()).into());
    }
    view.require_absent(&name)?;
    view.require_settled(record)?;
    // The first read may have been of the server's past, and there would be two keys then.
    view.require_absent_twice(&name)?;
    Err(aim::raise_lost(view, record, stored))
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
        Err(_) if aim::is_requested(view, record) => Err(aim::raise(view, record, stored, Trigger::Request)),
        Err(damage) => Err(Stop::new(SecretCause::CredentialDamaged { why: damage.to_string() }).into()),
    }
}
