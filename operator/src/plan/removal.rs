//! What becomes of the bucket of a claim that is deleted (spec §3.4): nothing is destroyed that isn't proved to be this
//! claim's.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::api::{BucketRecord, Deletion, Reason};

use super::answer::{BackendSeen, BucketSeen, DeleteAnswer, PurgeEnd};
use super::bind::target;
use super::bucket::{self, names_claim_uid};
use super::step::{Act, Concern, Halt, Look, Stop, Target, Then};
use super::view::View;

/// How a claim that can't be deleted is let go. Both in one patch: forceDelete without Delete is refused.
pub(super) const WAY_OUT: &str =
    "to let the claim go and keep the bucket, set forceDelete: false and deletionPolicy: Retain in one patch";

/// Sees to every bucket that the claim holds: mostly one, two in the middle of a move. `Ok` = nothing is left to do
/// about the last of them.
pub(super) fn walk(view: &View) -> Result<(), Halt> {
    let records: Vec<_> = view.records().collect();
    if view.claim.deletion == Deletion::Retain {
        return Ok(());
    }
    for (record, stored) in &records {
        see_to(view, record)?;
        if records.len() > 1 {
            // What this pass knows of a bucket is of one at a time.
            return Err(Halt::delete(stored));
        }
    }
    Ok(())
}

/// Deletes the bucket if it is proved ours. `Ok` = nothing is left to do about it.
fn see_to(view: &View, record: &BucketRecord) -> Result<(), Halt> {
    if record.adopted || is_deleted(view, record) {
        return Ok(());
    }
    // A call without an answer may still change what the look below would show.
    await_unanswered(view)?;
    let target = reach(view, record)?;
    match prove(view, record, &target)? {
        Proof::Ours if view.claim.deletion == Deletion::Force => empty_and_delete(view, target),
        Proof::Ours => delete_empty(view, target),
        Proof::OursIfEmpty if view.removed.is_none() && is_empty(view, &target)? => Err(delete(view, target)),
        Proof::OursIfEmpty | Proof::None => Ok(()),
    }
}

/// Whether this pass saw that there is no such bucket, or deleted it.
pub(super) fn is_gone(view: &View, record: &BucketRecord) -> bool {
    let seen_absent = view.bucket == Some(BucketSeen::Absent) && view.bucket_at == Some(target(record));
    seen_absent || is_deleted(view, record)
}

fn is_deleted(view: &View, record: &BucketRecord) -> bool {
    matches!(view.removed, Some(DeleteAnswer::Deleted | DeleteAnswer::Absent)) && view.asked_about_bound(record)
}

/// A call without an answer can still happen, and must not hit the name's next holder: until its deadline has passed
/// the record stays (spec §3.2).
pub(super) fn await_unanswered(view: &View) -> Result<(), Halt> {
    view.unanswered.map_or(Ok(()), |time| Err(Halt::Wait(time)))
}

/// Where the bucket is: at the backend that the record names, wherever that points to now.
fn reach(view: &View, record: &BucketRecord) -> Result<Target, Halt> {
    let (name, bucket) = (&record.backend, &record.bucket);
    match view.backends.get(name) {
        Some(BackendSeen::Present { backend, .. }) => {
            Ok(Target { endpoint: backend.endpoint.clone(), ..target(record) })
        }
        Some(BackendSeen::Missing) => {
            Err(blocked(&format!("there is no S3Backend {name} to delete bucket {bucket} with")).into())
        }
        Some(BackendSeen::Invalid(why)) => {
            Err(blocked(&format!("bucket {bucket} can't be deleted, S3Backend {name}: {why}")).into())
        }
        None => Err(Look::Backend(name.clone()).into()),
    }
}

/// What entitles us to delete a bucket.
enum Proof {
    /// The record and tags that carry this UID; the record alone where the store has no tagging and the claim was
    /// bound.
    Ours,
    /// The record saw it absent, and nobody tagged it since: a create that nobody came to finish.
    OursIfEmpty,
    /// Nothing.
    None,
}

fn prove(view: &View, record: &BucketRecord, target: &Target) -> Result<Proof, Halt> {
    let moved = target.endpoint != record.endpoint;
    match bucket::look(view, target)? {
        BucketSeen::Present(Some(tags)) if names_claim_uid(tags, record) => Ok(Proof::Ours),
        _ if moved => {
            let (bucket, name) = (&record.bucket, &record.backend);
            let (then, now) = (&record.endpoint, &target.endpoint);
            Err(blocked(&format!("bucket {bucket} is at {then}, S3Backend {name} now points to {now}")).into())
        }
        // The claim has never come as far as making one.
        BucketSeen::Forbidden if !record.settled && !record.absence => Ok(Proof::None),
        // Perhaps only our right to look was taken away: what can't be seen is neither ours nor another's.
        BucketSeen::Forbidden => {
            Err(blocked(&format!("the store does not let us see whose bucket {} is", record.bucket)).into())
        }
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
    if view.removed.is_none() && is_empty(view, &target)? {
        return Err(delete(view, target));
    }
    let bucket = &target.bucket;
    let message = format!("bucket {bucket} is not empty; empty it, or set forceDelete: true, or {WAY_OUT}");
    Err(Stop::refused(Reason::BucketNotEmpty, Concern::Ready, message).into())
}

/// In slices, so that other claims get their turn and an edit of the policy is seen in between.
fn empty_and_delete(view: &View, target: Target) -> Result<(), Halt> {
    let bucket = &target.bucket;
    let purging = |message: &str, then| Stop { then, ..Stop::refused(Reason::Purging, Concern::Ready, message) };
    match (&view.purge, view.removed) {
        (_, Some(_)) => {
            let message = format!(
                "all that bucket {bucket} showed is deleted, and it is not empty: somebody writes to it, or the store hides \
                 what it holds; {WAY_OUT}"
            );
            Err(purging(&message, Then::Retry("the bucket is not empty".to_owned())).into())
        }
        (None, None) => {
            let most = view.setting.purge_slice;
            Err(confirmed(view, Act::Purge(target, most)))
        }
        (Some(PurgeEnd::Empty), None) => Err(delete(view, target)),
        (Some(PurgeEnd::Refused(code)), None) => Err(blocked(&format!(
            "bucket {bucket} holds objects that the store refuses to delete ({code}), perhaps under object lock"
        ))
        .into()),
        (Some(PurgeEnd::More | PurgeEnd::Failed(_)), None) => {
            Err(purging("the bucket is being emptied", Then::After(Duration::ZERO)).into())
        }
    }
}

fn is_empty(view: &View, target: &Target) -> Result<bool, Halt> {
    view.bucket_empty.ok_or_else(|| Look::Contents(target.clone()).into())
}

fn delete(view: &View, target: Target) -> Halt {
    confirmed(view, Act::DeleteBucket(target))
}

/// The claim is read once more right before anything is destroyed, so that an edit to `Retain` is not missed.
fn confirmed(view: &View, act: Act) -> Halt {
    if view.confirmed { act.into() } else { Look::Claim.into() }
}

/// Somebody has to do something before the bucket can be deleted; or let go of it.
pub(super) fn blocked(what: &str) -> Stop {
    Stop::refused(Reason::DeletionBlocked, Concern::Ready, format!("{what}; {WAY_OUT}"))
}
