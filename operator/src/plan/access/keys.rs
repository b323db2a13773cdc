//! The record of an access and its keys: the same life as that of a claim's (spec §3.3, §8).

use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::api::{
    AccessCredential, AccessCredentialFacts, AccessReason, AccessRecord, AccessScope, Rotation, SecretContent, wire,
};

use super::super::credentials::{
    self, Due, Missing, RetireDecision, bump_generation, delete_secret, due, end_revoked, is_revocation_requested,
    is_rotation_requested, lowest_left, missing_key, pause, plus, repair, rewrite, rotation_due, stamp,
};
use super::super::patch::{Change, SecretPatch, Trigger};
use super::super::secret::Stored;
use super::super::step::Then;
use super::super::view::Knowledge;
use super::entries;
use super::step::{AccessAct, AccessLook};
use super::view::{AccessView, Halt, Outcome, Stop};
use super::words::words;

/// A record, and the Secret that it was read from.
pub(super) type Held<'a> = (AccessRecord, &'a Stored);

/// The record. It is made once an entry opens, for the namespace as it is now.
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
    // What there is of keys tells which numbers are used.
    view.require_list()?;
    let namespace_uid = view.require_namespace()?.uid.clone();
    let generation = view.highest() + 1;
    let revoke = view.access.revoke_request.clone();
    Err(AccessAct::CreateRecord(AccessRecord {
        access: view.access.at.clone(),
        uid: view.access.uid.clone(),
        namespace_uid,
        generation,
        handled_rotate_request: view.access.rotate_request.clone(),
        // Whether it was handled a record told that is lost: no leaked key is to live on.
        revoked_through: if revoke.is_some() { generation - 1 } else { 0 },
        handled_revoke_request: revoke,
        lowest: 1,
    })
    .into())
}

/// Why there is no key yet: what the first entry says that doesn't open.
pub(super) fn nothing_opens(view: &AccessView) -> Stop {
    let reason = entries::resolved(view).into_iter().find_map(|it| it.open.err());
    let reason = reason.unwrap_or(AccessReason::NotShared);
    Stop::new(reason, format!("no entry opens a bucket yet: {}", words(reason)))
}

/// So long after an access was made its first key waits for the buckets that it asks for: claims
/// that are applied with it get theirs within seconds, and the next key comes after a minute only.
const FIRST_KEY_WAITS: SignedDuration = SignedDuration::from_secs(10);

/// Waits for entries that are about to open, so that the first key opens them too.
fn await_others(view: &AccessView, now: Timestamp) -> Result<(), Halt> {
    // A clock that is behind that of the API server waits for nobody.
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

/// A namespace that was made again is another one: who consented meant the one before. The keys go,
/// then the record, and it is made anew.
fn of_this_namespace(view: &AccessView, record: &AccessRecord, stored: &Stored) -> Result<(), Halt> {
    if view.namespace().is_none_or(|namespace| namespace.uid == record.namespace_uid) {
        return Ok(());
    }
    if view.require_namespace()?.uid == record.namespace_uid {
        return Ok(());
    }
    view.require_live()?;
    view.require_list()?;
    let keys = view.keys();
    match keys.iter().find(|(_, key)| key.kept_by().is_none()).or_else(|| keys.first()) {
        Some((_, key)) => Err(delete_secret(view, key)),
        None => Err(delete_secret(view, stored)),
    }
}

/// Ends what is revoked, and starts a revocation that is asked for. It comes before all that may
/// stop a pass.
pub(super) fn revoke(view: &AccessView, now: Timestamp) -> Result<Option<Timestamp>, Halt> {
    end_revoked(view)?;
    let Some((record, stored)) = view.record() else { return Ok(None) };
    if !is_revocation_requested(view, &record) {
        return Ok(None);
    }
    if view.held_off().is_some() && view.keys().iter().all(|(generation, _)| view.is_revoked(*generation)) {
        // There is nothing to end: a note waits as every other write does.
        return Ok(None);
    }
    if let Some(over) = pause(view, &record, now) {
        return Ok(Some(over));
    }
    view.require_live()?;
    view.require_settled()?;
    let generation = view.highest() + 1;
    let bumped = AccessRecord {
        generation,
        revoked_through: generation - 1,
        lowest: record.lowest.max(lowest_left(view, &record, now)),
        handled_revoke_request: view.access.revoke_request.clone(),
        handled_rotate_request: view.access.rotate_request.clone().or(record.handled_rotate_request.clone()),
        ..record
    };
    Err(rewrite(view, &bumped, stored, Change::RaiseGeneration(Trigger::Revocation)))
}

/// The credential that the record aims at. Made once, by the pass whose own write made it the
/// target.
pub(super) fn ensure_key(view: &AccessView, held: &Held<'_>) -> Result<(AccessCredential, Vec<AccessScope>), Halt> {
    let (record, stored) = held;
    let name = view.key_name(record.generation);
    if let Some(secret) = view.internal.present(&name) {
        return match AccessCredential::read(&secret.0, &record.uid, record.generation) {
            Ok(credential) => Ok((credential, AccessCredentialFacts::scopes_of(&secret.0))),
            Err(_) if is_rotation_requested(view, record) => {
                Err(bump_generation(view, record, stored, Trigger::Request))
            }
            Err(damage) => Err(Stop::new(AccessReason::CreationInconsistent, damage.to_string()).into()),
        };
    }
    match missing_key(view, record, &name)? {
        Missing::Mint => {
            let scopes = entries::scopes_of_next(view, &[])?;
            if scopes.is_empty() {
                return Err(nothing_opens(view).into());
            }
            Err(AccessAct::Mint(facts(record, record.generation, scopes)).into())
        }
        Missing::Lost => {
            if entries::scopes_of_next(view, &[])?.is_empty() {
                return Err(nothing_opens(view).into());
            }
            // Unlike of a claim: a request that stands there is handled with it.
            Err(bump_generation(view, record, stored, Trigger::Repair))
        }
    }
}

/// Keeps the keys that are there as their entries are, each in its own place.
pub(super) fn keep(view: &AccessView, (record, stored): &Held<'_>) -> Result<(), Halt> {
    for (generation, key) in view.keys() {
        if generation > record.generation {
            return Err(credentials::overtake(view, record, stored, key, Trigger::Repair));
        }
        let scopes = entries::kept(view, &AccessCredentialFacts::scopes_of(&key.0))?;
        let content = facts(record, generation, scopes).content(&view.setting.operator_namespace, None);
        repair(view, SecretPatch::between(&key.0, &content, &[], Change::Repair))?;
    }
    Ok(())
}

/// Takes from the keys what their entries ask for no more, and opens nothing.
pub(super) fn narrow(view: &AccessView) -> Result<(), Halt> {
    let Some((record, _)) = view.record() else { return Ok(()) };
    for (generation, key) in view.keys() {
        let now = AccessCredentialFacts::scopes_of(&key.0);
        let narrowed = entries::narrowed(view, &now)?;
        if narrowed != now {
            let content = facts(&record, generation, narrowed).content(&view.setting.operator_namespace, None);
            repair(view, SecretPatch::between(&key.0, &content, &[], Change::Repair))?;
        }
    }
    Ok(())
}

/// Sees lower keys out, none before the consumer Secret holds the current one. `Ok` = when the next
/// is due, and what keeps the last of those that are kept.
pub(super) fn retire(
    view: &AccessView,
    record: &AccessRecord,
    rotation: Rotation,
    is_published: bool,
    now: Timestamp,
) -> Result<Outcome, Halt> {
    let mut outcome = Outcome::default();
    for (generation, key) in view.keys().into_iter().filter(|(number, _)| *number < record.generation) {
        if let Some(finalizers) = key.kept_by() {
            let why = format!("Secret {} is deleted and kept by {finalizers}", key.name());
            outcome.impaired = Some(Stop::new(AccessReason::CreationInconsistent, why));
            continue;
        }
        let Ok(expires_at) = stamp(key) else {
            let why = format!("the time in Secret {} can't be read", key.name());
            outcome.impaired = Some(Stop::new(AccessReason::CreationInconsistent, why));
            continue;
        };
        let due = match RetireDecision::of(expires_at, is_published, rotation, now) {
            RetireDecision::Over => return Err(delete_secret(view, key)),
            RetireDecision::Waits(until) => until,
            RetireDecision::Stamped { at, until } => {
                let scopes = AccessCredentialFacts::scopes_of(&key.0);
                let content = facts(record, generation, scopes).content(&view.setting.operator_namespace, None);
                let stamped = [(wire::EXPIRES_AT.to_owned(), at.to_string())];
                let annotations = content.annotations.clone().into_iter().chain(stamped).collect();
                let content = SecretContent { annotations, ..content };
                repair(view, SecretPatch::between(&key.0, &content, &[], Change::Retire))?;
                until
            }
        };
        outcome.wake = outcome.wake.into_iter().chain([due]).min();
    }
    Ok(outcome)
}

/// Starts a rotation that is due, because of its time, of a request, or of an entry that leads to a
/// bucket that the current key doesn't have: none while there is a lower key, none within a minute
/// of the last. `Ok` = when one will be.
pub(super) fn rotate(
    view: &AccessView,
    (record, stored): &Held<'_>,
    current: &[AccessScope],
    rotation: Rotation,
    now: Timestamp,
) -> Result<Option<Timestamp>, Halt> {
    let has_new = |scopes: &[AccessScope]| scopes.iter().any(|it| !current.iter().any(|has| has.is_same_place(it)));
    let is_new = has_new(&entries::wanted(view, current));
    let requested = is_rotation_requested(view, record);
    let has_lower = view.keys().first().is_some_and(|(lowest, _)| *lowest < record.generation);
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
    // Two keys at most: what the cache does not show may live all the same.
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
