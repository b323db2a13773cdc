//! The Secret that the pods of an access read (spec §8).

use crate::api::{AccessConsumer, AccessCredential, AccessReason, AccessScope, BucketName, Shaped, wire};

use super::super::consumer::foreign;
use super::super::credentials::repair;
use super::super::patch::{Change, SecretPatch};
use super::super::secret::Stored;
use super::super::view::Knowledge;
use super::step::{AccessAct, AccessLook};
use super::view::{AccessView, Halt, Stop};

/// The Secret of the name that the spec gives.
pub(super) fn ensure(view: &AccessView, credential: &AccessCredential, scopes: &[AccessScope]) -> Result<(), Halt> {
    let name = &view.access.consumer_secret;
    let buckets: Vec<BucketName> = scopes.iter().map(|scope| scope.bucket.clone()).collect();
    let (access, uid, gateway) = (&view.access.at, &view.access.uid, &view.setting.gateway);
    let shape = view.access.shape.as_ref();
    let shape = shape.map_err(|error| Stop::new(AccessReason::SpecInvalid, error.to_string()))?;
    // Of a long template the caches have a digest.
    let Some(shape) = shape else { return Err(AccessLook::Access.into()) };
    let shaped = Shaped { publishing: &view.setting.publishing, shape };
    if let Some(key) = shape.forbidden(&view.setting.publishing.metadata_prefixes) {
        let why = format!("this operator lets spec.secretTemplate write no {key} (--secret-metadata-prefix)");
        return Err(Stop::new(AccessReason::SpecInvalid, why).into());
    }
    let content = AccessConsumer { access, uid, credential, buckets: &buckets, gateway, name, shaped }.content();
    let wanted = content.map_err(|too_large| Stop::new(AccessReason::SpecInvalid, too_large.to_string()))?;
    let known = view.consumers.get(name);
    if let Knowledge::Present(secret) = known {
        if let Some(why) = foreign(secret, uid.as_str()) {
            if !view.consumers.is_live(name) {
                return Err(AccessLook::Consumer(name.clone()).into());
            }
            let why = format!("Secret {name} is there, and is not this access's: {why:?}");
            return Err(Stop::new(AccessReason::SecretConflict, why).into());
        }
        if secret.is_kept_in_part() {
            return Err(AccessLook::Consumer(name.clone()).into());
        }
        if secret.published_key() != Some(credential.id.as_str()) {
            require_live_key(view, credential)?;
        }
        let patch = SecretPatch::between(&secret.0, &wanted, shaped.removable(), Change::Repair);
        return repair(view, patch);
    }
    view.require_live()?;
    require_live_key(view, credential)?;
    let conflict = AccessReason::SecretConflict.to_string();
    let was_taken = || view.before.conditions.iter().any(|condition| condition.reason == conflict);
    let look = known == Knowledge::Taken || (known == Knowledge::Unknown && was_taken());
    Err(if look {
        AccessLook::Consumer(name.clone()).into()
    } else {
        AccessAct::CreateConsumer(Box::new(wanted)).into()
    })
}

/// Before a key is published: this pass made it or read it live, and the record that aims at it
/// too. A cache that is behind shows a key that is to end, and not its successor, which the Secret
/// may hold already: it never goes back (spec §3.3).
fn require_live_key(view: &AccessView, credential: &AccessCredential) -> Result<(), Halt> {
    let name = credential.id.access_secret_name();
    if view.internal.is_live(&name) {
        return view.require_settled();
    }
    Err(AccessLook::Internal(name).into())
}

/// Removes the consumer Secrets of other names, once that of the spec is there: the bound one after
/// the name was edited, and any other that says it is one. No rotation waits for a Secret that
/// somebody made with our labels and owner reference.
pub(super) fn remove_renamed(view: &AccessView) -> Result<(), Halt> {
    let wanted = &view.access.consumer_secret;
    if let Some(bound) = view.before.bound_secret_name.as_ref().filter(|bound| *bound != wanted) {
        // Its labels may have been taken off: then only the name finds it.
        remove(view, bound)?;
    }
    match own(view).find(|secret| secret.name() != wanted) {
        Some(secret) => remove(view, secret.name()),
        None => Ok(()),
    }
}

/// Secrets that the access controls, with the role of its consumer Secret.
fn own(view: &AccessView) -> impl Iterator<Item = &Stored> {
    view.consumers.all().filter(|secret| {
        secret.is_controlled_by_uid(view.access.uid.as_str())
            && secret.label(wire::ROLE) == Some(wire::Role::ConsumerSecret.as_str())
    })
}

/// Removes a consumer Secret of this name, if the access controls it.
pub(super) fn remove(view: &AccessView, name: &str) -> Result<(), Halt> {
    match view.consumers.get(name) {
        Knowledge::Unknown | Knowledge::Taken => Err(AccessLook::Consumer(name.to_owned()).into()),
        Knowledge::Present(secret) if secret.is_controlled_by_uid(view.access.uid.as_str()) => {
            view.require_live()?;
            Err(AccessAct::Delete(secret.reference()).into())
        }
        Knowledge::Present(_) if !view.consumers.is_live(name) => Err(AccessLook::Consumer(name.to_owned()).into()),
        Knowledge::Present(_) | Knowledge::Absent => Ok(()),
    }
}

/// Whether every consumer Secret of the access was observed with this key, by a pass that didn't
/// write one.
pub(super) fn is_published(view: &AccessView, credential: &AccessCredential) -> bool {
    let mut ours = own(view).peekable();
    ours.peek().is_some() && ours.all(|secret| secret.published_key() == Some(credential.id.as_str()))
}
