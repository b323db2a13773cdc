//! Emergency revocation for claims: after a leak, every key is ended at once (spec §3.3).

use k8s_openapi::jiff::Timestamp;

use crate::api::BucketRecord;

use super::credentials::{KeyHolder, end_revoked, is_over, is_revocation_requested, pause, revoke, rewrite};
use super::halt::{Halt, Outcome};
use super::moves;
use super::patch::Change;
use super::step::Look;
use super::view::View;

/// Deletes revoked keys and starts a requested revocation. It comes before everything that may stop
/// a pass and needs only the record. `wake` is the time at which the next revocation may start.
pub(super) fn walk(view: &View, now: Timestamp) -> Result<Outcome, Halt> {
    let impaired = end_revoked(view)?;
    let wake = start(view, now)?;
    Ok(Outcome { impaired, wake })
}

/// Returns true if no revoked key is accepted any more, as far as this pass knows: each is deleted,
/// or kept by a finalizer and expired.
///
/// A deletion that failed may have taken effect. Until a pass has observed that, the key counts as
/// working.
pub(super) fn is_done(view: &View) -> bool {
    !view.credentials().any(|secret| view.is_revoked(secret) && !is_over(secret))
}

/// Starts a requested revocation. Without any key the request is only noted as handled.
///
/// The claim is read live first: an outdated cache would revoke twice for one request. Returns the
/// time at which a revocation may start.
fn start(view: &View, now: Timestamp) -> Result<Option<Timestamp>, Halt> {
    let Some((record, stored)) = view.record().filter(|(record, _)| is_revocation_requested(view, record)) else {
        return Ok(None);
    };
    if let Some(over) = pause(view, record, now) {
        return Ok(Some(over));
    }
    view.require_live()?;
    if !may_have_key(view, record)? {
        if view.held_off().is_some() {
            // Nothing has to end, so this note waits like every other write.
            return Ok(None);
        }
        let handled_revoke_request = view.claim().revoke_request.clone();
        let noted = BucketRecord { handled_revoke_request, ..record.clone() };
        return Err(rewrite(view, &noted, stored, Change::NoteRevocation));
    }
    // Once the keys are gone, nothing else shows which bucket the claim has left.
    moves::mark_left(view, record)?;
    Err(revoke(view, record, stored, now))
}

/// Returns true if a key may exist that is not revoked yet, or if a foreign Secret has the name of
/// the next key, which then takes the next generation. Absence is read live, by name.
fn may_have_key(view: &View, record: &BucketRecord) -> Result<bool, Halt> {
    if view.credentials().any(|secret| !view.is_revoked(secret)) || !record.tells_all() {
        return Ok(true);
    }
    let lowest = record.lowest_generation().max(record.revoked_through.saturating_add(1));
    let names = (lowest..=record.generation).map(|it| view.key_name(it));
    match names.into_iter().find(|name| !view.is_absent(name) && !view.is_live(name)) {
        Some(name) => Err(Look::Internal(name).into()),
        None => Ok(view.credential(record.generation).is_some()),
    }
}
