//! The consumer Secret, which publishes the current key to the tenant (spec §2, §3.7, §8).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::api::{Reason, SecretContent};

use super::super::cause::Foreign;
use super::super::known::{Knowledge, Secrets};
use super::super::patch::{Change, SecretPatch};
use super::super::secret::Stored;
use super::super::walk::Halt;
use super::holder::{HaltOf, KeyHolder, KeyStep, KeyStop};
use super::record::repair;

/// A key holder that publishes its key in its own namespace.
pub(in super::super) trait Publisher: KeyHolder {
    /// Returns the UID of the object.
    fn uid(&self) -> &str;

    /// Returns the known Secrets of its namespace.
    fn consumer_secrets(&self) -> &Secrets;

    /// Returns the conditions from before the pass.
    fn conditions_before(&self) -> &[Condition];

    /// Returns the access key id of a key.
    fn id(key: &Self::Key) -> &str;

    /// Requires that this pass created the key or read it live. Checked before a key is published.
    ///
    /// A cache may show a key that is long deleted, or one that is being retired while the Secret
    /// already has its successor. The Secret must never go back to an earlier key (spec §3.3).
    fn require_live_key(&self, record: &Self::Record, key: &Self::Key) -> Result<(), HaltOf<Self>>;
}

/// Ensures that the consumer Secret exists as `wanted`. A Secret is the object's only if the
/// object's UID controls it; any other Secret is left alone.
pub(in super::super) fn publish<H: Publisher>(
    holder: &H,
    record: &H::Record,
    key: &H::Key,
    wanted: SecretContent,
    removable: &[&str],
) -> Result<(), HaltOf<H>> {
    let read = || Halt::step(KeyStep::ReadConsumer(wanted.name.clone()));
    let known = holder.consumer_secrets().get(&wanted.name);
    if let Knowledge::Present(secret) = known {
        match foreign(secret, holder.uid()) {
            // The cached Secret may be long deleted.
            Some(_) if !holder.consumer_secrets().is_live(&wanted.name) => return Err(read()),
            Some(why) => return Err(Halt::stop(KeyStop::Conflict { secret: wanted.name, why })),
            None if secret.is_kept_in_part() => return Err(read()),
            None => {}
        }
        if secret.published_key() != Some(H::id(key)) {
            holder.require_live_key(record, key)?;
        }
        return repair(holder, SecretPatch::between(&secret.0, &wanted, removable, Change::Repair));
    }
    holder.require_live()?;
    holder.require_live_key(record, key)?;
    // Reads first if the last pass found a foreign Secret with this name, instead of another POST.
    let conflict = Reason::SecretConflict.to_string();
    let was_taken = || holder.conditions_before().iter().any(|condition| condition.reason == conflict);
    let is_looked_at = known == Knowledge::Taken || (known == Knowledge::Unknown && was_taken());
    Err(if is_looked_at { read() } else { Halt::step(KeyStep::CreateConsumer(Box::new(wanted))) })
}

/// Returns the reason that a Secret can't be the consumer Secret of the object with this UID.
fn foreign(secret: &Stored, uid: &str) -> Option<Foreign> {
    if !secret.is_controlled_by_uid(uid) {
        Some(Foreign::NotControlled)
    } else if secret.0.immutable == Some(true) {
        Some(Foreign::Immutable)
    } else if secret.0.type_.as_deref().is_some_and(|type_| type_ != "Opaque") {
        Some(Foreign::OtherType)
    } else {
        None
    }
}

/// Deletes the Secret with this name if the object controls it.
pub(in super::super) fn unpublish<H: Publisher>(holder: &H, name: &str) -> Result<(), HaltOf<H>> {
    let read = || Err(Halt::step(KeyStep::ReadConsumer(name.to_owned())));
    match holder.consumer_secrets().get(name) {
        Knowledge::Unknown | Knowledge::Taken => read(),
        Knowledge::Present(secret) if secret.is_controlled_by_uid(holder.uid()) => {
            holder.require_live()?;
            Err(Halt::step(KeyStep::Delete(secret.reference())))
        }
        Knowledge::Present(_) if !holder.consumer_secrets().is_live(name) => read(),
        Knowledge::Present(_) | Knowledge::Absent => Ok(()),
    }
}
