//! From one bucket to another: `backendRef` edited, a backend's endpoint edited (spec §3.7, §3.2).
//!
//! A move goes by records. The one of the new bucket is held beside the one that the claim is bound by, and aims at a
//! later generation; with the first credential of that generation the claim is bound by it, and everything else
//! follows as in a rotation. The record that was left stays until the last key to its bucket is gone, so that nobody
//! else takes that bucket while an old key reaches it.

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::api::{AccessKeyId, Backend, BucketRecord, Desired, Reason, RecordName};

use super::answer::{BucketSeen, Checked, Holder, Stored};
use super::bind::{Settled, blank, hold, require_fresh, target, wanted};
use super::bucket::{self, record_patch, rewrite};
use super::credentials::{facts, public_access_to};
use super::repair::{Change, Trigger};
use super::step::{Act, Concern, Halt, Look, Stop, Target, tolerate};
use super::view::View;

/// For a claim that was never bound: makes sure that it holds the bucket that spec and template ask for now, and no
/// other. One that was made already under an earlier template stays.
pub(super) fn choose(view: &View, desired: &Desired, record: &BucketRecord, stored: &Stored) -> Result<(), Halt> {
    let (at, to) = (target(record), wanted(view, desired)?);
    let same_store = at.backend == to.backend && at.endpoint == to.endpoint;
    let mut kept = record.name();
    if at != to && !(same_store && bucket::is_made(view, record)?) {
        if to.record() == kept {
            let renamed = BucketRecord { backend: to.backend, ..record.clone() };
            require_fresh(view)?;
            return Err(rewrite(view, &renamed, stored, Change::Follow));
        }
        if view.record_named(&to.record()).is_none() {
            return hold(view, blank(view, to, view.next_generation()));
        }
        kept = to.record();
    }
    match view.records().find(|(_, other)| other.name() != kept.as_str()) {
        Some((left, left_in)) => match view.unanswered {
            // A create without an answer may still land (spec §3.2).
            Some(time) => Err(Halt::Wait(time)),
            None => let_go(view, left_in, public_access_to(view, left)),
        },
        None => Ok(()),
    }
}

/// For a bound claim whose `backendRef` was changed: holds the new bucket, makes it, and mints its first credential.
/// Whatever stops that leaves the claim bound as it is.
pub(super) fn walk(view: &View, desired: &Desired, from: &BucketRecord, stored: &Stored) -> Result<(), Halt> {
    advance(view, desired, from, stored).map_err(|halt| match halt {
        Halt::Stop(stop) => Stop { concerns: Concern::Ready, ..*stop }.into(),
        halt => halt,
    })
}

fn advance(view: &View, desired: &Desired, from: &BucketRecord, stored: &Stored) -> Result<(), Halt> {
    let to = wanted(view, desired)?;
    if to.record() == from.name() {
        return rename(view, from, stored, &to);
    }
    let Some((held, held_in)) = view.record_named(&to.record()) else {
        let handled_rotate_request = from.handled_rotate_request.clone();
        return hold(view, BucketRecord { handled_rotate_request, ..blank(view, to, view.next_generation()) });
    };
    if has_other_key(view, from) {
        // While it waits its record may come to be alone: the key of its number must not be one to the other bucket then.
        let may_be_mistaken = view.credential(held.generation).is_some() && !view.is_bound_by(&held);
        let wait = || wait_for_expiry(&to).into();
        return Err(if may_be_mistaken { raise(view, from, &held, &held_in) } else { wait() });
    }
    if held.backend != to.backend {
        // Left by an earlier move, under another name of the same store.
        require_fresh(view)?;
        return Err(rewrite(view, &BucketRecord { backend: to.backend, ..held }, &held_in, Change::Follow));
    }
    bucket::obtain(view, desired, &held, &held_in)?;
    mint(view, desired, from, &held, &held_in)
}

/// The first credential for the new bucket, unless a live list shows a key besides the current one.
fn mint(view: &View, desired: &Desired, from: &BucketRecord, to: &BucketRecord, stored: &Stored) -> Result<(), Halt> {
    require_fresh(view)?;
    if view.own_lists == 0 {
        return Err(Look::Own.into());
    }
    if has_other_key(view, from) {
        return Err(wait_for_expiry(&target(to)).into());
    }
    let facts = facts(desired, to);
    let name = facts.access_key_id().secret_name();
    if is_overtaken(from, to) {
        return Err(raise(view, from, to, stored));
    }
    if view.taken.contains(&name) {
        return Err(Look::Internal(name).into());
    }
    if view.own_target == Some(to.generation) {
        return Err(Act::Mint(facts).into());
    }
    if !view.absent.contains(&name) {
        return Err(Look::Internal(name).into());
    }
    Err(raise(view, from, to, stored))
}

/// Whether a rotation meanwhile aimed higher than the record of the new bucket, or took a request as handled.
fn is_overtaken(from: &BucketRecord, to: &BucketRecord) -> bool {
    let handled = from.handled_rotate_request.is_some() && to.handled_rotate_request != from.handled_rotate_request;
    to.generation <= from.generation || handled
}

/// Has the record of the new bucket aim above all that was aimed at.
fn raise(view: &View, from: &BucketRecord, to: &BucketRecord, stored: &Stored) -> Halt {
    if let Err(halt) = require_fresh(view) {
        return halt;
    }
    let raised = BucketRecord {
        generation: view.next_generation(),
        handled_rotate_request: from.handled_rotate_request.clone().or_else(|| to.handled_rotate_request.clone()),
        ..to.clone()
    };
    rewrite(view, &raised, stored, Change::RaiseGeneration(Trigger::Move))
}

/// Before the record that the claim is bound by aims at another generation: that of a move under way aims higher, and one
/// that lost its labels is found by its name alone. `Ok` = it is known, or can't be.
pub(super) fn find_target(view: &View, current: &RecordName) -> Result<(), Halt> {
    let Ok(desired) = &view.claim.desired else { return Ok(()) };
    let to = match wanted(view, desired) {
        Ok(to) => to.record(),
        // What is wrong with the backend or with the name is told by the move.
        Err(Halt::Stop(_)) => return Ok(()),
        Err(halt) => return Err(halt),
    };
    let is_known = to == *current || view.own.contains_key(to.as_str()) || view.absent.contains(to.as_str());
    let is_anothers =
        |(name, holder): &(_, Holder)| *name == to && !matches!(holder, Holder::Unknown | Holder::Suspect);
    if is_known || view.holder.as_ref().is_some_and(is_anothers) {
        return Ok(());
    }
    Err(Look::Internal(to.to_string()).into())
}

/// Whether there is a key besides the current one. Two live at most.
fn has_other_key(view: &View, current: &BucketRecord) -> bool {
    let current = AccessKeyId::of(&current.uid, current.generation).secret_name();
    view.credentials().any(|secret| secret.name() != current)
}

fn wait_for_expiry(to: &Target) -> Stop {
    let message = format!(
        "the move to bucket {} at S3Backend {} waits until the credential before the current one has expired",
        to.bucket, to.backend
    );
    Stop::refused(Reason::BackendNotReady, Concern::Ready, message)
}

/// Two backends with one endpoint: the bucket is the same and nothing has to be moved. The record names the new
/// backend, if that one sees the bucket as the other does; what names the backend in the other Secrets is repaired.
fn rename(view: &View, record: &BucketRecord, stored: &Stored, to: &Target) -> Result<(), Halt> {
    match bucket::look(view, to)? {
        BucketSeen::Present(Some(tags)) if !record.adopted && !bucket::names_claim_uid(tags, record) => {
            Err(bucket::exists(record, "its tags don't name this claim").into())
        }
        BucketSeen::Present(_) => {
            require_fresh(view)?;
            Err(rewrite(view, &BucketRecord { backend: to.backend.clone(), ..record.clone() }, stored, Change::Follow))
        }
        BucketSeen::Absent => Err(bucket::missing(record, "is not to be seen through the new backend").into()),
        BucketSeen::Forbidden => Err(bucket::exists(record, "it is not the new backend's to use").into()),
    }
}

/// The backend of a bound claim points to another endpoint: if the bucket is there, tagged as this claim's, the record
/// is made again for it and aims at the same generation; the keys go on working.
pub(super) fn follow(view: &View, record: &BucketRecord, stored: &Stored, backend: &Backend) -> Result<(), Halt> {
    let there = Target { endpoint: backend.endpoint.clone(), ..target(record) };
    bucket::check(view, record, there.clone())?;
    let seen = view.bucket.as_ref().filter(|_| view.asked_about(&there) && view.checked == Checked::Seen);
    match seen {
        Some(BucketSeen::Present(Some(tags))) if bucket::names_claim_uid(tags, record) => {}
        _ if bucket::is_missing(view, record) => {
            let why = format!("is not at {}, where S3Backend {} points to now", backend.endpoint, backend.name);
            return Err(bucket::missing(record, &why).into());
        }
        _ => return Err(moved(backend, record).into()),
    }
    let Some((made, made_in)) = view.record_named(&there.record()) else {
        // It notes that the claim is bound, which the key may tell no more by the time it is all that there is.
        return hold(view, BucketRecord { endpoint: there.endpoint, absence: false, settled: true, ..record.clone() });
    };
    let taken_over = BucketRecord {
        backend: record.backend.clone(),
        adopted: record.adopted || made.adopted,
        settled: record.settled || made.settled,
        generation: record.generation,
        handled_rotate_request: record.handled_rotate_request.clone(),
        ..made
    };
    require_fresh(view)?;
    match record_patch(view, &taken_over, &made_in, Change::Follow) {
        Some(patch) => Err(Act::Patch(patch).into()),
        None => Err(Halt::delete(stored)),
    }
}

fn moved(backend: &Backend, record: &BucketRecord) -> Stop {
    let message = format!(
        "S3Backend {} now points to {}, the bucket is held at {}",
        backend.name, backend.endpoint, record.endpoint
    );
    Stop::refused(Reason::BackendNotReady, Concern::Ready, message)
}

/// The record of a bucket that the claim has left, to which there is still a key, notes that the bucket is to be left alone,
/// whatever becomes of the claim. Before anything that may stop a pass.
pub(super) fn mark_left(view: &View, current: &BucketRecord) -> Result<(), Halt> {
    let left = |record: &BucketRecord| !record.adopted && view.keys_to(record).next().is_some();
    match others(view, current).find(|(record, _)| !is_followed(record, current) && left(record)) {
        Some((record, stored)) => {
            require_fresh(view)?;
            Err(rewrite(view, &BucketRecord { adopted: true, ..record.clone() }, stored, Change::Leave))
        }
        None => Ok(()),
    }
}

/// Records beside the one that the claim is bound by.
fn others<'a>(view: &'a View, current: &BucketRecord) -> impl Iterator<Item = &'a (BucketRecord, Stored)> {
    view.records().filter(|(record, _)| !record.is_of_bucket_of(current))
}

/// After its backend's endpoint was edited: the keys to it are those to the current one.
fn is_followed(record: &BucketRecord, current: &BucketRecord) -> bool {
    record.backend == current.backend && record.bucket == current.bucket
}

/// Lets go of records that the claim is no longer bound by and doesn't want. One whose bucket still has a key waits for it
/// to go.
pub(super) fn leave(view: &View, desired: &Desired, current: &BucketRecord, now: Timestamp) -> Result<Settled, Halt> {
    let pending = |other: &BucketRecord| {
        desired.backend != current.backend
            && wanted(view, desired).map_or(other.backend == desired.backend, |to| to.record() == other.name())
    };
    let mut settled = Settled::default();
    for (record, stored) in others(view, current) {
        // What opens a bucket that the claim keeps stays: keys and public access are those of its current record.
        let followed = is_followed(record, current);
        let has_key = !followed && view.keys_to(record).next().is_some();
        if has_key || pending(record) {
            continue;
        }
        match view.unanswered {
            Some(time) => {
                settled.wake = SignedDuration::try_from(time).ok().and_then(|time| now.checked_add(time).ok());
            }
            None => {
                let open = public_access_to(view, record).filter(|_| !followed);
                settled.impaired = tolerate(let_go(view, stored, open))?.or(settled.impaired);
            }
        }
    }
    Ok(settled)
}

/// A live list has shown that there is no key to its bucket. Nor may the public get to it (`open`), which what stops the way
/// to the next bucket would leave as it is.
fn let_go(view: &View, stored: &Stored, open: Option<&Stored>) -> Result<(), Halt> {
    require_fresh(view)?;
    if view.own_lists == 0 {
        return Err(Look::Own.into());
    }
    Err(Halt::delete(open.unwrap_or(stored)))
}
