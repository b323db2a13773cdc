//! The consumer Secret, which hands the current key out (spec §2, §3.7, §8).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::api::{Reason, SecretContent};

use super::super::cause::Foreign;
use super::super::known::{Knowledge, Secrets};
use super::super::patch::{Change, SecretPatch};
use super::super::secret::Stored;
use super::super::walk::Halt;
use super::holder::{HaltOf, KeyHolder, KeyStep, KeyStop};
use super::record::repair;

/// A holder that hands its key out in its own namespace.
pub(in super::super) trait Publisher: KeyHolder {
    /// UID of the object.
    fn uid(&self) -> &str;

    /// Knowledge of the Secrets in its namespace.
    fn consumer_secrets(&self) -> &Secrets;

    /// The conditions when the pass began.
    fn conditions_before(&self) -> &[Condition];

    /// The id of a key.
    fn id(key: &Self::Key) -> &str;

    /// Before a key is published: this pass made it or read it live. A cache may show one that is
    /// long gone, or one that is to end and not its successor, which the Secret may hold already:
    /// it never goes back (spec §3.3).
    fn require_live_key(&self, record: &Self::Record, key: &Self::Key) -> Result<(), HaltOf<Self>>;
}

/// The Secret of the name that the spec gives is there and as `wanted`. It is the object's only if
/// its UID controls it; a stranger's is left alone.
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
            // The caches may show one that is long gone.
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
    // Where the last pass met a stranger's Secret, look before asking again.
    let conflict = Reason::SecretConflict.to_string();
    let was_taken = || holder.conditions_before().iter().any(|condition| condition.reason == conflict);
    let is_looked_at = known == Knowledge::Taken || (known == Knowledge::Unknown && was_taken());
    Err(if is_looked_at { read() } else { Halt::step(KeyStep::CreateConsumer(Box::new(wanted))) })
}

/// Reason why a Secret can't be the one that the object of this UID hands out.
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

/// Removes the Secret of this name, if the object controls it.
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
