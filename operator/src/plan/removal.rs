//! What becomes of the bucket of a claim that is deleted (spec §3.4): nothing is destroyed that
//! isn't proved to be this claim's.

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

/// Sees to every bucket that the claim holds: mostly one, two in the middle of a move. `Ok` =
/// nothing is left to do about the last of them.
pub(super) fn walk(view: &View) -> Result<(), Halt> {
    let records: Vec<_> = view.records().collect();
    if view.claim().deletion == Deletion::Retain {
        return Ok(());
    }
    for (record, stored) in &records {
        see_to(view, record)?;
        if records.len() > 1 {
            // What this pass knows of a bucket is of one at a time.
            return Err(delete_secret(view, stored));
        }
    }
    Ok(())
}

/// Deletes the bucket if it is proved ours. `Ok` = nothing is left to do about it.
fn see_to(view: &View, record: &BucketRecord) -> Result<(), Halt> {
    if record.adopted || view.is_removed(record) {
        return Ok(());
    }
    // A call without an answer may still change what the look below would show.
    await_unanswered(view)?;
    let target = reach(view, record)?;
    match prove(view, record, &target)? {
        Proof::Ours if view.claim().deletion == Deletion::Force => empty_and_delete(view, target),
        Proof::Ours => delete_empty(view, target),
        Proof::OursIfEmpty if view.bucket_removed().is_none() && view.is_empty(&target)? => Err(delete(view, target)),
        Proof::OursIfEmpty | Proof::None => Ok(()),
    }
}

/// A call without an answer can still happen, and must not hit the name's next holder: until its
/// deadline has passed the record stays (spec §3.2).
pub(super) fn await_unanswered(view: &View) -> Result<(), Halt> {
    view.unanswered().map_or(Ok(()), |time| Err(Stop::new(DeletionCause::Unanswered).waiting(time).into()))
}

/// When a claim is looked at again whose bucket somebody is to empty, which no watch tells of:
/// within half a minute for the first ten minutes, and the longer it has waited, the more seldom.
pub(super) fn look_again(view: &View, stop: &Stop, now: Timestamp) -> Option<Timestamp> {
    const SOONEST: SignedDuration = SignedDuration::from_secs(25);
    let Cause::Deletion(DeletionCause::NotEmpty { .. }) = stop.cause else { return None };
    let stalled = view.claim().status.conditions.iter().find(|c| c.type_ == ConditionType::Stalled.as_str());
    let waited = stalled.map_or(SignedDuration::ZERO, |condition| now.duration_since(condition.last_transition_time.0));
    now.checked_add(SOONEST.max(waited / 20)).ok()
}

/// Where the bucket is: at the backend that the record names, wherever that points to now.
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

/// What entitles us to delete a bucket.
enum Proof {
    /// The record and tags that carry this UID; the record alone where the store has no tagging and
    /// the claim was bound.
    Ours,
    /// The record saw it absent, and nobody tagged it since: a create that nobody came to finish.
    OursIfEmpty,
    /// Nothing.
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
        // The claim has never come as far as making one.
        BucketSeen::Forbidden if !record.settled && !record.absence => Ok(Proof::None),
        // Perhaps only our right to look was taken away: what can't be seen is neither ours nor
        // another's.
        BucketSeen::Forbidden => Err(Stop::new(DeletionCause::Forbidden { bucket: record.bucket.clone() }).into()),
        BucketSeen::Present(None) if record.settled => Ok(Proof::Ours),
        BucketSeen::Present(tags) => {
            let untagged = tags.as_ref().is_none_or(BTreeMap::is_empty);
            let unfinished = untagged && record.absence && !record.settled;
            Ok(if unfinished { Proof::OursIfEmpty } else { Proof::None })
        }
        // A bucket already gone counts as done, and is not asked about.
        BucketSeen::Absent => Ok(Proof::None),
    }
}

fn delete_empty(view: &View, target: Target) -> Result<(), Halt> {
    if view.bucket_removed().is_none() && view.is_empty(&target)? {
        return Err(delete(view, target));
    }
    Err(Stop::new(DeletionCause::NotEmpty { bucket: target.bucket }).into())
}

/// In slices, so that other claims get their turn and an edit of the policy is seen in between.
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

/// The claim is read once more right before anything is destroyed, so that an edit to `Retain` is
/// not missed.
fn confirmed(view: &View, act: Act) -> Halt {
    view.require_claim_just_read().err().unwrap_or_else(|| act.into())
}
