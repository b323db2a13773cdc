//! Deletion of a claim, from the deletion timestamp on (spec §3.4).
//!
//! It depends on as little as possible: not on the backend, not on the rest of the spec, not on
//! cached data about the claim and its Secrets.
//!
//! public access withdrawn → credentials revoked → bucket → Secrets gone → record gone → finalizer
//! removed.

use crate::api::{AccessKeyId, AnonymousBinding, BucketName, BucketRecord, Deletion, Endpoint, Reason, RecordName};

use super::answer::BackendSeen;
use super::cause::ClaimCause;
use super::credentials::{KeyHolder, delete_secret, rewrite, unpublish};
use super::halt::{Halt, Outcome};
use super::patch::Change;
use super::secret::{Stored, is_record};
use super::step::{Act, Look};
use super::stop::Stop;
use super::view::{View, wanted_bucket};
use super::walk::tolerate;
use super::{consent, moves, note, removal};

/// Walks through the steps of a deletion. `Ok` means that nothing is left to do.
pub(super) fn walk(view: &View) -> Result<Outcome, Halt> {
    if view.is_finalizer_removed() || !view.claim().has_finalizer() {
        return Ok(Outcome::default());
    }
    read_live(view)?;
    if view.records().next().is_none() {
        note::take_back(view)?;
    }
    end_access(view)?;
    if view.claim().paused {
        return Err(Stop::new(ClaimCause::PausedInDeletion).into());
    }
    removal::walk(view)?;
    remove_consumer_secrets(view)?;
    removal::await_unanswered(view)?;
    note::take_back(view)?;
    remove_record(view)?;
    look_once_more(view)?;
    Err(Act::RemoveFinalizer(view.claim().id.clone()).into())
}

/// Ends public access and every key, and does nothing else.
pub(super) fn end_keys(view: &View) -> Result<Outcome, Halt> {
    read_live(view)?;
    end_access(view)?;
    Ok(Outcome::default())
}

/// Ends all access. A Secret kept by a finalizer of another party does not block the rest.
fn end_access(view: &View) -> Result<(), Halt> {
    let open = tolerate(withdraw_public_access(view))?;
    let revoked = tolerate(revoke_credentials(view))?;
    open.or(revoked).map_or(Ok(()), |kept| Err(kept.into()))
}

/// Reads the claim and its records live, so that an outdated cache can't run a deletion twice. A
/// successful write to the cached version of a record counts as a live read of it.
fn read_live(view: &View) -> Result<(), Halt> {
    view.require_live()?;
    if let Some(binding) = view.binding() {
        // Public access ends first, even if the rest is blocked.
        tolerate(Err(remove(view, binding)))?;
    }
    find_secrets(view)?;
    tolerate(withdraw_public_access(view))?;
    note_end(view)?;
    read_records(view)
}

/// Finds the Secrets of the claim. A single complete record is enough. Without a record, or with
/// one that notes that others may exist, the claim's Secrets are listed.
fn find_secrets(view: &View) -> Result<(), Halt> {
    if let Some(name) = view.taken().next() {
        return Err(Look::Internal(name.to_owned()).into());
    }
    if told(view).is_some() {
        return Ok(());
    }
    view.require_list()?;
    find_record(view, pinned_record(view))?;
    find_record(view, wanted_record(view)?)
}

/// Returns the claim's only record, stored or removed by this deletion, if its notes account for
/// everything else that the claim may have.
fn told(view: &View) -> Option<&BucketRecord> {
    let mut secrets = view.all_own().filter(|secret| is_record_like(secret));
    let mut let_go = view.let_go().iter().map(|let_go| &let_go.record);
    let record = match (secrets.next(), secrets.next()) {
        (Some(secret), None) => view.records().find(|(_, stored)| stored.name() == secret.name()).map(|(it, _)| it),
        (None, _) => let_go.next().filter(|record| let_go.next().is_none() && view.is_absent(record.name().as_str())),
        (Some(_), Some(_)) => None,
    };
    record.filter(|record| record.tells_all())
}

fn is_record_like(secret: &Stored) -> bool {
    is_record(secret.name()) || BucketRecord::read(&secret.0).is_ok()
}

fn read_records(view: &View) -> Result<(), Halt> {
    match view.records().find(|(_, stored)| !view.is_live(stored.name())) {
        Some((_, stored)) => Err(Look::Internal(stored.name().to_owned()).into()),
        None => Ok(()),
    }
}

/// Returns the step that deletes a Secret of ours. The Secret is read live first if a finalizer of
/// another party keeps it according to the cache.
fn remove(view: &View, secret: &Stored) -> Halt {
    if secret.kept_by().is_some() && !view.is_live(secret.name()) {
        return Look::Internal(secret.name().to_owned()).into();
    }
    delete_secret(view, secret)
}

/// Reads once more right before the finalizer is removed.
///
/// A create request for a credential or binding may have taken effect since its name was read, and
/// a single read may be stale. So the names of the last two credentials are read again, and that of
/// the binding if there may be one. Without a complete record, a second live list must be empty.
fn look_once_more(view: &View) -> Result<(), Halt> {
    let Some(record) = told(view) else { return view.require_last_list() };
    let uid = &view.claim().uid;
    let lowest = record.generation.saturating_sub(1).max(record.lowest_generation());
    let credentials = (lowest..=record.generation).map(|it| AccessKeyId::of(uid, it).secret_name());
    let names = credentials.chain(record.public.then(|| AnonymousBinding::name(uid)));
    match names.into_iter().find(|name| !view.is_absent_to_the_last(name)) {
        Some(name) => Err(Look::Internal(name).into()),
        None => Ok(()),
    }
}

/// Reads the record with this name. If its labels were removed, no list contains it.
fn find_record(view: &View, name: Option<RecordName>) -> Result<(), Halt> {
    let Some(name) = name else { return Ok(()) };
    if view.is_absent(name.as_str()) || view.own(name.as_str()).is_some() {
        return Ok(());
    }
    Err(Look::Internal(name.to_string()).into())
}

/// Returns the name of the record for the bucket in the status.
fn pinned_record(view: &View) -> Option<RecordName> {
    let status = &view.claim().status;
    let endpoint = Endpoint::parse(&status.backend.as_ref()?.endpoint).ok()?;
    let bucket = BucketName::parse(status.bucket_name.as_deref()?).ok()?;
    Some(RecordName::of(&endpoint, &bucket))
}

/// Returns the name of the record for the bucket in the spec, which may not have reached the status
/// yet. A missing backend does not block the deletion: without the backend that determines the
/// name, there is nothing to look for.
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
    if view.binding().is_none() && told(view).is_some_and(|record| !record.public) {
        return Ok(());
    }
    remove_by_name(view, AnonymousBinding::name(&view.claim().uid))
}

/// Deletes every credential, by UID and by computed name.
///
/// Names are checked for every generation from the lowest in the record to its current one, because
/// a list does not show a credential that lost its labels.
///
/// Without a complete record, names also come from the generation in the status and from those of
/// records that an earlier pass has released, together with the generation before each. They are
/// read even if the record is gone, and again after the second list, because a read that found
/// nothing may have been stale.
fn revoke_credentials(view: &View) -> Result<(), Halt> {
    let mut kept = None;
    for credential in view.credentials() {
        kept = kept.or(tolerate(Err(remove(view, credential)))?);
    }
    let highest = view.records().map(|(record, _)| record.generation).max().unwrap_or(0);
    let let_go = view.let_go().iter().map(|let_go| let_go.record.generation);
    let untold = told(view).is_none();
    let last = let_go.chain(view.status_before().shown_generation()).filter(|_| untold);
    let generations = (view.first_unread()..=highest).chain(last.flat_map(|last| last.saturating_sub(1).max(1)..=last));
    for generation in generations {
        let name = AccessKeyId::of(&view.claim().uid, generation).secret_name();
        kept = kept.or(tolerate(remove_by_name(view, name))?);
    }
    kept.map_or(Ok(()), |kept| Err(kept.into()))
}

/// Returns true if no credential of the claim is left according to live reads of this pass, or of
/// an earlier pass while this one saw nothing else.
pub(super) fn are_revoked(view: &View) -> bool {
    let was_revoked =
        || view.status_before().conditions.iter().any(|condition| condition.reason == Reason::Revoked.to_string());
    match find_secrets(view).and_then(|()| read_records(view)) {
        Ok(()) => revoke_credentials(view).is_ok(),
        Err(_) => was_revoked() && !view.credentials().any(|secret| view.is_live(secret.name())),
    }
}

/// Marks each record of the claim as one whose claim is ending. This ends every access to its
/// bucket, however many there are.
///
/// The record also notes that the claim was bound. This happens before the credentials are deleted,
/// which are the only other sign of it (spec §2).
fn note_end(view: &View) -> Result<(), Halt> {
    let Some((current, stored)) = view.record() else { return Ok(()) };
    let bound = view.credentials().next().is_some();
    let settles = bound && view.claim().deletion != Deletion::Retain && !current.adopted;
    let open = view.records().find(|(record, _)| !record.ending || !record.accesses.is_empty());
    if let Some((record, stored)) = open {
        let is_current = record.is_of_bucket_of(current);
        let ending = BucketRecord {
            ending: true,
            settled: record.settled || (is_current && settles),
            // Independent of the policy, which may be edited once the keys are gone.
            adopted: record.adopted || (bound && moves::is_left(view, record, current)),
            ..consent::closed(record)
        };
        return Err(rewrite(view, &ending, stored, Change::End));
    }
    if !bound {
        return Ok(());
    }
    moves::mark_left(view, current)?;
    if !settles || current.settled {
        return Ok(());
    }
    let settled = BucketRecord { settled: true, ..current.clone() };
    Err(rewrite(view, &settled, stored, Change::Settle))
}

/// Deletes the consumer Secrets under the name in the spec and the name that was bound, if this
/// claim's UID controls them.
fn remove_consumer_secrets(view: &View) -> Result<(), Halt> {
    let names = [Some(&view.claim().consumer_secret), view.status_before().bound_secret_name.as_ref()];
    for name in names.into_iter().flatten() {
        unpublish(view, name)?;
    }
    Ok(())
}

fn remove_record(view: &View) -> Result<(), Halt> {
    let left = view.all_own().find(|secret| is_record_like(secret));
    left.map_or(Ok(()), |secret| Err(remove(view, secret)))
}

/// Ensures that no internal Secret with this name exists, with or without labels.
fn remove_by_name(view: &View, name: String) -> Result<(), Halt> {
    match view.own(&name) {
        Some(secret) => Err(remove(view, secret)),
        None => view.require_absent(&name),
    }
}
