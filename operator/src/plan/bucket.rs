//! The bucket of a claim: creation or adoption (spec §3.2), drift checks and versioning.

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

/// Ensures that the bucket exists and is this claim's, for a claim that was never bound to it.
pub(super) fn obtain(view: &View, desired: &Desired, record: &BucketRecord, stored: &Stored) -> Result<(), Halt> {
    spelling::settle(view, record, stored)?;
    if !record.has_begun() {
        // The bucket may be shared since. A record whose creation has not begun does not override
        // that.
        refuse_shared(view, record)?;
    }
    let at = Target::of(record);
    if view.bucket_created() == Some(CreateAnswer::AlreadyExists) && view.asked_about(&at) {
        // The create answer decides, even if a later look shows the bucket: its owner may give us
        // access.
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

/// Checks the bucket of a bound claim when a drift check is due. A missing bucket is never replaced
/// by an empty one.
///
/// Before the loss is reported, the record notes that the claim was bound, so that this is known
/// even if the key is lost later.
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

/// Returns the stop for a bound claim whose bucket is missing.
pub(super) fn missing(record: &BucketRecord, how: Missing) -> Stop {
    Stop::new(BucketCause::Missing { bucket: record.bucket.clone(), how })
}

/// Looks at the bucket of a bound claim, once per pass: when a drift check is due, or when its
/// backend has another endpoint than at the last look.
pub(super) fn check(view: &View, record: &BucketRecord, at: Target) -> Result<(), Halt> {
    let missed = view.missed_at(record);
    let elsewhere = *missed.map_or(&record.endpoint, |missed| &missed.endpoint) != at.endpoint;
    if view.checked() == Checked::No && (view.is_look_due() || elsewhere) {
        return Err(Look::Bucket(at).into());
    }
    Ok(())
}

/// Returns true if the operator created or adopted the bucket, although the claim was never bound
/// to it.
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

/// Applies an edit of `versioning` to the bucket of a bound claim.
///
/// The store's value is read only after an edit, while the claim is not Ready, and with a drift
/// check, so that an idle claim causes no requests.
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

/// Creates and tags an absent bucket. The record notes the absence first.
fn create(view: &View, record: &BucketRecord, stored: &Stored) -> Result<(), Halt> {
    if record.adopted {
        return Err(missing(record, Missing::AdoptedGone).into());
    }
    if matches!(view.bucket_created(), Some(CreateAnswer::AlreadyOwned | CreateAnswer::Created)) {
        return Err(Stop::new(BucketCause::Contradictory { bucket: record.bucket.clone() }).into());
    }
    view.require_live()?;
    // A record found by this pass may belong to a claim that was bound and whose key lost its
    // labels, too. A key that exists would be for another bucket, or the claim would be bound.
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

/// Returns true if the record was found, as opposed to created or bumped by this pass.
fn is_found(view: &View, record: &BucketRecord) -> bool {
    view.aimed_by_this_pass() != Some(record.generation)
}

/// Reads a found record live before acting on its note of absence: another operator may have
/// updated or recreated the record meanwhile. A record that still has to be written needs no read,
/// because the API server refuses a write to an outdated version.
fn require_current(view: &View, record: &BucketRecord) -> Result<(), Halt> {
    if is_found(view, record) { view.require_settled(record) } else { Ok(()) }
}

/// Returns the names of the keys that may have bound a claim by this record: the current one, which
/// may not exist yet, the one before it, and the last one in the status.
fn last_keys(view: &View, record: &BucketRecord) -> impl Iterator<Item = String> {
    let before = record.generation.checked_sub(1).filter(|before| *before > 0);
    let generations = [Some(record.generation), before, view.status_before().shown_generation()];
    let uid = record.uid.clone();
    generations.into_iter().flatten().map(move |generation| AccessKeyId::of(&uid, generation).secret_name())
}

/// Handles the store's answer that the bucket belongs to somebody else.
///
/// The note of absence is removed from the record, because it no longer proves that the bucket is
/// ours: the owner may give us access to an empty bucket without tags, and the next pass does not
/// know this answer. The note stays while a request of ours is unanswered, because that request may
/// have created the bucket; the next look decides.
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

/// Handles an existing bucket: ours, ours from an interrupted pass, or subject to the adoption
/// policy. `tags` is `None` if the store does not support tagging.
fn take(
    view: &View,
    record: &BucketRecord,
    stored: &Stored,
    tags: Option<&BTreeMap<String, String>>,
) -> Result<(), Halt> {
    let tagged_ours = tags.is_some_and(|tags| names_claim_uid(tags, record));
    if tagged_ours && view.was_bound() && !record.absence && !record.adopted {
        // The claim returns to a bucket that it left. It is adopted, so that data written since is
        // not deleted with the claim.
        refuse_another_accounts(view, record, AdoptionProof::SoleAccount)?;
        return Err(take_over(view, record, stored));
    }
    if view.bucket_tagged() {
        return Ok(());
    }
    if record.adopted {
        // Another pass adopted the bucket, which may have been replaced since.
        return refuse_another_accounts(view, record, AdoptionProof::SoleAccount);
    }
    if view.bucket_created() == Some(CreateAnswer::Created) {
        // The bucket was absent and is created in this pass. It is tagged even if the claim is gone
        // by now, because an untagged bucket would block a successor of the claim forever.
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

/// Refuses a bucket of another account.
///
/// If the accounts of a store share its bucket names, anybody can create a bucket of any name, tag
/// it as ours and give us access, and could then read what is written to it. So the owner is
/// checked for every bucket that this pass did not create.
fn refuse_another_accounts(view: &View, record: &BucketRecord, proof: AdoptionProof) -> Result<(), Halt> {
    match (view.owner_of(&Target::of(record))?, proof) {
        (OwnerSeen::Ours, _) | (OwnerSeen::Untold, AdoptionProof::SoleAccount) => Ok(()),
        (OwnerSeen::Other, _) => Err(exists(record, NotTaken::AnotherAccounts).into()),
        (OwnerSeen::Untold, AdoptionProof::Owner) => Err(exists(record, NotTaken::OwnerUntold).into()),
    }
}

/// Adopts the bucket. The record notes `origin: Adopted` before anything else is done with the
/// bucket.
fn take_over(view: &View, record: &BucketRecord, stored: &Stored) -> Halt {
    if let Err(halt) = view.require_live().and_then(|()| refuse_others_credentials(view, record)) {
        return halt;
    }
    let adopted = BucketRecord { adopted: true, ..record.clone() };
    rewrite(view, &adopted, stored, Change::Adopt)
}

/// Sets the ownership tags, merged with the existing tags, because PutBucketTagging replaces the
/// whole set.
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
