//! The emergency: a key has leaked, and every key of the claim ends at once (spec §3.3).
//!
//! One patch of the record raises the generation, takes the request as handled, and notes up to
//! which generation keys are revoked. From there on this too is level-based: whenever a key of one
//! of those generations is met it is deleted, and none is minted before they are gone.

use std::collections::BTreeMap;

use k8s_openapi::jiff::Timestamp;

use crate::api::{AccessKeyId, BucketRecord, Extra, SecretContent, wire};

use super::aim::{self, GRACE, plus};
use super::halt::{Halt, Outcome, delete_secret};
use super::moves;
use super::patch::{Change, SecretPatch, Trigger};
use super::secret::Stored;
use super::step::Look;
use super::stop::Stop;
use super::view::View;
use super::walk::tolerate;
use super::write::{repair, rewrite};

/// Deletes what is revoked, and starts a revocation that is asked for. It comes before all that may
/// stop a pass, and asks for nothing but the record. `wake` = when the next one may start.
pub(super) fn walk(view: &View, now: Timestamp) -> Result<Outcome, Halt> {
    let impaired = end_revoked(view)?;
    let wake = start(view, now)?;
    Ok(Outcome { impaired, wake })
}

/// Sees to every key that is revoked, and says what keeps one of them.
fn end_revoked(view: &View) -> Result<Option<Stop>, Halt> {
    let mut kept = None;
    for secret in view.credentials().filter(|secret| view.is_revoked(secret)) {
        kept = kept.or(tolerate(end(view, secret))?);
    }
    Ok(kept)
}

/// Whether no revoked key is accepted any more, as far as this pass knows: each is deleted, or kept
/// by somebody's finalizer and over. A deletion that failed may have happened; until a pass has
/// seen that, the key counts as one that works.
pub(super) fn is_done(view: &View) -> bool {
    !view.credentials().any(|secret| view.is_revoked(secret) && !is_over(secret))
}

/// True for a key that is over by every clock.
fn is_over(secret: &Stored) -> bool {
    secret.annotation(wire::EXPIRES_AT).is_some_and(|at| {
        // The gateway refuses one whose stamp can't be read.
        at.parse::<Timestamp>().map_or(true, |at| at <= Timestamp::UNIX_EPOCH)
    })
}

/// Deletes a key. One that somebody's finalizer keeps is still accepted, so it is stamped as well.
fn end(view: &View, secret: &Stored) -> Result<(), Halt> {
    repair(view, stamp_over(secret))?;
    Err(delete_secret(secret))
}

/// The patch that stamps a key which somebody's finalizer keeps with a time that is over by every
/// clock, whoever's it is; `None` = it needs none.
pub(super) fn stamp_over(secret: &Stored) -> Option<SecretPatch> {
    if secret.kept_by().is_none() || is_over(secret) {
        return None;
    }
    let content = SecretContent {
        namespace: secret.reference().namespace,
        name: secret.name().to_owned(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::from([(wire::EXPIRES_AT.to_owned(), Timestamp::UNIX_EPOCH.to_string())]),
        data: BTreeMap::new(),
        owner: None,
        extra: Extra::default(),
    };
    SecretPatch::between(&secret.0, &content, &[], Change::Retire)
}

/// Whether the revoke annotation carries a value not yet handled.
fn is_requested(view: &View, record: &BucketRecord) -> bool {
    let request = &view.claim().revoke_request;
    request.is_some() && *request != record.handled_revoke_request
}

/// Starts a revocation that is asked for; where there is no key it is only noted. Planned on a
/// claim read live: an old list would ask twice. `Ok` = when one may start.
fn start(view: &View, now: Timestamp) -> Result<Option<Timestamp>, Halt> {
    let Some((record, stored)) = view.record().filter(|(record, _)| is_requested(view, record)) else {
        return Ok(None);
    };
    if let Some(over) = minute(view, record, now) {
        return Ok(Some(over));
    }
    view.require_live_claim()?;
    let handled_revoke_request = view.claim().revoke_request.clone();
    if !may_have_key(view, record)? {
        if view.held_off().is_some() {
            // There is nothing to end: a note waits as every other write does.
            return Ok(None);
        }
        let noted = BucketRecord { handled_revoke_request, ..record.clone() };
        return Err(rewrite(view, &noted, stored, Change::NoteRevocation));
    }
    // Once the keys are gone nothing else tells which bucket the claim has left.
    moves::mark_left(view, record)?;
    view.require_wanted_record(&record.name())?;
    let generation = view.next_generation();
    let rotate_request = view.claim().rotate_request.clone();
    let raised = BucketRecord {
        generation,
        revoked_through: generation.saturating_sub(1),
        handled_revoke_request,
        lowest: record.lowest.map(|lowest| lowest.max(lowest_left(view, record, now))),
        // Whoever asked for another key has it by this one.
        handled_rotate_request: rotate_request.or_else(|| record.handled_rotate_request.clone()),
        // Nor that it was bound.
        settled: record.settled || view.is_bound_by(record),
        ..record.clone()
    };
    Err(rewrite(view, &raised, stored, Change::RaiseGeneration(Trigger::Revocation)))
}

/// The lowest generation that the revocation before left a key of. Those that it ended were looked
/// for by their names before the next key was made, and a mint of theirs that got no answer has
/// landed before that key was a minute old.
fn lowest_left(view: &View, record: &BucketRecord, now: Timestamp) -> u64 {
    let through = record.revoked_through;
    let is_later = |secret: &Stored| {
        let made = secret.0.metadata.creation_timestamp.as_ref();
        view.labelled_generation(secret).is_some_and(|generation| generation > through)
            && made.is_some_and(|made| plus(made.0, GRACE) <= now)
    };
    let is_left = view.credentials().any(|secret| view.is_revoked(secret));
    if !is_left && view.credentials().any(is_later) { through.saturating_add(1) } else { 1 }
}

/// The end of the minute after a revocation has made the current key, while it lasts: requests in
/// it count as one. A clock that takes the key to be of the future measures nothing by it.
fn minute(view: &View, record: &BucketRecord, now: Timestamp) -> Option<Timestamp> {
    let is_of_revocation = record.revoked_through > 0 && record.revoked_through.saturating_add(1) == record.generation;
    let made = aim::made(view, record).filter(|made| is_of_revocation && *made <= now)?;
    Some(plus(made, GRACE)).filter(|over| now < *over)
}

/// Whether there may be a key that is not revoked yet. That there is none is read live, by name.
fn may_have_key(view: &View, record: &BucketRecord) -> Result<bool, Halt> {
    if view.credentials().any(|secret| !view.is_revoked(secret)) || !record.tells_all() {
        return Ok(true);
    }
    let lowest = record.lowest_generation().max(record.revoked_through.saturating_add(1));
    let names = (lowest..=record.generation).map(|it| AccessKeyId::of(&record.uid, it).secret_name());
    match names.into_iter().find(|name| !view.is_absent(name)) {
        Some(name) => Err(Look::Internal(name).into()),
        None => Ok(false),
    }
}
