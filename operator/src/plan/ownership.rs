//! Whose bucket is it, going by its tags and by credentials for it (spec §3.2).

use std::collections::BTreeMap;

use crate::api::{BucketRecord, wire};

use super::answer::BucketSeen;
use super::cause::{BucketCause, NotTaken};
use super::halt::Halt;
use super::stop::Stop;
use super::target::Target;
use super::view::{View, names_claim_uid};

/// Whom a bucket's tags name.
pub(super) enum BucketTags {
    /// This installation, namespace and claim name, in whatever life of it.
    ThisClaim,
    /// A claim, but not this one.
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

/// The bucket is there, and is not taken over.
pub(super) fn exists(record: &BucketRecord, why: NotTaken) -> Stop {
    Stop::new(BucketCause::Exists { bucket: record.bucket.clone(), why })
}

/// For a record that is made again: whether tags read in this pass carry this UID.
pub(super) fn carries_our_tags(view: &View, record: &BucketRecord) -> Result<bool, Halt> {
    match view.look_at(&Target::of(record))? {
        BucketSeen::Present(Some(tags)) => Ok(names_claim_uid(tags, record)),
        BucketSeen::Present(None) | BucketSeen::Absent | BucketSeen::Forbidden => Ok(false),
    }
}

/// A record is not made again for a bucket whose tags name another claim: the status that speaks of
/// it may be old.
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

/// Before a bucket is taken over on the strength of a record that may have been another's until
/// somebody deleted it: a live list must show no credential of another claim for it (spec §3.2).
pub(super) fn refuse_others_credentials(view: &View, record: &BucketRecord) -> Result<(), Halt> {
    if !view.has_others_credentials(&Target::of(record))? {
        return Ok(());
    }
    let stop = Stop::new(BucketCause::OthersCredentials { bucket: record.bucket.clone() });
    Err(stop.until_released(record.name()).into())
}
