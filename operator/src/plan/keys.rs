//! The keys of a claim that holds its bucket, and what is opened by them (spec §3.3): credential →
//! consumer Secret → anonymous binding → rotation.
//!
//! One patch of the record raises the generation aimed at. From there on everything is level-based:
//! the consumer Secret holds the current key; every lower generation is stamped with `expires-at`;
//! what has expired is deleted. So nothing has to be remembered of a rotation under way but what
//! the Secrets say.

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

/// Makes sure that the key aimed at is there, published, unless the consumer Secret holds a later
/// one (`setback`), and public access as the spec has it; then sees to rotation.
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

/// The key of the record's generation, brought up to date.
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

/// True if every consumer Secret of the claim was observed with the current key. The pass that
/// wrote it doesn't count: a later one has to see it, and the overlap counts from there.
fn is_published(view: &View, record: &BucketRecord) -> bool {
    let id = AccessKeyId::of(&record.uid, record.generation);
    !view.is_consumer_written() && view.own_consumers().all(|secret| secret.published_key() == Some(id.as_str()))
}

/// The Secret of a lower key as it should be; `None` = this is the current one.
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
        // It was deleted before, and is there only where somebody's finalizer keeps it.
        return Err(delete_secret(view, key));
    }
    let opened = BucketRecord { generation, ..opens(view, key, record) };
    let mut content = CredentialFacts::of(desired, &opened).content(&view.setting().operator_namespace, None);
    place::keep(view, key, &opened, &mut content)?;
    Ok(Some(content))
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

/// Starts a rotation that is due. `Ok` = when one will be due.
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
    // Two keys at most: what the cache does not show may live all the same.
    let noted = without_lower(view, record, stored)?;
    Err(bump_generation(view, &noted, stored, Trigger::Interval))
}

/// Of a record that does not tell how many of its credentials are gone, so many names are looked at
/// before it is noted that they are free.
const STRETCH: u64 = 1000;

/// The record as it is once it notes that every credential below its own is gone, each of which was
/// looked for by its name: from where the last note ends, so that there are few. Of a record that
/// an older version made there may be very many; how far it came is noted.
///
/// A mint of a lower generation that got no answer has landed long since, if it does: the
/// credential aimed at was made after it, a minute ago at the least.
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

/// A record that an older version made, completed by what a live list shows: from then on it tells
/// what there may be.
fn complete(view: &View, record: &BucketRecord) -> BucketRecord {
    if record.lowest.is_some() {
        return record.clone();
    }
    let public = record.public || view.binding().is_some();
    BucketRecord { public, another: record.another || view.records().count() > 1, ..record.clone() }
}
