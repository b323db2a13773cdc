//! Keys of a claim that holds its bucket, and the objects that publish them (spec §3.3): credential
//! → consumer Secret → anonymous binding → rotation.
//!
//! One patch of the record bumps the generation. The rest is level-based: the consumer Secret has
//! the current key, every lower generation gets an `expires-at` annotation, and expired keys are
//! deleted. No state of a rotation is kept outside the Secrets.

use k8s_openapi::jiff::Timestamp;

use crate::api::{
    AccessKeyId, AnonymousBinding, BucketName, BucketRecord, Credential, CredentialFacts, Desired, SecretContent,
};

use super::cause::SecretCause;
use super::credentials::{
    Due, KeyHolder, bump_generation, delete_secret, ensure_key, is_rotation_requested, overtake, repair, retire_lower,
    rewrite, rotation_due,
};
use super::halt::{Halt, Outcome};
use super::patch::{Change, SecretPatch, Trigger};
use super::secret::Stored;
use super::step::{Act, Look, Step};
use super::stop::{Stop, together};
use super::view::View;
use super::{consumer, place, public, setback};

/// Ensures that the current key exists and is published, unless the consumer Secret has a later one
/// (`setback`), and that public access matches the spec. Then handles rotation.
pub(super) fn walk(
    view: &View,
    desired: &Desired,
    record: &BucketRecord,
    stored: &Stored,
    now: Timestamp,
) -> Result<Outcome, Halt> {
    let credential = ensure_credential(view, desired, record, stored)?;
    setback::refuse(view, desired, record, stored)?;
    consumer::ensure_secret(view, desired, record, &credential)?;
    consumer::remove_renamed(view)?;
    public::ensure_binding(view, desired, record, stored)?;
    overtake(view, record, stored)?;
    let lower = retire_lower(view, desired.rotation, is_published(view, record), now, |key| {
        lower_key(view, desired, record, key)
    })?;
    let has_lower = lower.wake.is_some() || lower.impaired.is_some();
    let next = rotate(view, desired, record, stored, has_lower, now)?;
    let place = place::contradiction(view, record)?;
    let public = public::outranked(view, desired, record)?;
    Ok(Outcome { impaired: together([place, lower.impaired, public]), wake: lower.wake.into_iter().chain(next).min() })
}

/// Returns the current key, after repairing its Secret.
fn ensure_credential(
    view: &View,
    desired: &Desired,
    record: &BucketRecord,
    stored: &Stored,
) -> Result<Credential, Halt> {
    let facts = CredentialFacts::of(desired, record);
    let (credential, secret) = ensure_key(view, record, stored, || Ok(Step::Act(Act::Mint(facts.clone()))))?;
    let mut content = facts.content(&view.setting().operator_namespace, None);
    place::keep(view, secret, record, &mut content)?;
    repair(view, SecretPatch::between(&secret.0, &content, View::REMOVABLE_OF_KEYS, Change::Repair))?;
    Ok(credential)
}

/// Returns true if every consumer Secret of the claim was observed with the current key. The pass
/// that wrote it does not count: a later pass has to observe it, and the overlap starts there.
fn is_published(view: &View, record: &BucketRecord) -> bool {
    let id = AccessKeyId::of(&record.uid, record.generation);
    !view.is_consumer_written() && view.own_consumers().all(|secret| secret.published_key() == Some(id.as_str()))
}

/// Returns the wanted Secret of a lower key, or `None` for the current key.
fn lower_key(
    view: &View,
    desired: &Desired,
    record: &BucketRecord,
    key: &Stored,
) -> Result<Option<SecretContent>, Halt> {
    let generation = match view.proved_generation(key, record.generation) {
        Some(generation) if generation == record.generation => return Ok(None),
        Some(generation) if generation < record.generation => generation,
        Some(_) => return Err(Halt::Stale("there is a credential of a later generation")),
        None => return Err(Stop::new(SecretCause::NotACredential { secret: key.name().to_owned() }).into()),
    };
    if view.is_revoked(key) {
        // It was deleted before, and exists only because a finalizer keeps it.
        return Err(delete_secret(view, key));
    }
    let opened = BucketRecord { generation, ..opens(view, key, record) };
    let mut content = CredentialFacts::of(desired, &opened).content(&view.setting().operator_namespace, None);
    place::keep(view, key, &opened, &mut content)?;
    Ok(Some(content))
}

/// Returns the record of the bucket that a credential opens. After a move this is the bucket that
/// the claim left (spec §3.7).
///
/// If that record is lost, the credential's own fields are used. They are trusted only for a
/// credential that is being retired.
fn opens(view: &View, secret: &Stored, current: &BucketRecord) -> BucketRecord {
    let known = view.records().map(|(record, _)| record).find(|record| secret.opens(record));
    if let Some(known) = known {
        return known.clone();
    }
    let bucket = secret.text("bucket_name").and_then(|name| BucketName::parse(name).ok());
    match (secret.text("backend"), bucket) {
        // A credential for the claim's bucket, at an endpoint that the record no longer has.
        _ if secret.names_bucket_of(current) => current.clone(),
        (Some(backend), Some(bucket)) => {
            let endpoint = secret.endpoint().unwrap_or_else(|| current.endpoint.clone());
            BucketRecord { backend: backend.to_owned(), endpoint, bucket, ..current.clone() }
        }
        (Some(_) | None, Some(_) | None) => current.clone(),
    }
}

/// Starts a rotation that is due. Otherwise returns the time at which one becomes due.
fn rotate(
    view: &View,
    desired: &Desired,
    record: &BucketRecord,
    stored: &Stored,
    has_lower: bool,
    now: Timestamp,
) -> Result<Option<Timestamp>, Halt> {
    let is_requested = is_rotation_requested(view, record);
    if let Due::Later(due) = rotation_due(view, record, desired.rotation, is_requested, has_lower, now)? {
        return Ok(due);
    }
    // At most two keys: a key that the cache does not show may still exist.
    let noted = without_lower(view, record, stored)?;
    Err(bump_generation(view, &noted, stored, Trigger::Interval))
}

/// Number of credential names to read before the result is noted in a record that does not say how
/// many of its credentials are gone.
const STRETCH: u64 = 1000;

/// Returns the record with the note that every lower credential is gone, after reading each of
/// their names.
///
/// Reading starts where the last note ends, so there are usually few names. There may be very many
/// for a record from an older version; progress is noted in between.
///
/// An unanswered create request of a lower generation can't take effect any more: the current
/// credential was created after it, at least a minute ago.
fn without_lower(view: &View, record: &BucketRecord, stored: &Stored) -> Result<BucketRecord, Halt> {
    if !record.tells_all() {
        view.require_list()?;
    }
    if record.lowest.is_none() && view.binding().is_none() {
        view.require_absent(&AnonymousBinding::name(&record.uid))?;
    }
    let noted = |lowest| BucketRecord { lowest: Some(lowest), ..complete(view, record) };
    match view.unread_below(record.generation) {
        Some((first, _)) if first >= record.lowest_generation().saturating_add(STRETCH) => {
            Err(rewrite(view, &noted(first), stored, Change::NoteLowest))
        }
        Some((_, name)) => Err(Look::Internal(name).into()),
        None => Ok(noted(record.generation)),
    }
}

/// Completes a record from an older version with the result of a live list. From then on its notes
/// account for everything that may exist.
fn complete(view: &View, record: &BucketRecord) -> BucketRecord {
    if record.lowest.is_some() {
        return record.clone();
    }
    let public = record.public || view.binding().is_some();
    BucketRecord { public, another: record.another || view.records().count() > 1, ..record.clone() }
}
