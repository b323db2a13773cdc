//! Moves between buckets after `backendRef` was edited, or after a backend's endpoint was edited
//! (spec §3.7, §3.2).
//!
//! A move is made of records. The record of the new bucket is created beside the one that the claim
//! is bound by, with a later generation. The first credential of that generation binds the claim to
//! the new bucket, and the rest follows as in a rotation. The record of the old bucket stays until
//! the last key to it is gone, so that no other claim gets that bucket while an old key opens it.

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::api::{AccessKeyId, Backend, BucketRecord, CredentialFacts, Desired};

use super::answer::{BucketSeen, Checked};
use super::bucket;
use super::cause::{BackendCause, Missing, NotTaken};
use super::consent;
use super::credentials::{KeyHolder, delete_secret, record_patch, rewrite};
use super::halt::{Halt, Outcome};
use super::hold::{blank, hold};
use super::ownership::exists;
use super::patch::{Change, Trigger};
use super::public;
use super::secret::Stored;
use super::step::Act;
use super::stop::{Concern, Stop};
use super::target::Target;
use super::view::{StoredRecord, View, names_claim_uid};
use super::walk::tolerate;

/// Ensures that a claim that was never bound holds the bucket that spec and template name now, and
/// no other. A bucket that was created under an earlier template stays.
pub(super) fn choose(view: &View, desired: &Desired, record: &BucketRecord, stored: &Stored) -> Result<(), Halt> {
    let (at, to) = (Target::of(record), view.wanted(desired)?);
    let same_store = at.backend == to.backend && at.endpoint == to.endpoint;
    let mut kept = record.name();
    if at != to && !(same_store && bucket::is_made(view, record)?) {
        if to.record() == kept {
            let renamed = BucketRecord { backend: to.backend, ..record.clone() };
            return Err(rewrite(view, &renamed, stored, Change::Follow));
        }
        if view.record_named(&to.record()).is_none() {
            let lowest = record.lowest;
            return hold(view, BucketRecord { lowest, ..blank(view, to, view.next_generation()) });
        }
        kept = to.record();
    }
    match view.records().find(|(_, other)| other.name() != kept.as_str()) {
        Some((left, left_in)) => match view.unanswered() {
            // An unanswered CreateBucket may still take effect (spec §3.2).
            Some(time) => Err(Halt::Wait(time)),
            None => let_go(view, left, left_in, public::opening(view, left)),
        },
        None => Ok(()),
    }
}

/// Moves a bound claim whose `backendRef` was edited: acquires the new bucket, creates it, and
/// creates its first credential. A stop on the way leaves the claim bound as it is.
pub(super) fn walk(view: &View, desired: &Desired, from: &BucketRecord, stored: &Stored) -> Result<(), Halt> {
    advance(view, desired, from, stored).map_err(|halt| match halt {
        Halt::Stop(stop) => stop.about(Concern::Ready).into(),
        halt => halt,
    })
}

fn advance(view: &View, desired: &Desired, from: &BucketRecord, stored: &Stored) -> Result<(), Halt> {
    let to = view.wanted(desired)?;
    if to.record() == from.name() {
        return rename(view, from, stored, &to);
    }
    let Some((held, held_in)) = view.record_named(&to.record()) else {
        let blank = blank(view, to, view.next_generation());
        // Generations are numbered per claim, whichever bucket a key is for.
        return hold(view, handing_on(from, BucketRecord { lowest: from.lowest, ..blank }));
    };
    if has_other_key(view, from) {
        // While the move waits, the new record may become the only one. Its generation must not be
        // that of a key to the old bucket by then.
        let may_be_mistaken = view.credential(held.generation).is_some() && !view.is_bound_by(held);
        let wait = || wait_for_expiry(&to).into();
        return Err(if may_be_mistaken { raise(view, from, held, held_in) } else { wait() });
    }
    if held.backend != to.backend {
        // The record was left by an earlier move, under another backend of the same store.
        let renamed = BucketRecord { backend: to.backend, ..held.clone() };
        return Err(rewrite(view, &renamed, held_in, Change::Follow));
    }
    bucket::obtain(view, desired, held, held_in)?;
    mint(view, desired, from, held, held_in)
}

/// Creates the first credential for the new bucket, unless a live list shows a key besides the
/// current one.
fn mint(view: &View, desired: &Desired, from: &BucketRecord, to: &BucketRecord, stored: &Stored) -> Result<(), Halt> {
    view.require_live()?;
    view.require_list()?;
    if has_other_key(view, from) {
        return Err(wait_for_expiry(&Target::of(to)).into());
    }
    let facts = CredentialFacts::of(desired, to);
    let name = facts.access_key_id().secret_name();
    if is_overtaken(from, to) {
        return Err(raise(view, from, to, stored));
    }
    view.require_not_taken(&name)?;
    if view.aimed_by_this_pass() == Some(to.generation) {
        view.require_revoked(to)?;
        return Err(Act::Mint(facts).into());
    }
    view.require_absent(&name)?;
    Err(raise(view, from, to, stored))
}

/// Returns true if a rotation has meanwhile reached the generation of the new bucket's record, or
/// has handled a request that it does not know.
fn is_overtaken(from: &BucketRecord, to: &BucketRecord) -> bool {
    to.generation <= from.generation || handing_on(from, to.clone()) != *to
}

/// Returns the record of another bucket with the handled requests of the claim.
fn handing_on(from: &BucketRecord, to: BucketRecord) -> BucketRecord {
    BucketRecord {
        handled_rotate_request: from.handled_rotate_request.clone().or(to.handled_rotate_request),
        handled_revoke_request: from.handled_revoke_request.clone().or(to.handled_revoke_request),
        revoked_through: from.revoked_through.max(to.revoked_through),
        ..to
    }
}

/// Bumps the record of the new bucket above every known generation.
fn raise(view: &View, from: &BucketRecord, to: &BucketRecord, stored: &Stored) -> Halt {
    let raised = BucketRecord { generation: view.next_generation(), ..handing_on(from, to.clone()) };
    rewrite(view, &raised, stored, Change::RaiseGeneration(Trigger::Move))
}

/// Returns true if a key besides the current one exists. At most two may exist at once.
fn has_other_key(view: &View, current: &BucketRecord) -> bool {
    let current = AccessKeyId::of(&current.uid, current.generation).secret_name();
    view.credentials().any(|secret| secret.name() != current)
}

fn wait_for_expiry(to: &Target) -> Stop {
    Stop::new(BackendCause::MoveWaits { to: to.clone() })
}

/// Handles two backends with the same endpoint: the bucket is the same, and no data has to move.
///
/// The record is changed to name the new backend, if that one sees the same bucket. The other
/// Secrets that name the backend are repaired afterwards.
fn rename(view: &View, record: &BucketRecord, stored: &Stored, to: &Target) -> Result<(), Halt> {
    match view.look_at(to)? {
        BucketSeen::Present(Some(tags)) if !record.adopted && !names_claim_uid(tags, record) => {
            Err(exists(record, NotTaken::NotThisClaims).into())
        }
        BucketSeen::Present(_) => {
            Err(rewrite(view, &BucketRecord { backend: to.backend.clone(), ..record.clone() }, stored, Change::Follow))
        }
        BucketSeen::Absent => Err(bucket::missing(record, Missing::NotThroughNewBackend).into()),
        BucketSeen::Forbidden => Err(exists(record, NotTaken::ForbiddenThere).into()),
    }
}

/// Follows the backend of a bound claim to its new endpoint. If the bucket exists there with this
/// claim's tags, the record is recreated for that endpoint with the same generation, and the keys
/// keep working.
pub(super) fn follow(view: &View, record: &BucketRecord, stored: &Stored, backend: &Backend) -> Result<(), Halt> {
    let there = Target { endpoint: backend.endpoint.clone(), ..Target::of(record) };
    bucket::check(view, record, there.clone())?;
    let seen = view.bucket_seen(&there).filter(|_| view.checked() == Checked::Seen);
    let is_ours = matches!(seen, Some(BucketSeen::Present(Some(tags))) if names_claim_uid(tags, record));
    if !is_ours && view.is_missing(record) {
        let how = Missing::NotAt { backend: backend.name.clone(), endpoint: backend.endpoint.clone() };
        return Err(bucket::missing(record, how).into());
    }
    if !is_ours {
        let (now, held_at) = (backend.endpoint.clone(), record.endpoint.clone());
        return Err(Stop::new(BackendCause::Moved { backend: backend.name.clone(), now, held_at }).into());
    }
    let Some((made, made_in)) = view.record_named(&there.record()) else {
        // The new record notes that the claim is bound, because the key may be lost by the time
        // this record is the only trace.
        return hold(view, BucketRecord { endpoint: there.endpoint, absence: false, settled: true, ..record.clone() });
    };
    let taken_over = BucketRecord {
        backend: record.backend.clone(),
        adopted: record.adopted || made.adopted,
        settled: record.settled || made.settled,
        generation: record.generation,
        handled_rotate_request: record.handled_rotate_request.clone(),
        handled_revoke_request: record.handled_revoke_request.clone(),
        revoked_through: record.revoked_through,
        lowest: record.lowest,
        public: record.public || made.public,
        ..made.clone()
    };
    view.require_live()?;
    match record_patch(view, &taken_over, made_in, Change::Follow) {
        Some(patch) => Err(Act::Patch(patch).into()),
        None => Err(delete_secret(view, stored)),
    }
}

/// Marks the record of a bucket that the claim left, while a key to it exists: the bucket must be
/// kept even if the claim is deleted. Done before anything that may stop a pass.
pub(super) fn mark_left(view: &View, current: &BucketRecord) -> Result<(), Halt> {
    match view.records().find(|(record, _)| !record.adopted && is_left(view, record, current)) {
        Some((record, stored)) => {
            Err(rewrite(view, &BucketRecord { adopted: true, ..record.clone() }, stored, Change::Leave))
        }
        None => Ok(()),
    }
}

/// Returns true if the claim has left the bucket of this record and a key to it still exists.
pub(super) fn is_left(view: &View, record: &BucketRecord, current: &BucketRecord) -> bool {
    let is_other = !record.is_of_bucket_of(current) && !is_followed(record, current);
    is_other && view.keys_to(record).next().is_some()
}

/// Returns the records besides the one that the claim is bound by.
fn others<'a>(view: &'a View, current: &BucketRecord) -> impl Iterator<Item = &'a StoredRecord> {
    view.records().filter(|(record, _)| !record.is_of_bucket_of(current))
}

/// Returns true if the record is for an earlier endpoint of the same backend, whose keys are those
/// of the current record.
fn is_followed(record: &BucketRecord, current: &BucketRecord) -> bool {
    record.backend == current.backend && record.bucket == current.bucket
}

/// Removes records that the claim is no longer bound by and does not want. A record whose bucket
/// still has a key waits until the key is gone.
pub(super) fn leave(view: &View, desired: &Desired, current: &BucketRecord, now: Timestamp) -> Result<Outcome, Halt> {
    let pending = |other: &BucketRecord| {
        desired.backend != current.backend
            && view.wanted(desired).map_or(other.backend == desired.backend, |to| to.record() == other.name())
    };
    let mut outcome = Outcome::default();
    for (record, stored) in others(view, current) {
        // Keys and public access of a bucket that the claim keeps belong to the current record and
        // stay.
        let followed = is_followed(record, current);
        let has_key = !followed && view.keys_to(record).next().is_some();
        if has_key || pending(record) {
            continue;
        }
        match view.unanswered() {
            Some(time) => {
                outcome.wake = SignedDuration::try_from(time).ok().and_then(|time| now.checked_add(time).ok());
            }
            None => {
                let open = public::opening(view, record).filter(|_| !followed);
                outcome.impaired = tolerate(let_go(view, record, stored, open))?.or(outcome.impaired);
            }
        }
    }
    Ok(outcome)
}

/// Removes a record, once a live list has shown that no key to its bucket exists. Public access
/// (`open`) is removed first, because a stop on the way to the next bucket would leave it in place.
fn let_go(view: &View, record: &BucketRecord, stored: &Stored, open: Option<&Stored>) -> Result<(), Halt> {
    view.require_live()?;
    view.require_list()?;
    if !record.accesses.is_empty() {
        // What the record opened ends before the record does.
        return Err(rewrite(view, &consent::closed(record), stored, Change::Consent));
    }
    Err(delete_secret(view, open.unwrap_or(stored)))
}
