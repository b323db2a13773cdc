//! The bucket of a claim: made or taken over (spec §3.2), looked after, its versioning kept.

use std::collections::BTreeMap;

use crate::api::{AccessKeyId, AdoptionPolicy, AdoptionProof, BucketRecord, ConditionType, Desired, wire};

use super::answer::{BucketSeen, Checked, CreateAnswer, OwnerSeen, VersioningSeen};
use super::cause::{BucketCause, Missing, NotTaken};
use super::credentials::{KeyHolder, rewrite};
use super::halt::Halt;
use super::hold::refuse_shared;
use super::ownership::{BucketTags, exists, refuse_another_claims, refuse_others_credentials};
use super::patch::{Change, SecretPatch};
use super::secret::Stored;
use super::spelling;
use super::step::{Act, Look};
use super::stop::Stop;
use super::target::Target;
use super::view::{View, names_claim_uid};

/// Makes sure that the bucket is there and this claim's, for a claim that was never bound to it.
pub(super) fn obtain(view: &View, desired: &Desired, record: &BucketRecord, stored: &Stored) -> Result<(), Halt> {
    spelling::settle(view, record, stored)?;
    if !record.has_begun() {
        // Shared since: such a record doesn't void that.
        refuse_shared(view, record)?;
    }
    let at = Target::of(record);
    if view.bucket_created() == Some(CreateAnswer::AlreadyExists) && view.asked_about(&at) {
        // Whatever a look shows since: its owner may let us see it.
        return Err(refused_as_anothers(view, record, stored));
    }
    match view.look_at(&at)? {
        BucketSeen::Absent => create(view, record, stored)?,
        BucketSeen::Forbidden => return Err(exists(record, NotTaken::Forbidden).into()),
        BucketSeen::Present(tags) => take(view, record, stored, tags.as_ref())?,
    }
    match desired.versioning.filter(|_| !record.adopted) {
        Some(versioning) if view.versioning(&at) != Some(VersioningSeen::Set(versioning)) => {
            view.require_live()?;
            Err(Act::SetVersioning(at, versioning).into())
        }
        Some(_) | None => Ok(()),
    }
}

/// The bucket of a claim that was bound is trusted between drift checks, and never replaced by an
/// empty one. That it was bound goes into the record before the loss is told: whatever becomes of
/// its key then, the record knows.
pub(super) fn drift(view: &View, record: &BucketRecord, stored: &Stored) -> Result<(), Halt> {
    check(view, record, Target::of(record))?;
    if !view.is_missing(record) {
        return Ok(());
    }
    if !record.settled && !record.adopted {
        return Err(rewrite(view, &BucketRecord { settled: true, ..record.clone() }, stored, Change::Settle));
    }
    Err(missing(record, Missing::Gone).into())
}

/// Why a claim that was bound has no bucket.
pub(super) fn missing(record: &BucketRecord, how: Missing) -> Stop {
    Stop::new(BucketCause::Missing { bucket: record.bucket.clone(), how })
}

/// Looks at the bucket of a claim that was bound, once in a pass: when a drift check is due, and
/// when its backend points to another endpoint than that of the last look.
pub(super) fn check(view: &View, record: &BucketRecord, at: Target) -> Result<(), Halt> {
    let missed = view.missed_at(record);
    let elsewhere = *missed.map_or(&record.endpoint, |missed| &missed.endpoint) != at.endpoint;
    if view.checked() == Checked::No && (view.is_look_due() || elsewhere) {
        return Err(Look::Bucket(at).into());
    }
    Ok(())
}

/// Whether a bucket that the claim was never bound to is one that it made or took over all the
/// same.
pub(super) fn is_made(view: &View, record: &BucketRecord) -> Result<bool, Halt> {
    if record.adopted {
        return Ok(true);
    }
    let at = Target::of(record);
    match view.look_at(&at)? {
        BucketSeen::Present(Some(tags)) if names_claim_uid(tags, record) => Ok(true),
        BucketSeen::Present(tags) if record.absence && tags.as_ref().is_none_or(BTreeMap::is_empty) => {
            view.is_empty(&at)
        }
        BucketSeen::Present(_) | BucketSeen::Absent | BucketSeen::Forbidden => Ok(false),
    }
}

/// Makes an edit of `versioning` take effect on the bucket of a claim that is bound. What the
/// bucket has is asked only after an edit, while the claim is in trouble, and with a drift check:
/// at rest nothing is asked.
pub(super) fn keep_versioning(view: &View, desired: &Desired, record: &BucketRecord) -> Result<(), Halt> {
    let Some(wanted) = desired.versioning.filter(|_| !record.adopted) else { return Ok(()) };
    let status = &view.claim().status;
    let edited = status.observed_generation != Some(view.claim().generation);
    let ready = status.conditions.iter().any(|c| c.type_ == ConditionType::Ready.as_str() && c.status == "True");
    let at = Target::of(record);
    match view.versioning(&at) {
        Some(VersioningSeen::Set(set)) if set == wanted => Ok(()),
        Some(_) => {
            view.require_live()?;
            Err(Act::SetVersioning(at, wanted).into())
        }
        None if edited || !ready || view.checked() == Checked::Seen => Err(Look::Versioning(at).into()),
        None => Ok(()),
    }
}

/// There is no bucket: absence goes into the record first, then the bucket is created and tagged.
fn create(view: &View, record: &BucketRecord, stored: &Stored) -> Result<(), Halt> {
    if record.adopted {
        return Err(missing(record, Missing::AdoptedGone).into());
    }
    if matches!(view.bucket_created(), Some(CreateAnswer::AlreadyOwned | CreateAnswer::Created)) {
        return Err(Stop::new(BucketCause::Contradictory { bucket: record.bucket.clone() }).into());
    }
    view.require_live()?;
    // A record that this pass found may be one of a claim that was bound, whose key lost its labels
    // with it. A key that is there is one to another bucket, or the claim would be bound.
    let is_unknown = |key: &String| !view.is_absent(key) && !view.is_live(key);
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
    Err(Act::CreateBucket(Target::of(record)).into())
}

/// Whether the record was found, and not made or aimed by this pass.
fn is_found(view: &View, record: &BucketRecord) -> bool {
    view.aimed_by_this_pass() != Some(record.generation)
}

/// Before what is done because the record tells of absence: one that this pass found may be older
/// than what another operator has noted or made anew meanwhile, so it is read live. What is still
/// to be written into it, the server refuses then.
fn require_current(view: &View, record: &BucketRecord) -> Result<(), Halt> {
    if is_found(view, record) { view.require_settled(record) } else { Ok(()) }
}

/// Names of the keys that a claim may have by which it was bound by a record: the one that this
/// aims at, which need not have been made, the one before it, and the last that the status told.
fn last_keys(view: &View, record: &BucketRecord) -> impl Iterator<Item = String> {
    let before = record.generation.checked_sub(1).filter(|before| *before > 0);
    let generations = [Some(record.generation), before, view.status_before().shown_generation()];
    let uid = record.uid.clone();
    generations.into_iter().flatten().map(move |generation| AccessKeyId::of(&uid, generation).secret_name())
}

/// The store would not make the bucket because it is somebody else's. That it was absent before is
/// no sign any more that it is ours: the owner may let us see it, empty and without tags, and the
/// next pass knows nothing of this answer. Where a call of ours has had no answer, the bucket may
/// be its fruit, whatever the store calls it: the next look decides.
fn refused_as_anothers(view: &View, record: &BucketRecord, stored: &Stored) -> Halt {
    if !record.absence || view.unanswered().is_some() {
        return exists(record, NotTaken::Forbidden).into();
    }
    let anothers = BucketRecord { absence: false, ..record.clone() };
    let patch = SecretPatch::between(
        &stored.0,
        &anothers.content(&view.setting().operator_namespace),
        &[BucketRecord::ABSENCE],
        Change::ForgetAbsence,
    );
    patch.map_or(Halt::Stale("the record says so already"), |patch| Act::Patch(patch).into())
}

/// There is a bucket: ours, ours from an interrupted pass, or one that the adoption policy decides
/// on. `tags` is `None` where the store has no tagging.
fn take(
    view: &View,
    record: &BucketRecord,
    stored: &Stored,
    tags: Option<&BTreeMap<String, String>>,
) -> Result<(), Halt> {
    let tagged_ours = tags.is_some_and(|tags| names_claim_uid(tags, record));
    if tagged_ours && view.was_bound() && !record.absence && !record.adopted {
        // The claim comes back to a bucket that it left: whatever was put into it since is not to
        // be lost with it.
        refuse_another_accounts(view, record, AdoptionProof::SoleAccount)?;
        return Err(take_over(view, record, stored));
    }
    if view.bucket_tagged() {
        return Ok(());
    }
    if record.adopted {
        // Another pass has noted that, and the bucket may be another since.
        return refuse_another_accounts(view, record, AdoptionProof::SoleAccount);
    }
    if view.bucket_created() == Some(CreateAnswer::Created) {
        // A plain success in the pass that saw the bucket absent. Also where the claim is gone by
        // now: a bucket that nobody tagged would be in its successor's way for ever.
        refuse_another_claims(view, record)?;
        return tag(view, record, tags.unwrap_or(&BTreeMap::new()));
    }
    if tagged_ours {
        return refuse_another_accounts(view, record, AdoptionProof::SoleAccount);
    }
    let untagged = tags.is_none_or(BTreeMap::is_empty);
    if untagged && record.absence && view.is_empty(&Target::of(record))? {
        refuse_another_accounts(view, record, AdoptionProof::SoleAccount)?;
        view.require_live()?;
        require_current(view, record)?;
        return tag(view, record, &BTreeMap::new());
    }
    adopt(view, record, stored, tags.unwrap_or(&BTreeMap::new()))
}

fn adopt(view: &View, record: &BucketRecord, stored: &Stored, tags: &BTreeMap<String, String>) -> Result<(), Halt> {
    let backend = view.usable_backend(&record.backend)?;
    let whose = BucketTags::of(view, tags);
    match (backend.adoption, whose) {
        (AdoptionPolicy::Never, _) => Err(exists(record, NotTaken::PolicyNever).into()),
        (_, BucketTags::AnotherClaim) => Err(exists(record, NotTaken::AnotherClaims).into()),
        (AdoptionPolicy::Owned, BucketTags::Nobody) => Err(exists(record, NotTaken::PolicyOwned).into()),
        (AdoptionPolicy::Owned | AdoptionPolicy::Any, _) => {
            refuse_another_accounts(view, record, backend.proof)?;
            Err(take_over(view, record, stored))
        }
    }
}

/// Where the accounts of a store share its names, anybody may make a bucket of any name, tag it as
/// ours and let us in: what is written there is theirs to read. A bucket that this very pass did
/// not make is asked for its owner.
fn refuse_another_accounts(view: &View, record: &BucketRecord, proof: AdoptionProof) -> Result<(), Halt> {
    match (view.owner_of(&Target::of(record))?, proof) {
        (OwnerSeen::Ours, _) | (OwnerSeen::Untold, AdoptionProof::SoleAccount) => Ok(()),
        (OwnerSeen::Other, _) => Err(exists(record, NotTaken::AnotherAccounts).into()),
        (OwnerSeen::Untold, AdoptionProof::Owner) => Err(exists(record, NotTaken::OwnerUntold).into()),
    }
}

/// `origin: Adopted` is in the record before anything else is done with the bucket.
fn take_over(view: &View, record: &BucketRecord, stored: &Stored) -> Halt {
    if let Err(halt) = view.require_live().and_then(|()| refuse_others_credentials(view, record)) {
        return halt;
    }
    let adopted = BucketRecord { adopted: true, ..record.clone() };
    rewrite(view, &adopted, stored, Change::Adopt)
}

/// Puts the ownership tags, merged with those that are there: PutBucketTagging replaces the whole
/// set.
fn tag(view: &View, record: &BucketRecord, present: &BTreeMap<String, String>) -> Result<(), Halt> {
    let untaggable = matches!(view.last_look(), Some(BucketSeen::Present(None)));
    if view.bucket_tagged() || untaggable {
        return Ok(());
    }
    let ours = [
        (wire::TAG_INSTALLATION, wire::tag_value(&view.setting().installation)),
        (wire::TAG_CLAIM, wire::tag_value(&record.claim.to_string())),
        (wire::TAG_CLAIM_UID, record.uid.to_string()),
    ];
    let ours = ours.into_iter().map(|(key, value)| (key.to_owned(), value));
    let all = present.clone().into_iter().chain(ours).collect();
    Err(Act::TagBucket(Target::of(record), all).into())
}
