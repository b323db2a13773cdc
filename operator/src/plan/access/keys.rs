//! The record of an access and its keys. Their life cycle is that of a claim's keys (spec §3.3,
//! §8).

use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::api::{
    AccessCredential, AccessCredentialFacts, AccessReason, AccessRecord, AccessScope, Rotation, SecretContent,
};

use super::super::credentials::{
    Due, KeyHolder, bump_generation, delete_secret, due, end_revoked, ensure_key, is_revocation_requested,
    is_rotation_requested, overtake, pause, plus, repair, retire_lower, rotation_due,
};
use super::super::known::Knowledge;
use super::super::patch::{Change, SecretPatch, Trigger};
use super::super::secret::Stored;
use super::super::step::Then;
use super::super::{credentials, walk::tolerate};
use super::step::{AccessAct, AccessLook};
use super::view::{AccessView, Halt, Outcome, Stop};
use super::words::words;
use super::{consumer, entries};

/// A record and the Secret that it was read from.
type Held<'a> = (AccessRecord, &'a Stored);

/// Ensures that the current key exists, is published and opens what the entries request. Then
/// handles rotation.
pub(super) fn walk(view: &AccessView, rotation: Rotation, now: Timestamp) -> Result<Outcome, Halt> {
    let held = ensure_record(view, now)?;
    let (record, stored) = &held;
    let (credential, scopes) = ensure_credential(view, &held)?;
    keep(view, record)?;
    overtake(view, record, stored)?;
    let conflict = tolerate(consumer::ensure(view, record, &credential, &scopes))?;
    if conflict.is_none() {
        consumer::remove_renamed(view)?;
    }
    let is_published = conflict.is_none() && !view.is_consumer_written && consumer::is_published(view, &credential);
    let lower = retire_lower(view, rotation, is_published, now, |key| lower_key(view, record, key))?;
    let has_lower = lower.wake.is_some() || lower.impaired.is_some();
    let next = if conflict.is_none() { rotate(view, &held, &scopes, rotation, has_lower, now)? } else { None };
    let wake = lower.wake.into_iter().chain(next).min();
    Ok(Outcome { impaired: conflict.or(lower.impaired), wake })
}

/// Returns the record. It is created once an entry opens, for the current UID of the namespace.
pub(super) fn ensure_record(view: &AccessView, now: Timestamp) -> Result<Held<'_>, Halt> {
    let name = AccessRecord::name(&view.access.uid);
    if let Some((record, stored)) = view.record() {
        of_this_namespace(view, &record, stored)?;
        let content = record.content(&view.setting.operator_namespace);
        repair(view, SecretPatch::between(&stored.0, &content, &[], Change::Repair))?;
        return Ok((record, stored));
    }
    match view.internal.get(&name) {
        Knowledge::Present(_) => {
            return Err(Stop::new(AccessReason::CreationInconsistent, format!("Secret {name} is damaged")).into());
        }
        Knowledge::Taken => return Err(AccessLook::Internal(name).into()),
        Knowledge::Unknown | Knowledge::Absent => {}
    }
    if entries::wanted(view, &[]).is_empty() {
        return Err(nothing_opens(view).into());
    }
    await_others(view, now)?;
    view.require_live()?;
    view.require_absent(&name)?;
    // Existing keys show which generations are used.
    view.require_list()?;
    let namespace_uid = view.require_namespace()?.uid.clone();
    let generation = view.next_generation();
    let revoke = view.access.revoke_request.clone();
    Err(AccessAct::CreateRecord(AccessRecord {
        access: view.access.at.clone(),
        uid: view.access.uid.clone(),
        namespace_uid,
        generation,
        handled_rotate_request: view.access.rotate_request.clone(),
        // Only a lost record knew whether the request was handled. All keys are revoked, so that a
        // leaked one does not survive.
        revoked_through: if revoke.is_some() { generation - 1 } else { 0 },
        handled_revoke_request: revoke,
        lowest: 1,
    })
    .into())
}

/// Returns the reason that there is no key yet, taken from the first closed entry.
pub(super) fn nothing_opens(view: &AccessView) -> Stop {
    let reason = entries::resolved(view).into_iter().find_map(|it| it.open.err());
    let reason = reason.unwrap_or(AccessReason::NotShared);
    Stop::new(reason, format!("no entry opens a bucket yet: {}", words(reason)))
}

/// Time after the creation of an access in which its first key waits for more entries to open.
/// Claims that are applied together with it are bound within seconds, while a second key would have
/// to wait for a minute.
const FIRST_KEY_WAITS: SignedDuration = SignedDuration::from_secs(10);

/// Waits for entries that are about to open, so that the first key opens them as well.
fn await_others(view: &AccessView, now: Timestamp) -> Result<(), Halt> {
    // Does not wait if this clock is behind that of the API server.
    let Some(created) = view.access.created.filter(|created| *created <= now) else { return Ok(()) };
    let until = plus(created, FIRST_KEY_WAITS);
    let is_coming = |why: AccessReason| matches!(why, AccessReason::ClaimNotBound | AccessReason::ConsentPending);
    let mut reasons = entries::resolved(view).into_iter().map(|it| it.open.err()).enumerate();
    let coming = reasons.find_map(|(at, why)| Some((at, why.filter(|why| is_coming(*why))?)));
    let Some((at, reason)) = coming.filter(|_| now < until) else { return Ok(()) };
    let message = format!("the first key waits for entry {at} of spec.buckets, until {until}: {}", words(reason));
    let wait = Duration::try_from(until.duration_since(now)).unwrap_or_default();
    Err(Stop { then: Then::After(wait.max(Duration::from_secs(1))), ..Stop::new(reason, message) }.into())
}

/// Replaces the record after the namespace was recreated. The consent was given for the previous
/// namespace. The keys are deleted, then the record, which is created again later.
fn of_this_namespace(view: &AccessView, record: &AccessRecord, stored: &Stored) -> Result<(), Halt> {
    if view.namespace().is_none_or(|namespace| namespace.uid == record.namespace_uid) {
        return Ok(());
    }
    if view.require_namespace()?.uid == record.namespace_uid {
        return Ok(());
    }
    view.require_live()?;
    view.require_list()?;
    end_next(view)?;
    Err(delete_secret(view, stored))
}

/// Deletes the keys one by one. A key that a finalizer keeps is deleted already, and does not block
/// the others.
pub(super) fn end_next(view: &AccessView) -> Result<(), Halt> {
    let keys = view.keys();
    let next = keys.iter().find(|key| key.kept_by().is_none()).or(keys.first());
    next.map_or(Ok(()), |key| Err(delete_secret(view, key)))
}

/// Deletes revoked keys and starts a requested revocation. Done before everything that may stop a
/// pass.
pub(super) fn revoke(view: &AccessView, now: Timestamp) -> Result<Option<Timestamp>, Halt> {
    end_revoked(view)?;
    let Some((record, stored)) = view.record() else { return Ok(None) };
    if !is_revocation_requested(view, &record) {
        return Ok(None);
    }
    if view.held_off().is_some() && view.keys().iter().all(|key| view.is_revoked(key)) {
        // Nothing has to end, so this note waits like every other write.
        return Ok(None);
    }
    match pause(view, &record, now) {
        Some(over) => Ok(Some(over)),
        None => Err(credentials::revoke(view, &record, stored, now)),
    }
}

/// Returns the current key and the scopes that it opens.
fn ensure_credential(
    view: &AccessView,
    (record, stored): &Held<'_>,
) -> Result<(AccessCredential, Vec<AccessScope>), Halt> {
    let mint = || {
        let scopes = entries::scopes_of_next(view, &[])?;
        if scopes.is_empty() {
            return Err(nothing_opens(view).into());
        }
        Ok(AccessAct::Mint(facts(record, record.generation, scopes)).into())
    };
    let (credential, secret) = ensure_key(view, record, stored, mint)?;
    Ok((credential, AccessCredentialFacts::scopes_of(&secret.0)))
}

/// Updates the scopes of existing keys to match their entries. The buckets of a key never change.
fn keep(view: &AccessView, record: &AccessRecord) -> Result<(), Halt> {
    let keys = view.numbered_keys().into_iter();
    for (generation, key) in keys.filter(|(generation, _)| *generation <= record.generation) {
        let scopes = entries::kept(view, &AccessCredentialFacts::scopes_of(&key.0))?;
        repair(view, rescoped(view, record, generation, key, scopes))?;
    }
    Ok(())
}

/// Removes from the keys what their entries no longer request, and opens nothing.
pub(super) fn narrow(view: &AccessView) -> Result<(), Halt> {
    let Some((record, _)) = view.record() else { return Ok(()) };
    for (generation, key) in view.numbered_keys() {
        let now = AccessCredentialFacts::scopes_of(&key.0);
        let narrowed = entries::narrowed(view, &now)?;
        if narrowed != now {
            repair(view, rescoped(view, &record, generation, key, narrowed))?;
        }
    }
    Ok(())
}

/// Returns the patch that sets the scopes of a key.
fn rescoped(
    view: &AccessView,
    record: &AccessRecord,
    generation: u64,
    key: &Stored,
    scopes: Vec<AccessScope>,
) -> Option<SecretPatch> {
    let content = facts(record, generation, scopes).content(&view.setting.operator_namespace, None);
    SecretPatch::between(&key.0, &content, AccessView::REMOVABLE_OF_KEYS, Change::Repair)
}

/// Returns the wanted Secret of a lower key, or `None` for the current key.
fn lower_key(view: &AccessView, record: &AccessRecord, key: &Stored) -> Result<Option<SecretContent>, Halt> {
    let lower = view.generation(key).filter(|generation| *generation < record.generation);
    let Some(generation) = lower else { return Ok(None) };
    if let Some(finalizers) = key.kept_by() {
        let why = format!("Secret {} is deleted and kept by {finalizers}", key.name());
        return Err(Stop::new(AccessReason::CreationInconsistent, why).into());
    }
    let scopes = AccessCredentialFacts::scopes_of(&key.0);
    Ok(Some(facts(record, generation, scopes).content(&view.setting.operator_namespace, None)))
}

/// Starts a rotation that is due because of its interval, a request, or an entry with a bucket that
/// the current key does not open. No rotation starts while a lower key exists, or within a minute
/// of the last. Otherwise returns the time at which one becomes due.
fn rotate(
    view: &AccessView,
    (record, stored): &Held<'_>,
    current: &[AccessScope],
    rotation: Rotation,
    has_lower: bool,
    now: Timestamp,
) -> Result<Option<Timestamp>, Halt> {
    let has_new = |scopes: &[AccessScope]| scopes.iter().any(|it| !current.iter().any(|has| has.is_same_place(it)));
    let is_new = has_new(&entries::wanted(view, current));
    let requested = is_rotation_requested(view, record);
    let made = match rotation_due(view, record, rotation, requested || is_new, has_lower, now)? {
        Due::Later(due) => return Ok(due),
        Due::Now(made) => made,
    };
    let scopes = entries::scopes_of_next(view, current)?;
    let is_timed = !requested && rotation.interval_days.is_some();
    let its_time_has_come = is_timed && due(made, rotation, false).is_some_and(|due| due <= now);
    if !(requested || has_new(&scopes) || its_time_has_come) {
        return Ok(None);
    }
    // At most two keys: a key that the cache does not show may still exist.
    for generation in record.lowest..record.generation {
        view.require_absent(&view.key_name(generation))?;
    }
    let noted = AccessRecord { lowest: record.generation, ..record.clone() };
    let trigger = if requested {
        Trigger::Request
    } else if is_new {
        Trigger::Entry
    } else {
        Trigger::Interval
    };
    Err(bump_generation(view, &noted, stored, trigger))
}

fn facts(record: &AccessRecord, generation: u64, scopes: Vec<AccessScope>) -> AccessCredentialFacts {
    AccessCredentialFacts { access: record.access.clone(), uid: record.uid.clone(), generation, scopes }
}
