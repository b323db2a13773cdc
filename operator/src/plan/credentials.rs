//! The credential, the consumer Secret and the anonymous binding of a claim whose bucket is there.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use crate::api::{
    AccessKeyId, AnonymousBinding, BucketRecord, ConsumerContent, Credential, CredentialFacts, Desired, Reason, wire,
};

use super::answer::Stored;
use super::bind::{Settled, recall, require_fresh};
use super::bucket::rewrite;
use super::moves;
use super::records::names;
use super::repair::{Change, SecretPatch, Trigger};
use super::rotation;
use super::step::{Act, Concern, Halt, Look, Stop};
use super::view::View;

/// Credentials of a claim that live at once, but for repairs.
const MOST_LIVE: usize = 2;

/// Data keys of an internal Secret that go when the quota they come from goes.
pub(super) const QUOTA_KEYS: [&str; 2] = ["quota_soft_bytes", "quota_hard_bytes"];

/// Makes sure that the credential aimed at is there, published, unless that has to wait, and public access as the spec has
/// it; then sees to rotation.
pub(super) fn walk(
    view: &View,
    desired: &Desired,
    record: &BucketRecord,
    stored: &Stored,
    now: Timestamp,
) -> Result<Settled, Halt> {
    let facts = facts(desired, record);
    let credential = credential(view, &facts, record, stored)?;
    let held_back = refuse_to_go_back(view, desired, record, stored, now)?;
    if held_back.is_none() {
        consumer(view, &facts, &credential)?;
        remove_renamed(view)?;
    }
    binding(view, desired, record)?;
    let settled = rotation::walk(view, desired, record, stored, now)?;
    held_back.map_or(Ok(settled), |time| Err(Halt::Wait(time)))
}

pub(super) fn facts(desired: &Desired, record: &BucketRecord) -> CredentialFacts {
    CredentialFacts {
        claim: record.claim.clone(),
        uid: record.uid.clone(),
        backend: record.backend.clone(),
        bucket: record.bucket.clone(),
        generation: record.generation,
        quota_soft: desired.quota_soft,
        quota_hard: desired.quota_hard,
    }
}

/// The credential of the record's generation. Created once, by the pass whose own write made it the target; a
/// target that is gone raises the target, so that no id is ever given a second secret (spec §3.3).
fn credential(
    view: &View,
    facts: &CredentialFacts,
    record: &BucketRecord,
    stored: &Stored,
) -> Result<Credential, Halt> {
    let name = facts.access_key_id().secret_name();
    if let Some(secret) = view.credential(record.generation) {
        let credential = match Credential::read(&secret.0, &record.uid, record.generation) {
            Ok(credential) => credential,
            Err(_) if rotation::is_requested(view, record) => {
                return Err(rotation::raise(view, record, stored, Trigger::Request));
            }
            Err(damage) => {
                let message = format!("the current credential is damaged: {damage}; a rotate request replaces it");
                return Err(Stop::refused(Reason::CreationInconsistent, Concern::Credentials, message).into());
            }
        };
        let content = facts.content(&view.setting.operator_namespace, None);
        repair(view, SecretPatch::between(&secret.0, &content, &QUOTA_KEYS, Change::Repair))?;
        return Ok(credential);
    }
    require_fresh(view)?;
    if view.taken.contains(&name) {
        return Err(Look::Internal(name).into());
    }
    if view.own_target == Some(record.generation) {
        require_own_after_standstill(view)?;
        return Err(Act::Mint(facts.clone()).into());
    }
    if !view.absent.contains(&name) {
        return Err(Look::Internal(name).into());
    }
    if view.own_lists == 0 {
        // That read may have been of the server's past, and what is passed here is looked for no more.
        return Err(Look::Own.into());
    }
    moves::find_target(view, &record.name())?;
    let raised = BucketRecord { generation: view.next_generation(), ..view.remembered(record) };
    Err(rewrite(view, &raised, stored, Change::RaiseGeneration(Trigger::Repair)))
}

/// A consumer Secret never goes back to an earlier credential. Where it holds a later one than the record aims at, what
/// was read of the record is old, mostly. Where live reads say the same, somebody took the labels off what was aimed at
/// then, or set the record back: the credential's name leads to it, and it to the record of its bucket; if it is gone, a
/// later one still is aimed at. And a number far ahead of everything else that nobody has a credential of is the tenant's
/// own.
///
/// `Ok` with a time = the Secret stays as it is for so long: it is the tenant's to write, and each edit of it would have a
/// credential made otherwise. And where there are two already, what nobody has a credential of is the tenant's own.
fn refuse_to_go_back(
    view: &View,
    desired: &Desired,
    record: &BucketRecord,
    stored: &Stored,
    now: Timestamp,
) -> Result<Option<Duration>, Halt> {
    let name = &view.claim.consumer_secret;
    let Some(Some(secret)) = view.consumers.get(name) else { return Ok(None) };
    let later = published_generation(view, secret).filter(|generation| *generation > record.generation);
    let Some(published) = later.filter(|_| secret.is_controlled_by(&record.uid)) else { return Ok(None) };
    if !view.met.contains(name) {
        return Err(Look::Consumer(name.clone()).into());
    }
    require_fresh(view)?;
    if view.own_lists == 0 {
        return Err(Look::Own.into());
    }
    let key = AccessKeyId::of(&record.uid, published).secret_name();
    match view.credential(published) {
        None if !view.absent.contains(&key) => Err(Look::Internal(key).into()),
        None if !view.may_have_published(published) || view.credentials().count() >= MOST_LIVE => Ok(None),
        None if let Some(time) = rotation::too_soon(view, record, now) => Ok(Some(time)),
        None => Err(rotation::raise(view, record, stored, Trigger::Repair)),
        Some(secret) if !view.records().any(|(record, _)| names(secret, record)) => {
            Err(recall(view, desired, Some(secret))?.into())
        }
        Some(_) => Err(rotation::raise(view, record, stored, Trigger::Repair)),
    }
}

/// The Secret that the tenant reads. Ours only if this claim's UID controls it; a stranger's is left alone.
fn consumer(view: &View, facts: &CredentialFacts, credential: &Credential) -> Result<(), Halt> {
    let name = &view.claim.consumer_secret;
    let wanted = ConsumerContent { facts, credential, gateway: &view.setting.gateway, name }.content();
    let secret = match view.consumers.get(name) {
        Some(Some(secret)) => secret,
        Some(None) => {
            require_fresh(view)?;
            require_live(view, credential)?;
            return Err(Act::CreateConsumer(wanted).into());
        }
        None => {
            require_fresh(view)?;
            require_live(view, credential)?;
            // Where the last pass met a stranger's Secret, look before asking again.
            let met_stranger =
                view.status_before.conditions.iter().any(|c| c.reason == Reason::SecretConflict.to_string());
            let look = met_stranger || view.taken.contains(name);
            return Err(if look { Look::Consumer(name.clone()).into() } else { Act::CreateConsumer(wanted).into() });
        }
    };
    refuse_stranger(view, secret)?;
    if secret.text("AWS_ACCESS_KEY_ID") != Some(credential.id.as_str()) {
        require_live(view, credential)?;
    }
    repair(view, SecretPatch::between(&secret.0, &wanted, &ConsumerContent::OPTIONAL_KEYS, Change::Repair))
}

/// Before a key is published: this pass made it or read it live. A cache may show one that is long gone, and the Secret that
/// the tenant reads as it is now. One that is to end has a successor, mostly, which a cache that is behind doesn't show.
fn require_live(view: &View, credential: &Credential) -> Result<(), Halt> {
    let name = credential.id.secret_name();
    if !view.live.contains(&name) {
        return Err(Look::Internal(name).into());
    }
    let is_to_end = view.own.get(&name).is_some_and(|secret| secret.annotation(wire::EXPIRES_AT).is_some());
    if is_to_end && view.own_lists == 0 { Err(Look::Own.into()) } else { require_own_after_standstill(view) }
}

/// Before a key is made, or tenants are given one, or the public a bucket: where the pass waited for long, another operator may
/// have moved the claim meanwhile, or aimed at another key.
fn require_own_after_standstill(view: &View) -> Result<(), Halt> {
    if view.late && view.own_lists == 0 { Err(Look::Own.into()) } else { Ok(()) }
}

/// After `writeConnectionSecretToRef` was edited, and the new Secret is there: the one of the old name goes, if this
/// claim controls it (spec §3.7). It would go on publishing a key that the next rotation replaces.
fn remove_renamed(view: &View) -> Result<(), Halt> {
    let bound = view.status_before.bound_secret_name.as_ref();
    if let Some(name) = bound.filter(|name| !view.consumers.contains_key(*name)) {
        // Its labels may have been taken off: then only the name finds it.
        return Err(Look::Consumer(name.clone()).into());
    }
    let ours = |secret: &&Stored| {
        let labelled = secret.label(wire::ROLE) == Some(wire::Role::ConsumerSecret.as_str());
        secret.is_controlled_by(&view.claim.uid) && (labelled || bound.is_some_and(|name| name == secret.name()))
    };
    let renamed = |secret: &&Stored| secret.name() != view.claim.consumer_secret;
    let Some(secret) = view.consumers.values().flatten().filter(ours).find(renamed) else { return Ok(()) };
    require_fresh(view)?;
    Err(Act::Delete(secret.reference()).into())
}

/// The generation of the credential in a consumer Secret. The label is a tenant's to change, so it counts only where
/// the key id is the one that follows from it.
pub(super) fn published_generation(view: &View, secret: &Stored) -> Option<u64> {
    let generation = secret.label(wire::ROTATION_GENERATION)?.parse().ok()?;
    let id = AccessKeyId::of(&view.claim.uid, generation);
    (secret.text("AWS_ACCESS_KEY_ID") == Some(id.as_str())).then_some(generation)
}

fn refuse_stranger(view: &View, secret: &Stored) -> Result<(), Halt> {
    let name = secret.name();
    let conflict = |why: &str| {
        // The caches may show one that is long gone.
        if !view.met.contains(name) {
            return Err(Look::Consumer(name.to_owned()).into());
        }
        let message = format!("Secret {name} {why}; remove it or give writeConnectionSecretToRef another name");
        Err(Stop::refused(Reason::SecretConflict, Concern::Credentials, message).into())
    };
    if !secret.is_controlled_by(&view.claim.uid) {
        conflict("exists and is not this claim's")
    } else if secret.0.immutable == Some(true) {
        conflict("is immutable")
    } else if secret.0.type_.as_deref().is_some_and(|type_| type_ != "Opaque") {
        conflict("has a type other than Opaque")
    } else {
        Ok(())
    }
}

/// Public access that is no longer asked for goes before anything else is looked at: no trouble keeps it. Read live: an
/// operator that is behind would take away what was asked for since.
pub(super) fn withdraw_public_access(view: &View, desired: &Desired) -> Result<(), Halt> {
    match view.own.get(&AnonymousBinding::name(&view.claim.uid)) {
        Some(secret) if desired.anonymous.is_none() => {
            require_fresh(view)?;
            Err(Halt::delete(secret))
        }
        _ => Ok(()),
    }
}

/// The claim's binding, if it opens this bucket.
pub(super) fn public_access_to<'a>(view: &'a View, record: &BucketRecord) -> Option<&'a Stored> {
    let binding = view.own.get(&AnonymousBinding::name(&view.claim.uid))?;
    let opens = [("backend", record.backend.as_str()), ("bucket_name", record.bucket.as_str())];
    opens.into_iter().all(|(field, value)| binding.text(field) == Some(value)).then_some(binding)
}

/// Exists exactly while the claim is bound and its mode is not `None` (spec §2).
fn binding(view: &View, desired: &Desired, record: &BucketRecord) -> Result<(), Halt> {
    let name = AnonymousBinding::name(&record.uid);
    let present = view.own.get(&name);
    let wanted = desired.anonymous.map(|per_source_ip_rps| AnonymousBinding {
        claim: record.claim.clone(),
        uid: record.uid.clone(),
        backend: record.backend.clone(),
        bucket: record.bucket.clone(),
        per_source_ip_rps,
    });
    match (present, wanted) {
        // One that is there was withdrawn when the pass began.
        (_, None) => Ok(()),
        (Some(secret), Some(binding)) => {
            AnonymousBinding::check(&secret.0, &record.uid).map_err(|damage| {
                let message =
                    format!("public access can't be given: {damage}; delete that Secret to have it made anew");
                Stop::refused(Reason::CreationInconsistent, Concern::Ready, message)
            })?;
            let content = binding.content(&view.setting.operator_namespace);
            let patch = SecretPatch::between(&secret.0, &content, &[], Change::Repair);
            if patch.is_some() {
                require_own_after_standstill(view)?;
            }
            repair(view, patch)
        }
        (None, Some(binding)) => {
            require_fresh(view)?;
            require_own_after_standstill(view)?;
            let taken = view.taken.contains(&name);
            Err(if taken { Look::Internal(name).into() } else { Act::CreateBinding(binding).into() })
        }
    }
}

/// Halts with the patch, if there is one. It is bound to the version that was read, so an old cache can't make it
/// undo what somebody did since.
pub(super) fn repair(view: &View, patch: Option<SecretPatch>) -> Result<(), Halt> {
    match patch {
        None => Ok(()),
        Some(patch) => {
            require_fresh(view)?;
            Err(Act::Patch(patch).into())
        }
    }
}
