//! Ownership of a bucket, derived from its tags and from credentials for it (spec §3.2).

use std::collections::BTreeMap;

use crate::api::{BucketRecord, wire};

use super::answer::BucketSeen;
use super::cause::{BucketCause, NotTaken};
use super::halt::Halt;
use super::stop::Stop;
use super::target::Target;
use super::view::{View, names_claim_uid};

/// Claim named by the tags of a bucket.
pub(super) enum BucketTags {
    /// This installation, namespace and claim name, with any UID.
    ThisClaim,
    /// Another claim, or an incomplete set of tags.
    AnotherClaim,
    /// No claim.
    Nobody,
}

impl BucketTags {
    pub(super) fn of(view: &View, tags: &BTreeMap<String, String>) -> Self {
        let claim = wire::tag_value(&view.claim().at.to_string());
        let installation = wire::tag_value(&view.setting().installation);
        match (tags.get(wire::TAG_INSTALLATION), tags.get(wire::TAG_CLAIM)) {
            (Some(i), Some(c)) if *i == installation && *c == claim => Self::ThisClaim,
            (None, None) if !tags.contains_key(wire::TAG_CLAIM_UID) => Self::Nobody,
            (Some(_) | None, Some(_) | None) => Self::AnotherClaim,
        }
    }
}

/// Returns the stop for a bucket that exists and must not be adopted by this claim.
pub(super) fn exists(record: &BucketRecord, why: NotTaken) -> Stop {
    Stop::new(BucketCause::Exists { bucket: record.bucket.clone(), why })
}

/// Returns true if the tags carry the claim's UID, according to a read in this pass. Used when a
/// record is recreated.
pub(super) fn carries_our_tags(view: &View, record: &BucketRecord) -> Result<bool, Halt> {
    match view.look_at(&Target::of(record))? {
        BucketSeen::Present(Some(tags)) => Ok(names_claim_uid(tags, record)),
        BucketSeen::Present(None) | BucketSeen::Absent | BucketSeen::Forbidden => Ok(false),
    }
}

/// Refuses to recreate a record for a bucket whose tags name another claim: the status that names
/// this bucket may be outdated.
pub(super) fn refuse_another_claims(view: &View, record: &BucketRecord) -> Result<(), Halt> {
    match view.last_look() {
        Some(BucketSeen::Present(Some(tags)))
            if !names_claim_uid(tags, record) && matches!(BucketTags::of(view, tags), BucketTags::AnotherClaim) =>
        {
            Err(exists(record, NotTaken::AnotherClaims).into())
        }
        Some(BucketSeen::Present(_) | BucketSeen::Absent | BucketSeen::Forbidden) | None => Ok(()),
    }
}

/// Requires that a live list shows no credential of another claim for the bucket (spec §3.2).
///
/// Checked before a bucket is adopted: the bucket may have belonged to another claim until somebody
/// deleted its record.
pub(super) fn refuse_others_credentials(view: &View, record: &BucketRecord) -> Result<(), Halt> {
    if !view.has_others_credentials(&Target::of(record))? {
        return Ok(());
    }
    let stop = Stop::new(BucketCause::OthersCredentials { bucket: record.bucket.clone() });
    Err(stop.until_released(record.name()).into())
}
