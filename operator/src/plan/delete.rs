//! From the deletion timestamp to the end of the claim (spec §3.4). Depends on as little as
//! possible: not on the backend, not on the rest of the spec, not on what a cache shows of the
//! claim and its Secrets.
//!
//! public access withdrawn → credentials revoked → bucket → Secrets gone → record gone → finalizer
//! removed.

use crate::api::{AccessKeyId, AnonymousBinding, BucketName, BucketRecord, Deletion, Endpoint, Reason, RecordName};

use super::answer::BackendSeen;
use super::cause::ClaimCause;
use super::halt::{Halt, Outcome, tolerate};
use super::patch::Change;
use super::secret::is_record;
use super::step::{Act, Look};
use super::stop::Stop;
use super::view::{Knowledge, View, wanted_bucket};
use super::write::rewrite;
use super::{moves, removal};

/// Walks through the steps. `Ok` = nothing is left to do.
pub(super) fn walk(view: &View) -> Result<Outcome, Halt> {
    if view.is_finalizer_removed() || !view.claim().has_finalizer() {
        return Ok(Outcome::default());
    }
    read_live(view)?;
    // What somebody's finalizer keeps doesn't keep the rest from being revoked.
    let open = tolerate(withdraw_public_access(view))?;
    note_bound(view)?;
    let revoked = tolerate(revoke_credentials(view))?;
    if let Some(kept) = open.or(revoked) {
        return Err(kept.into());
    }
    if view.claim().paused {
        return Err(Stop::new(ClaimCause::PausedInDeletion).into());
    }
    removal::walk(view)?;
    remove_consumer_secrets(view)?;
    removal::await_unanswered(view)?;
    remove_record(view)?;
    view.require_last_list()?;
    Err(Act::RemoveFinalizer(view.claim().id.clone()).into())
}

/// The pass begins with a live read of the claim, its Secrets and its record, so that an old cache
/// can't run a deletion twice.
fn read_live(view: &View) -> Result<(), Halt> {
    view.require_live_claim()?;
    read_secrets_live(view)
}

fn read_secrets_live(view: &View) -> Result<(), Halt> {
    view.require_list()?;
    find_record(view, pinned_record(view))?;
    find_record(view, wanted_record(view)?)
}

/// A record's labels may have been taken off: then only its name finds it.
fn find_record(view: &View, name: Option<RecordName>) -> Result<(), Halt> {
    let Some(name) = name else { return Ok(()) };
    if view.is_absent(name.as_str()) || view.own(name.as_str()).is_some() {
        return Ok(());
    }
    Err(Look::Internal(name.to_string()).into())
}

/// Name of the record that the status speaks of.
fn pinned_record(view: &View) -> Option<RecordName> {
    let status = &view.claim().status;
    let endpoint = Endpoint::parse(&status.backend.as_ref()?.endpoint).ok()?;
    let bucket = BucketName::parse(status.bucket_name.as_deref()?).ok()?;
    Some(RecordName::of(&endpoint, &bucket))
}

/// Name of the record that the spec asks for, which the status may not have come to speak of.
/// Nothing waits for it: without the backend that gives the name there is none to look for.
fn wanted_record(view: &View) -> Result<Option<RecordName>, Halt> {
    let Ok(desired) = &view.claim().desired else { return Ok(None) };
    match view.backend(&desired.backend)? {
        BackendSeen::Present { backend, .. } => {
            let bucket = wanted_bucket(view.claim(), desired, backend).ok();
            Ok(bucket.map(|bucket| RecordName::of(&backend.endpoint, &bucket)))
        }
        BackendSeen::Missing | BackendSeen::Invalid(_) => Ok(None),
    }
}

fn withdraw_public_access(view: &View) -> Result<(), Halt> {
    remove_by_name(view, AnonymousBinding::name(&view.claim().uid))
}

/// By UID, and by computed name for every generation from the lowest that the record tells of up to
/// its own: no list shows one that lost its labels. The last two that the status told, and that a
/// record aimed at which an earlier life let go of, are read by name also where the record is gone,
/// and again once the second list has put in doubt what was read before it: a read that did not
/// find one may have been of the server's past.
fn revoke_credentials(view: &View) -> Result<(), Halt> {
    let mut kept = None;
    for credential in view.credentials() {
        kept = kept.or(tolerate(Err(Halt::delete(credential)))?);
    }
    let highest = view.records().map(|(record, _)| record.generation).max().unwrap_or(0);
    let let_go = view.let_go().iter().map(|let_go| let_go.record.generation);
    let last = let_go.chain(view.status_before().shown_generation());
    let generations = (view.first_unread()..=highest).chain(last.flat_map(|last| last.saturating_sub(1).max(1)..=last));
    for generation in generations {
        let name = AccessKeyId::of(&view.claim().uid, generation).secret_name();
        kept = kept.or(tolerate(remove_by_name(view, name))?);
    }
    kept.map_or(Ok(()), |kept| Err(kept.into()))
}

/// Whether none of the claim's credentials is left, as this pass saw live; or an earlier one, and
/// this one saw nothing else.
pub(super) fn are_revoked(view: &View) -> bool {
    let was_revoked =
        || view.status_before().conditions.iter().any(|condition| condition.reason == Reason::Revoked.to_string());
    match read_secrets_live(view) {
        Ok(()) => revoke_credentials(view).is_ok(),
        Err(_) => was_revoked() && view.credentials().next().is_none(),
    }
}

/// That the claim was bound is noted before the credentials go, which are the only other sign of it
/// (spec §2).
fn note_bound(view: &View) -> Result<(), Halt> {
    let Some((record, stored)) = view.record() else { return Ok(()) };
    let bound = view.credentials().next().is_some();
    if !bound {
        return Ok(());
    }
    // Whatever the policy is: it may be edited once the keys are gone.
    moves::mark_left(view, record)?;
    if view.claim().deletion == Deletion::Retain || record.adopted || record.settled {
        return Ok(());
    }
    let settled = BucketRecord { settled: true, ..record.clone() };
    Err(rewrite(view, &settled, stored, Change::Settle))
}

/// The consumer Secret under the name that the spec gives and under the one that was bound, if this
/// UID controls it.
fn remove_consumer_secrets(view: &View) -> Result<(), Halt> {
    let names = [Some(&view.claim().consumer_secret), view.status_before().bound_secret_name.as_ref()];
    for name in names.into_iter().flatten() {
        match view.consumer(name) {
            Knowledge::Unknown | Knowledge::Taken => return Err(Look::Consumer(name.clone()).into()),
            Knowledge::Present(secret) if secret.is_controlled_by(&view.claim().uid) => {
                return Err(Act::Delete(secret.reference()).into());
            }
            Knowledge::Present(_) | Knowledge::Absent => {}
        }
    }
    Ok(())
}

fn remove_record(view: &View) -> Result<(), Halt> {
    let left = view.all_own().find(|secret| BucketRecord::read(&secret.0).is_ok() || is_record(secret.name()));
    left.map_or(Ok(()), |secret| Err(Halt::delete(secret)))
}

/// Makes sure that there is no internal Secret of this name, whatever its labels say.
fn remove_by_name(view: &View, name: String) -> Result<(), Halt> {
    match view.own(&name) {
        Some(secret) => Err(Halt::delete(secret)),
        None => view.require_absent(&name),
    }
}
