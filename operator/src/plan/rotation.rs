//! When a credential is replaced, and how the one before it goes (spec §3.3).
//!
//! One patch of the record raises the generation aimed at. From there on everything is level-based:
//! the consumer Secret holds the target; every lower generation is stamped with `expires-at`; what
//! has expired is deleted. So nothing has to be remembered of a rotation under way but what the
//! Secrets say.

use k8s_openapi::jiff::Timestamp;

use crate::api::{AccessKeyId, BucketName, BucketRecord, CredentialFacts, Desired, wire};

use super::cause::SecretCause;
use super::credentials::{self, RetireDecision, delete_secret, is_rotation_requested, repair, stamp};
use super::current_generation::bump_when_due;
use super::halt::{Halt, Outcome};
use super::key::QUOTA_KEYS;
use super::patch::{Change, SecretPatch, Trigger};
use super::place;
use super::secret::Stored;
use super::stop::Stop;
use super::view::View;

/// Sees lower generations out, and starts a rotation that is due. None is stamped before the
/// consumer Secret holds the target.
pub(super) fn walk(
    view: &View,
    desired: &Desired,
    record: &BucketRecord,
    stored: &Stored,
    now: Timestamp,
) -> Result<Outcome, Halt> {
    overtake(view, record, stored)?;
    let lower = retire_lower(view, desired, record, now)?;
    let has_lower = lower.wake.is_some() || lower.impaired.is_some();
    let start = bump_when_due(view, desired, record, stored, now, has_lower)?;
    Ok(Outcome { wake: lower.wake.into_iter().chain(start).min(), ..lower })
}

/// A key above the record's generation is a mint that landed late, after its record was let go or
/// aimed elsewhere. The record is aimed above it, and the key is retired. (One that another record
/// aims at, and that opens its bucket, has the claim bound by that record.)
fn overtake(view: &View, record: &BucketRecord, stored: &Stored) -> Result<(), Halt> {
    let is_above_target = |secret: &&Stored| view.labelled_generation(secret).is_some_and(|it| it > record.generation);
    let Some(stray) = view.credentials().find(is_above_target) else { return Ok(()) };
    let trigger = if is_rotation_requested(view, record) { Trigger::Request } else { Trigger::Repair };
    Err(credentials::overtake(view, record, stored, stray, trigger))
}

/// Sees out all but the current one. What stands in the way of one of them doesn't in that of the
/// others.
fn retire_lower(view: &View, desired: &Desired, record: &BucketRecord, now: Timestamp) -> Result<Outcome, Halt> {
    let mut outcome = Outcome::default();
    for secret in view.credentials() {
        match retire(view, desired, record, secret, now) {
            Ok(due) => outcome.wake = outcome.wake.into_iter().chain(due).min(),
            Err(Halt::Stop(stop)) => outcome.impaired = outcome.impaired.or(Some(*stop)),
            Err(halt) => return Err(halt),
        }
    }
    Ok(outcome)
}

/// Stamps a credential that is not stamped, deletes one that has expired. `Ok` = when it is due;
/// never, if it is the current one.
fn retire(
    view: &View,
    desired: &Desired,
    record: &BucketRecord,
    secret: &Stored,
    now: Timestamp,
) -> Result<Option<Timestamp>, Halt> {
    let generation = generation(view, secret, record.generation)?;
    if generation == record.generation {
        return Ok(None);
    }
    if view.is_revoked(secret) {
        // It was deleted before, and is there only where somebody's finalizer keeps it.
        return Err(delete_secret(view, secret));
    }
    let opened = BucketRecord { generation, ..opens(view, secret, record) };
    let mut content = CredentialFacts::of(desired, &opened).content(&view.setting().operator_namespace, None);
    place::keep(view, secret, &opened, &mut content)?;
    // The pass that wrote it doesn't stamp: a later one has to see it, and the overlap counts from
    // there.
    let is_published = !view.is_consumer_written() && published_everywhere(view, record);
    let due = match RetireDecision::of(expires_at(secret)?, is_published, desired.rotation, now) {
        RetireDecision::Over => return Err(delete_secret(view, secret)),
        RetireDecision::Waits(until) => until,
        RetireDecision::Stamped { at, until } => {
            content.annotations.insert(wire::EXPIRES_AT.to_owned(), at.to_string());
            until
        }
    };
    repair(view, SecretPatch::between(&secret.0, &content, &QUOTA_KEYS, Change::Retire))?;
    Ok(Some(due))
}

/// The record of the bucket that a credential is for: after a move the one that the claim left
/// (spec §3.7). If that is lost the credential itself says which; what it says is believed only of
/// one on its way out.
fn opens(view: &View, secret: &Stored, current: &BucketRecord) -> BucketRecord {
    let known = view.records().map(|(record, _)| record).find(|record| secret.opens(record));
    if let Some(known) = known {
        return known.clone();
    }
    let bucket = secret.text("bucket_name").and_then(|name| BucketName::parse(name).ok());
    match (secret.text("backend"), bucket) {
        // One of the bucket that the claim has, at an endpoint that the record has left.
        _ if secret.names_bucket_of(current) => current.clone(),
        (Some(backend), Some(bucket)) => {
            let endpoint = secret.endpoint().unwrap_or_else(|| current.endpoint.clone());
            BucketRecord { backend: backend.to_owned(), endpoint, bucket, ..current.clone() }
        }
        (Some(_) | None, Some(_) | None) => current.clone(),
    }
}

/// The generation of a credential of this claim, proved by its name. One above the target means
/// that this pass's record is old; a name of no generation that somebody made it.
fn generation(view: &View, secret: &Stored, target: u64) -> Result<u64, Halt> {
    match view.proved_generation(secret, target) {
        Some(generation) if generation <= target => Ok(generation),
        Some(_) => Err(Halt::Stale("there is a credential of a later generation")),
        None => {
            let secret = secret.name().to_owned();
            Err(Stop::new(SecretCause::NotACredential { secret }).into())
        }
    }
}

/// A stamp that can't be read is never written again (spec §2): it might have come earlier.
fn expires_at(secret: &Stored) -> Result<Option<Timestamp>, Halt> {
    stamp(secret).map_err(|()| {
        let secret = secret.name().to_owned();
        Stop::new(SecretCause::StampDamaged { secret }).into()
    })
}

/// Whether every consumer Secret of this claim was observed at the target.
fn published_everywhere(view: &View, record: &BucketRecord) -> bool {
    let id = AccessKeyId::of(&record.uid, record.generation);
    view.own_consumers().all(|secret| secret.published_key() == Some(id.as_str()))
}
