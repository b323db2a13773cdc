//! Whose bucket is it (spec §3.2).

use std::collections::BTreeMap;

use crate::api::{AdoptionPolicy, BucketRecord, Desired, Reason, wire};

use super::bind::{require_fresh, target};
use super::repair::{Change, SecretPatch};
use super::step::{Act, Concern, Halt, Look, Stop};
use super::view::{BucketSeen, CreateAnswer, Stored, View};

/// Makes sure that the bucket is there and this claim's. `Ok` carries what impairs a claim that was bound.
pub(super) fn walk(
    view: &View,
    desired: &Desired,
    record: &BucketRecord,
    stored: &Stored,
    impaired: Option<Stop>,
) -> Result<Option<Stop>, Halt> {
    if view.was_bound() {
        return drift(view, record, impaired);
    }
    let Some(look) = &view.bucket else {
        return Err(Look::Bucket(target(record)).into());
    };
    match look {
        BucketSeen::Absent => create(view, record, stored)?,
        BucketSeen::Forbidden => return Err(exists(record, "it belongs to somebody else").into()),
        BucketSeen::Present(tags) => take(view, record, stored, tags.as_ref())?,
    }
    if let Some(versioning) = desired.versioning.filter(|_| !record.adopted && !view.versioned) {
        return Err(Act::SetVersioning(target(record), versioning).into());
    }
    Ok(None)
}

/// The bucket of a claim that was bound is trusted between drift checks, and never replaced by an empty one.
fn drift(view: &View, record: &BucketRecord, impaired: Option<Stop>) -> Result<Option<Stop>, Halt> {
    if impaired.is_some() {
        return Ok(impaired);
    }
    if view.look_due {
        return Err(Look::Bucket(target(record)).into());
    }
    let message = format!("bucket {} was there and is gone; it is not replaced by an empty one", record.bucket);
    Ok(is_missing(view, record).then(|| Stop::refused(Reason::BucketMissing, Concern::Bucket, message)))
}

/// Whether the bucket of a claim that was bound is missing: seen in this pass or, without a look, in an earlier
/// one. One that is back counts as the claim's only if its tags say so.
pub(super) fn is_missing(view: &View, record: &BucketRecord) -> bool {
    match &view.bucket {
        Some(BucketSeen::Absent) => true,
        Some(BucketSeen::Present(Some(tags))) => {
            view.known_missing && !record.adopted && !names_claim_uid(tags, record)
        }
        Some(BucketSeen::Present(None)) => false,
        Some(BucketSeen::Forbidden) | None => view.known_missing,
    }
}

/// There is no bucket: absence goes into the record first, then the bucket is created and tagged.
fn create(view: &View, record: &BucketRecord, stored: &Stored) -> Result<(), Halt> {
    if record.adopted {
        let message = format!("bucket {} was taken over and is gone; it is not made again", record.bucket);
        return Err(Stop::refused(Reason::BucketMissing, Concern::Bucket, message).into());
    }
    match view.created {
        Some(CreateAnswer::AlreadyExists) => return Err(exists(record, "it belongs to somebody else").into()),
        Some(CreateAnswer::AlreadyOwned) => {
            let why = format!("the store says of bucket {} both that it is there and that it is not", record.bucket);
            return Err(Stop::failed(Concern::Bucket, why).into());
        }
        Some(CreateAnswer::Created) | None => {}
    }
    require_fresh(view)?;
    if !record.absence {
        let noted = BucketRecord { absence: true, ..record.clone() };
        return Err(rewrite(view, &noted, stored, Change::NoteAbsence));
    }
    Err(Act::CreateBucket(target(record)).into())
}

/// There is a bucket: ours, ours from an interrupted pass, or one that the adoption policy decides on.
/// `tags` is `None` where the store has no tagging.
fn take(
    view: &View,
    record: &BucketRecord,
    stored: &Stored,
    tags: Option<&BTreeMap<String, String>>,
) -> Result<(), Halt> {
    if view.tagged || record.adopted || tags.is_some_and(|tags| names_claim_uid(tags, record)) {
        return Ok(());
    }
    if view.created == Some(CreateAnswer::Created) {
        // A plain success in the pass that saw the bucket absent.
        return tag(view, record, &BTreeMap::new());
    }
    let untagged = tags.is_none_or(BTreeMap::is_empty);
    if untagged && record.absence {
        match view.bucket_empty {
            None => return Err(Look::Contents(target(record)).into()),
            Some(true) => return tag(view, record, &BTreeMap::new()),
            Some(false) => {}
        }
    }
    adopt(view, record, stored, tags.unwrap_or(&BTreeMap::new()))
}

fn adopt(view: &View, record: &BucketRecord, stored: &Stored, tags: &BTreeMap<String, String>) -> Result<(), Halt> {
    let Some(backend) = view.backend_at(&record.endpoint) else {
        return Err(Look::Backend(record.backend.clone()).into());
    };
    let whose = BucketTags::of(view, tags);
    match (backend.adoption, whose) {
        (AdoptionPolicy::Never, _) => Err(exists(record, "the backend's adoptionPolicy is Never").into()),
        (_, BucketTags::AnotherClaim) => Err(exists(record, "its tags name another claim").into()),
        (AdoptionPolicy::Owned, BucketTags::Nobody) => {
            Err(exists(record, "its tags don't name this claim, and the backend's adoptionPolicy is Owned").into())
        }
        (AdoptionPolicy::Owned | AdoptionPolicy::Any, _) => {
            require_fresh(view)?;
            refuse_rivals(view, record)?;
            let adopted = BucketRecord { adopted: true, ..record.clone() };
            Err(rewrite(view, &adopted, stored, Change::Adopt))
        }
    }
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

fn exists(record: &BucketRecord, why: &str) -> Stop {
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
    match &view.bucket {
        None => Err(Look::Bucket(target(record)).into()),
        Some(BucketSeen::Present(Some(tags))) => Ok(names_claim_uid(tags, record)),
        Some(_) => Ok(false),
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
    let Some(rivals) = &view.rivals else {
        return Err(Look::CredentialsFor(target(record)).into());
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
