//! Whose bucket is it (spec §3.2).

use std::collections::BTreeMap;

use crate::api::{AccessKeyId, AdoptionPolicy, BucketRecord, ConditionType, Desired, Reason, wire};

use super::answer::{BackendSeen, BucketSeen, Checked, CreateAnswer, Stored, VersioningSeen};
use super::bind::{require_fresh, target, usable};
use super::records::leads_to;
use super::repair::{Change, SecretPatch};
use super::step::{Act, Concern, Halt, Look, Stop, Target};
use super::view::View;

/// Makes sure that the bucket is there and this claim's, for a claim that was never bound to it.
pub(super) fn obtain(view: &View, desired: &Desired, record: &BucketRecord, stored: &Stored) -> Result<(), Halt> {
    let at = target(record);
    if view.created == Some(CreateAnswer::AlreadyExists) && view.asked_about(&at) {
        // Whatever a look shows since: its owner may let us see it.
        return Err(refused_as_anothers(view, record, stored));
    }
    match look(view, &at)? {
        BucketSeen::Absent => create(view, record, stored)?,
        BucketSeen::Forbidden => return Err(exists(record, OTHERS).into()),
        BucketSeen::Present(tags) => take(view, record, stored, tags.as_ref())?,
    }
    match desired.versioning.filter(|_| !record.adopted) {
        Some(versioning) if view.versioning != Some(VersioningSeen::Set(versioning)) => {
            require_fresh(view)?;
            Err(Act::SetVersioning(at, versioning).into())
        }
        _ => Ok(()),
    }
}

/// What this pass saw of a bucket; the look, if it has not looked at that one.
pub(super) fn look<'a>(view: &'a View, at: &Target) -> Result<&'a BucketSeen, Halt> {
    let seen = view.bucket.as_ref().filter(|_| view.asked_about(at));
    seen.ok_or_else(|| Look::Bucket(at.clone()).into())
}

/// The bucket of a claim that was bound is trusted between drift checks, and never replaced by an empty one. That it
/// was bound goes into the record before the loss is told: whatever becomes of its key then, the record knows.
pub(super) fn drift(view: &View, record: &BucketRecord, stored: &Stored) -> Result<(), Halt> {
    check(view, record, target(record))?;
    if !is_missing(view, record) {
        return Ok(());
    }
    if !record.settled && !record.adopted {
        require_fresh(view)?;
        return Err(rewrite(view, &BucketRecord { settled: true, ..record.clone() }, stored, Change::Settle));
    }
    Err(missing(record, "is gone; it is not replaced by an empty one").into())
}

/// Of a bucket that we may not look at.
const OTHERS: &str = "it belongs to somebody else or is in another region";

/// Why a claim that was bound has no bucket.
pub(super) fn missing(record: &BucketRecord, why: &str) -> Stop {
    let message = format!("bucket {} was there and {why}", record.bucket);
    Stop::refused(Reason::BucketMissing, Concern::Bucket, message)
}

/// Looks at the bucket of a claim that was bound, once in a pass: when a drift check is due, and when its backend points
/// to another endpoint than that of the last look.
pub(super) fn check(view: &View, record: &BucketRecord, at: Target) -> Result<(), Halt> {
    let missed = view.missing_at.as_ref().filter(|missed| leads_to(missed, record));
    let elsewhere = *missed.map_or(&record.endpoint, |missed| &missed.endpoint) != at.endpoint;
    if view.checked == Checked::No && (view.look_due || elsewhere) {
        return Err(Look::Bucket(at).into());
    }
    Ok(())
}

/// Whether the bucket of a claim that was bound is missing: seen in this pass or, without a look, in an earlier
/// one. One that is back, or at another endpoint, counts as the claim's only if its tags say so.
pub(super) fn is_missing(view: &View, record: &BucketRecord) -> bool {
    let points_to = match view.backends.get(&record.backend) {
        Some(BackendSeen::Present { backend, .. }) => Some(&backend.endpoint),
        _ => None,
    };
    let missed = view.missing_at.as_ref().filter(|missed| leads_to(missed, record));
    let was_missing = missed.is_some_and(|missed| points_to.is_none_or(|now| *now == missed.endpoint));
    let moved = view.bucket_at.as_ref().is_some_and(|at| at.endpoint != record.endpoint);
    match view.bucket.as_ref().filter(|_| view.asked_about_bound(record)) {
        Some(BucketSeen::Absent) => true,
        Some(BucketSeen::Present(Some(tags))) => {
            (moved || (was_missing && !record.adopted)) && !names_claim_uid(tags, record)
        }
        Some(BucketSeen::Present(None)) => moved,
        Some(BucketSeen::Forbidden) => moved || was_missing,
        None => was_missing,
    }
}

/// Whether a bucket that the claim was never bound to is one that it made or took over all the same.
pub(super) fn is_made(view: &View, record: &BucketRecord) -> Result<bool, Halt> {
    if record.adopted {
        return Ok(true);
    }
    let at = target(record);
    match look(view, &at)? {
        BucketSeen::Present(Some(tags)) if names_claim_uid(tags, record) => Ok(true),
        BucketSeen::Present(tags) if record.absence && tags.as_ref().is_none_or(BTreeMap::is_empty) => {
            view.bucket_empty.ok_or_else(|| Look::Contents(at).into())
        }
        BucketSeen::Present(_) | BucketSeen::Absent | BucketSeen::Forbidden => Ok(false),
    }
}

/// Makes an edit of `versioning` take effect on the bucket of a claim that is bound. What the bucket has is asked only
/// after an edit, while the claim is in trouble, and with a drift check: at rest nothing is asked.
pub(super) fn keep_versioning(view: &View, desired: &Desired, record: &BucketRecord) -> Result<(), Halt> {
    let Some(wanted) = desired.versioning.filter(|_| !record.adopted) else { return Ok(()) };
    let status = &view.claim.status;
    let edited = status.observed_generation != Some(view.claim.generation);
    let ready = status.conditions.iter().any(|c| c.type_ == ConditionType::Ready.as_str() && c.status == "True");
    let at = target(record);
    match view.versioning.filter(|_| view.asked_about(&at)) {
        Some(VersioningSeen::Set(set)) if set == wanted => Ok(()),
        Some(_) => {
            require_fresh(view)?;
            Err(Act::SetVersioning(at, wanted).into())
        }
        None if edited || !ready || view.checked == Checked::Seen => Err(Look::Versioning(at).into()),
        None => Ok(()),
    }
}

/// There is no bucket: absence goes into the record first, then the bucket is created and tagged.
fn create(view: &View, record: &BucketRecord, stored: &Stored) -> Result<(), Halt> {
    if record.adopted {
        let message = format!("bucket {} was taken over and is gone; it is not made again", record.bucket);
        return Err(Stop::refused(Reason::BucketMissing, Concern::Bucket, message).into());
    }
    if view.created == Some(CreateAnswer::AlreadyOwned) {
        let why = format!("the store says of bucket {} both that it is there and that it is not", record.bucket);
        return Err(Stop::failed(Concern::Bucket, why).into());
    }
    require_fresh(view)?;
    // A record that this pass found may be one of a claim that was bound, whose key lost its labels with it. A key that is
    // there is one to another bucket, or the claim would be bound.
    let is_unknown = |key: &String| !view.absent.contains(key) && !view.live.contains(key);
    if is_found(view, record)
        && let Some(key) = last_keys(view, record).find(is_unknown)
    {
        return Err(Look::Internal(key).into());
    }
    if record.absence {
        require_current(view, record)?;
    }
    if !record.absence {
        let noted = BucketRecord { absence: true, ..record.clone() };
        return Err(rewrite(view, &noted, stored, Change::NoteAbsence));
    }
    Err(Act::CreateBucket(target(record)).into())
}

/// Whether the record was found, and not made or aimed by this pass.
fn is_found(view: &View, record: &BucketRecord) -> bool {
    view.own_target != Some(record.generation)
}

/// Before what is done because the record tells of absence: one that this pass found may be older than what another operator has
/// noted or made anew meanwhile, so a live list has to show it. What is still to be written into it, the server refuses then.
fn require_current(view: &View, record: &BucketRecord) -> Result<(), Halt> {
    if is_found(view, record) && view.own_lists == 0 { Err(Look::Own.into()) } else { Ok(()) }
}

/// Names of the keys that a claim may have by which it was bound by a record: the one that this aims at, which need not have been
/// made, the one before it, and the last that the status told.
fn last_keys(view: &View, record: &BucketRecord) -> impl Iterator<Item = String> {
    let before = record.generation.checked_sub(1).filter(|before| *before > 0);
    let generations = [Some(record.generation), before, view.status_before.told_generation()];
    let uid = record.uid.clone();
    generations.into_iter().flatten().map(move |generation| AccessKeyId::of(&uid, generation).secret_name())
}

/// The store would not make the bucket because it is somebody else's. That it was absent before is no sign any more that it
/// is ours: the owner may let us see it, empty and without tags, and the next pass knows nothing of this answer. Where a call
/// of ours has had no answer, the bucket may be its fruit, whatever the store calls it: the next look decides.
fn refused_as_anothers(view: &View, record: &BucketRecord, stored: &Stored) -> Halt {
    if !record.absence || view.unanswered.is_some() {
        return exists(record, OTHERS).into();
    }
    let anothers = BucketRecord { absence: false, ..record.clone() };
    let patch = SecretPatch::between(
        &stored.0,
        &anothers.content(&view.setting.operator_namespace),
        &[BucketRecord::ABSENCE],
        Change::ForgetAbsence,
    );
    patch.map_or(Halt::Stale("the record says so already"), |patch| Act::Patch(patch).into())
}

/// There is a bucket: ours, ours from an interrupted pass, or one that the adoption policy decides on.
/// `tags` is `None` where the store has no tagging.
fn take(
    view: &View,
    record: &BucketRecord,
    stored: &Stored,
    tags: Option<&BTreeMap<String, String>>,
) -> Result<(), Halt> {
    let tagged_ours = tags.is_some_and(|tags| names_claim_uid(tags, record));
    if tagged_ours && view.was_bound() && !record.absence && !record.adopted {
        // The claim comes back to a bucket that it left: whatever was put into it since is not to be lost with it.
        return Err(take_over(view, record, stored));
    }
    if view.tagged || record.adopted || tagged_ours {
        return Ok(());
    }
    if view.created == Some(CreateAnswer::Created) {
        // A plain success in the pass that saw the bucket absent. Also where the claim is gone by now: a bucket that nobody
        // tagged would be in its successor's way for ever.
        return tag(view, record, &BTreeMap::new());
    }
    let untagged = tags.is_none_or(BTreeMap::is_empty);
    if untagged && record.absence {
        match view.bucket_empty {
            None => return Err(Look::Contents(target(record)).into()),
            Some(true) => {
                require_fresh(view)?;
                require_current(view, record)?;
                return tag(view, record, &BTreeMap::new());
            }
            Some(false) => {}
        }
    }
    adopt(view, record, stored, tags.unwrap_or(&BTreeMap::new()))
}

fn adopt(view: &View, record: &BucketRecord, stored: &Stored, tags: &BTreeMap<String, String>) -> Result<(), Halt> {
    let backend = usable(view, &record.backend)?;
    let whose = BucketTags::of(view, tags);
    match (backend.adoption, whose) {
        (AdoptionPolicy::Never, _) => Err(exists(record, "the backend's adoptionPolicy is Never").into()),
        (_, BucketTags::AnotherClaim) => Err(exists(record, "its tags name another claim").into()),
        (AdoptionPolicy::Owned, BucketTags::Nobody) => {
            Err(exists(record, "its tags don't name this claim, and the backend's adoptionPolicy is Owned").into())
        }
        (AdoptionPolicy::Owned | AdoptionPolicy::Any, _) => Err(take_over(view, record, stored)),
    }
}

/// `origin: Adopted` is in the record before anything else is done with the bucket.
fn take_over(view: &View, record: &BucketRecord, stored: &Stored) -> Halt {
    if let Err(halt) = require_fresh(view).and_then(|()| refuse_rivals(view, record)) {
        return halt;
    }
    let adopted = BucketRecord { adopted: true, ..record.clone() };
    rewrite(view, &adopted, stored, Change::Adopt)
}

/// Whom a bucket's tags name.
enum BucketTags {
    /// This installation, namespace and claim name, in whatever life of it.
    ThisClaim,
    /// A claim, but not this one.
    AnotherClaim,
    /// No claim.
    Nobody,
}

impl BucketTags {
    fn of(view: &View, tags: &BTreeMap<String, String>) -> Self {
        let claim = wire::tag_value(&view.claim.at.to_string());
        let installation = wire::tag_value(&view.setting.installation);
        match (tags.get(wire::TAG_INSTALLATION), tags.get(wire::TAG_CLAIM)) {
            (Some(i), Some(c)) if *i == installation && *c == claim => Self::ThisClaim,
            (None, None) if !tags.contains_key(wire::TAG_CLAIM_UID) => Self::Nobody,
            _ => Self::AnotherClaim,
        }
    }
}

pub(super) fn exists(record: &BucketRecord, why: &str) -> Stop {
    let message = format!("bucket {} exists and is not taken over: {why}", record.bucket);
    Stop::refused(Reason::BucketExists, Concern::Bucket, message)
}

/// Puts the ownership tags, merged with those that are there: PutBucketTagging replaces the whole set.
fn tag(view: &View, record: &BucketRecord, present: &BTreeMap<String, String>) -> Result<(), Halt> {
    let untaggable = matches!(view.bucket, Some(BucketSeen::Present(None)));
    if view.tagged || untaggable {
        return Ok(());
    }
    let ours = [
        (wire::TAG_INSTALLATION, wire::tag_value(&view.setting.installation)),
        (wire::TAG_CLAIM, wire::tag_value(&record.claim.to_string())),
        (wire::TAG_CLAIM_UID, record.uid.to_string()),
    ];
    let ours = ours.into_iter().map(|(key, value)| (key.to_owned(), value));
    let all = present.clone().into_iter().chain(ours).collect();
    Err(Act::TagBucket(target(record), all).into())
}

/// Whether tags say that the bucket is this claim's.
pub(super) fn names_claim_uid(tags: &BTreeMap<String, String>, record: &BucketRecord) -> bool {
    tags.get(wire::TAG_CLAIM_UID).map(String::as_str) == Some(record.uid.as_str())
}

/// For a record that is made again: whether tags read in this pass carry this UID.
pub(super) fn carries_our_tags(view: &View, record: &BucketRecord) -> Result<bool, Halt> {
    match look(view, &target(record))? {
        BucketSeen::Present(Some(tags)) => Ok(names_claim_uid(tags, record)),
        _ => Ok(false),
    }
}

/// A record is not made again for a bucket whose tags name another claim: the status that speaks of it may be old.
pub(super) fn refuse_another_claims(view: &View, record: &BucketRecord) -> Result<(), Halt> {
    match &view.bucket {
        Some(BucketSeen::Present(Some(tags)))
            if !names_claim_uid(tags, record) && matches!(BucketTags::of(view, tags), BucketTags::AnotherClaim) =>
        {
            Err(exists(record, "its tags name another claim").into())
        }
        _ => Ok(()),
    }
}

/// Before a bucket is taken over on the strength of a record that may have been another's until somebody deleted
/// it: a live list must show no credential of another claim for it (spec §3.2).
pub(super) fn refuse_rivals(view: &View, record: &BucketRecord) -> Result<(), Halt> {
    let at = target(record);
    let Some((_, rivals)) = view.rivals.as_ref().filter(|(asked, _)| *asked == at) else {
        return Err(Look::CredentialsFor(at).into());
    };
    if rivals.is_empty() {
        return Ok(());
    }
    let message = format!("another claim has credentials for bucket {}", record.bucket);
    let stop = Stop::refused(Reason::BucketNameConflict, Concern::Bucket, message);
    Err(Stop { waits_for: Some(record.name()), ..stop }.into())
}

/// The patch that makes the stored record say what `record` says, labels and annotations included.
pub(super) fn record_patch(view: &View, record: &BucketRecord, stored: &Stored, change: Change) -> Option<SecretPatch> {
    SecretPatch::between(&stored.0, &record.content(&view.setting.operator_namespace), &[], change)
}

/// The step that writes `record` over the one that is `stored`.
pub(super) fn rewrite(view: &View, record: &BucketRecord, stored: &Stored, change: Change) -> Halt {
    match record_patch(view, record, stored, change) {
        Some(patch) => Act::Patch(patch).into(),
        None => Halt::Stale("the record says so already"),
    }
}
