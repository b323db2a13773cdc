//! The emergency of a claim: a key has leaked, and every key ends at once (spec §3.3).

use k8s_openapi::jiff::Timestamp;

use crate::api::BucketRecord;

use super::credentials::{KeyHolder, end_revoked, is_over, is_revocation_requested, pause, revoke, rewrite};
use super::halt::{Halt, Outcome};
use super::moves;
use super::patch::Change;
use super::step::Look;
use super::view::View;

/// Deletes what is revoked, and starts a revocation that is asked for. It comes before all that may
/// stop a pass, and asks for nothing but the record. `wake` = when the next one may start.
pub(super) fn walk(view: &View, now: Timestamp) -> Result<Outcome, Halt> {
    let impaired = end_revoked(view)?;
    let wake = start(view, now)?;
    Ok(Outcome { impaired, wake })
}

/// Whether no revoked key is accepted any more, as far as this pass knows: each is deleted, or kept
/// by somebody's finalizer and over. A deletion that failed may have happened; until a pass has
/// seen that, the key counts as one that works.
pub(super) fn is_done(view: &View) -> bool {
    !view.credentials().any(|secret| view.is_revoked(secret) && !is_over(secret))
}

/// Starts a revocation that is asked for; where there is no key it is only noted. Planned on a
/// claim read live: an old list would ask twice. `Ok` = when one may start.
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
            // There is nothing to end: a note waits as every other write does.
            return Ok(None);
        }
        let handled_revoke_request = view.claim().revoke_request.clone();
        let noted = BucketRecord { handled_revoke_request, ..record.clone() };
        return Err(rewrite(view, &noted, stored, Change::NoteRevocation));
    }
    // Once the keys are gone nothing else tells which bucket the claim has left.
    moves::mark_left(view, record)?;
    Err(revoke(view, record, stored, now))
}

/// True if there may be a key that is not revoked yet, or a stranger's Secret has the name of the
/// one to come, which then takes the next number. That there is none is read live, by name.
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
