//! The Secret that the tenant reads (spec §2, §3.7).

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use crate::api::{AccessKeyId, BucketRecord, ConsumerContent, Credential, CredentialFacts, Desired, Reason, wire};

use super::aim;
use super::cause::{Foreign, SecretCause};
use super::halt::Halt;
use super::hold::recall;
use super::patch::{Change, SecretPatch, Trigger};
use super::secret::Stored;
use super::step::{Act, Look};
use super::stop::Stop;
use super::view::{Knowledge, View};
use super::write::repair;

/// Credentials of a claim that live at once, but for repairs.
const MOST_LIVE: usize = 2;

/// A consumer Secret never goes back to an earlier credential. Where it holds a later one than the
/// record aims at, what was read of the record is old, mostly. Where live reads say the same,
/// somebody took the labels off what was aimed at then, or set the record back: the credential's
/// name leads to it, and it to the record of its bucket; if it is gone, a later one still is aimed
/// at. And a number far ahead of everything else that nobody has a credential of is the tenant's
/// own.
///
/// `Ok` with a time = the Secret stays as it is for so long: it is the tenant's to write, and each
/// edit of it would have a credential made otherwise. And where there are two already, what nobody
/// has a credential of is the tenant's own.
pub(super) fn refuse_to_go_back(
    view: &View,
    desired: &Desired,
    record: &BucketRecord,
    stored: &Stored,
    now: Timestamp,
) -> Result<Option<Duration>, Halt> {
    let name = &view.claim().consumer_secret;
    let Knowledge::Present(secret) = view.consumer(name) else { return Ok(None) };
    let later = view.published_generation(secret).filter(|generation| *generation > record.generation);
    let Some(published) = later.filter(|_| secret.is_controlled_by(&record.uid)) else { return Ok(None) };
    if !view.is_consumer_live(name) {
        return Err(Look::Consumer(name.clone()).into());
    }
    view.require_live_claim()?;
    view.require_list()?;
    match view.credential(published) {
        None => {
            view.require_absent(&AccessKeyId::of(&record.uid, published).secret_name())?;
            if !view.may_have_published(published) || view.credentials().count() >= MOST_LIVE {
                return Ok(None);
            }
            match aim::too_soon(view, record, now) {
                Some(time) => Ok(Some(time)),
                None => Err(aim::raise(view, record, stored, Trigger::Repair)),
            }
        }
        Some(secret) if !view.records().any(|(record, _)| secret.opens(record)) => {
            Err(recall(view, desired, Some(secret))?.into())
        }
        Some(_) => Err(aim::raise(view, record, stored, Trigger::Repair)),
    }
}

/// The Secret of the name that the spec gives. Ours only if this claim's UID controls it; a
/// stranger's is left alone.
pub(super) fn ensure(view: &View, facts: &CredentialFacts, credential: &Credential) -> Result<(), Halt> {
    let name = &view.claim().consumer_secret;
    let wanted = ConsumerContent { facts, credential, gateway: &view.setting().gateway, name }.content();
    let known = view.consumer(name);
    if let Knowledge::Present(secret) = known {
        refuse_stranger(view, secret)?;
        if secret.text("AWS_ACCESS_KEY_ID") != Some(credential.id.as_str()) {
            view.require_live_key(credential)?;
        }
        let patch = SecretPatch::between(&secret.0, &wanted, &ConsumerContent::OPTIONAL_KEYS, Change::Repair);
        return repair(view, patch);
    }
    view.require_live_claim()?;
    view.require_live_key(credential)?;
    // Where the last pass met a stranger's Secret, look before asking again.
    let conflict = Reason::SecretConflict.to_string();
    let was_taken = || view.status_before().conditions.iter().any(|c| c.reason == conflict);
    let look = known == Knowledge::Taken || (known == Knowledge::Unknown && was_taken());
    Err(if look { Look::Consumer(name.clone()).into() } else { Act::CreateConsumer(wanted).into() })
}

/// After `writeConnectionSecretToRef` was edited, and the new Secret is there: the one of the old
/// name goes, if this claim controls it (spec §3.7). It would go on publishing a key that the next
/// rotation replaces.
pub(super) fn remove_renamed(view: &View) -> Result<(), Halt> {
    let bound = view.status_before().bound_secret_name.as_ref();
    let is_unknown = |name: &&String| matches!(view.consumer(name), Knowledge::Unknown | Knowledge::Taken);
    if let Some(name) = bound.filter(is_unknown) {
        // Its labels may have been taken off: then only the name finds it.
        return Err(Look::Consumer(name.clone()).into());
    }
    let is_ours = |secret: &&Stored| {
        let labelled = secret.label(wire::ROLE) == Some(wire::Role::ConsumerSecret.as_str());
        labelled || bound.is_some_and(|name| name == secret.name())
    };
    let is_renamed = |secret: &&Stored| secret.name() != view.claim().consumer_secret;
    let Some(secret) = view.own_consumers().filter(is_ours).find(is_renamed) else { return Ok(()) };
    view.require_live_claim()?;
    Err(Act::Delete(secret.reference()).into())
}

fn refuse_stranger(view: &View, secret: &Stored) -> Result<(), Halt> {
    let why = if !secret.is_controlled_by(&view.claim().uid) {
        Foreign::NotControlled
    } else if secret.0.immutable == Some(true) {
        Foreign::Immutable
    } else if secret.0.type_.as_deref().is_some_and(|type_| type_ != "Opaque") {
        Foreign::OtherType
    } else {
        return Ok(());
    };
    let name = secret.name().to_owned();
    if !view.is_consumer_live(&name) {
        // The caches may show one that is long gone.
        return Err(Look::Consumer(name).into());
    }
    Err(Stop::new(SecretCause::Conflict { secret: name, why }).into())
}
