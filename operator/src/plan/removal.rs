//! Removal of the bucket of a claim that is being deleted (spec §3.4). Nothing is destroyed unless
//! it is proved to be this claim's.

use std::collections::BTreeMap;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::api::{BucketRecord, ConditionType, Deletion};

use super::answer::{BackendSeen, BucketSeen, PurgeEnd};
use super::cause::{Cause, DeletionCause};
use super::credentials::delete_secret;
use super::halt::Halt;
use super::step::Act;
use super::stop::Stop;
use super::target::Target;
use super::view::{View, names_claim_uid};

/// Handles every bucket that the claim holds: usually one, two in the middle of a move. `Ok` means
/// that nothing is left to do about the last of them.
pub(super) fn walk(view: &View) -> Result<(), Halt> {
    let records: Vec<_> = view.records().collect();
    if view.claim().deletion == Deletion::Retain {
        return Ok(());
    }
    for (record, stored) in &records {
        see_to(view, record)?;
        if records.len() > 1 {
            // The view stores the state of one bucket at a time.
            return Err(delete_secret(view, stored));
        }
    }
    Ok(())
}

/// Deletes the bucket if it is proved ours. `Ok` means that nothing is left to do about it.
fn see_to(view: &View, record: &BucketRecord) -> Result<(), Halt> {
    if record.adopted || view.is_removed(record) {
        return Ok(());
    }
    // A request without an answer may still change the result of the look below.
    await_unanswered(view)?;
    let target = reach(view, record)?;
    match prove(view, record, &target)? {
        Proof::Ours if view.claim().deletion == Deletion::Force => empty_and_delete(view, target),
        Proof::Ours => delete_empty(view, target),
        Proof::OursIfEmpty if view.bucket_removed().is_none() && view.is_empty(&target)? => Err(delete(view, target)),
        Proof::OursIfEmpty | Proof::None => Ok(()),
    }
}

/// Waits for a request without an answer. It may still take effect and must not hit the next holder
/// of the bucket, so the record stays until its deadline has passed (spec §3.2).
pub(super) fn await_unanswered(view: &View) -> Result<(), Halt> {
    view.unanswered().map_or(Ok(()), |time| Err(Stop::new(DeletionCause::Unanswered).waiting(time).into()))
}

/// Returns the time of the next pass over a claim whose bucket somebody has to empty, which no
/// watch reports. It is within half a minute for the first ten minutes, and later the longer the
/// claim has waited.
pub(super) fn look_again(view: &View, stop: &Stop, now: Timestamp) -> Option<Timestamp> {
    const SOONEST: SignedDuration = SignedDuration::from_secs(25);
    let Cause::Deletion(DeletionCause::NotEmpty { .. }) = stop.cause else { return None };
    let stalled = view.claim().status.conditions.iter().find(|c| c.type_ == ConditionType::Stalled.as_str());
    let waited = stalled.map_or(SignedDuration::ZERO, |condition| now.duration_since(condition.last_transition_time.0));
    now.checked_add(SOONEST.max(waited / 20)).ok()
}

/// Returns the location of the bucket: the current endpoint of the backend that the record names.
fn reach(view: &View, record: &BucketRecord) -> Result<Target, Halt> {
    let (backend, bucket) = (record.backend.clone(), record.bucket.clone());
    let cause = match view.backend(&record.backend)? {
        BackendSeen::Present { backend: present, .. } if view.is_served_by_another(present) => {
            DeletionCause::BackendAnothers { backend, bucket, operator: present.served_by.clone() }
        }
        BackendSeen::Present { backend, .. } => {
            return Ok(Target { endpoint: backend.endpoint.clone(), ..Target::of(record) });
        }
        BackendSeen::Missing => DeletionCause::BackendMissing { backend, bucket },
        BackendSeen::Invalid(why) => DeletionCause::BackendInvalid { backend, bucket, why: why.clone() },
    };
    Err(Stop::new(cause).into())
}

/// Proof that entitles the operator to delete a bucket.
enum Proof {
    /// The record and tags with the claim's UID. Without tagging support of the store, the record
    /// of a claim that was bound.
    Ours,
    /// The record noted the bucket's absence, and nobody has tagged it since: an unfinished create.
    OursIfEmpty,
    /// No proof.
    None,
}

fn prove(view: &View, record: &BucketRecord, target: &Target) -> Result<Proof, Halt> {
    let moved = target.endpoint != record.endpoint;
    match view.look_at(target)? {
        BucketSeen::Present(Some(tags)) if names_claim_uid(tags, record) => Ok(Proof::Ours),
        BucketSeen::Present(_) | BucketSeen::Absent | BucketSeen::Forbidden if moved => {
            let (bucket, backend) = (record.bucket.clone(), record.backend.clone());
            let (then, now) = (record.endpoint.clone(), target.endpoint.clone());
            Err(Stop::new(DeletionCause::BackendMoved { backend, bucket, then, now }).into())
        }
        // The claim never got as far as creating a bucket.
        BucketSeen::Forbidden if !record.settled && !record.absence => Ok(Proof::None),
        // Perhaps only our permission was removed. A bucket that can't be inspected is neither
        // proved ours nor another's.
        BucketSeen::Forbidden => Err(Stop::new(DeletionCause::Forbidden { bucket: record.bucket.clone() }).into()),
        BucketSeen::Present(None) if record.settled => Ok(Proof::Ours),
        BucketSeen::Present(tags) => {
            let untagged = tags.as_ref().is_none_or(BTreeMap::is_empty);
            let unfinished = untagged && record.absence && !record.settled;
            Ok(if unfinished { Proof::OursIfEmpty } else { Proof::None })
        }
        // A bucket that is already gone counts as deleted.
        BucketSeen::Absent => Ok(Proof::None),
    }
}

fn delete_empty(view: &View, target: Target) -> Result<(), Halt> {
    if view.bucket_removed().is_none() && view.is_empty(&target)? {
        return Err(delete(view, target));
    }
    Err(Stop::new(DeletionCause::NotEmpty { bucket: target.bucket }).into())
}

/// Empties the bucket in slices, so that other claims get their turn and an edit of the policy is
/// noticed in between.
fn empty_and_delete(view: &View, target: Target) -> Result<(), Halt> {
    match (view.purge_end(), view.bucket_removed()) {
        (_, Some(_)) => Err(Stop::new(DeletionCause::FillsAgain { bucket: target.bucket }).into()),
        (None, None) => {
            let most = view.setting().purge_slice;
            Err(confirmed(view, Act::Purge(target, most)))
        }
        (Some(PurgeEnd::Empty), None) => Err(delete(view, target)),
        (Some(PurgeEnd::Refused(code)), None) => {
            Err(Stop::new(DeletionCause::ObjectsRefused { bucket: target.bucket, code: code.clone() }).into())
        }
        (Some(PurgeEnd::More | PurgeEnd::Failed(_)), None) => Err(Stop::new(DeletionCause::Purging).into()),
    }
}

fn delete(view: &View, target: Target) -> Halt {
    confirmed(view, Act::DeleteBucket(target))
}

/// Reads the claim once more right before anything is destroyed, so that an edit to `Retain` is not
/// missed.
fn confirmed(view: &View, act: Act) -> Halt {
    view.require_claim_just_read().err().unwrap_or_else(|| act.into())
}
