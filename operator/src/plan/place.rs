//! The endpoint noted in the Secret of a key or of public access, which selects the store (spec
//! §2).
//!
//! The endpoint comes from the record and never from the S3Backend, so that an edit of the
//! S3Backend can't change which bucket a key opens. A Secret from an older version is completed
//! from the record, one claim at a time.
//!
//! A Secret with another endpoint is overwritten only by a pass that has seen the claim's own tags
//! at the record's endpoint, because a record that an older version recreated may be for another
//! store.

use std::collections::BTreeMap;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::api::{BucketRecord, Extra, SecretContent, wire};

use super::answer::{BackendSeen, BucketSeen, Checked};
use super::cause::SecretCause;
use super::credentials::{plus, repair};
use super::halt::Halt;
use super::patch::{Change, SecretPatch};
use super::secret::Stored;
use super::step::Look;
use super::stop::Stop;
use super::target::Target;
use super::view::{View, names_claim_uid};

/// Removes the endpoint from the wanted `content` of an existing credential or binding if it must
/// not be written now.
pub(super) fn keep(
    view: &View,
    secret: &Stored,
    record: &BucketRecord,
    content: &mut SecretContent,
) -> Result<(), Halt> {
    let is_written = match secret.endpoint() {
        Some(noted) => noted == record.endpoint || is_ours(view, record)?.unwrap_or(false),
        // Missing endpoints are completed later, by `complete`.
        None => false,
    };
    if !is_written {
        content.data.remove(wire::ENDPOINT);
    }
    Ok(())
}

/// Returns true if the record's bucket carries the claim's tags, as seen by this pass. `None` if
/// this pass has not seen the bucket and can't now.
fn is_ours(view: &View, record: &BucketRecord) -> Result<Option<bool>, Halt> {
    let at = Target::of(record);
    if let Some(seen) = view.bucket_seen(&at) {
        return Ok(Some(matches!(seen, BucketSeen::Present(Some(tags)) if names_claim_uid(tags, record))));
    }
    let points_there = match view.backend(&record.backend)? {
        BackendSeen::Present { backend, .. } => backend.endpoint == record.endpoint,
        BackendSeen::Missing | BackendSeen::Invalid(_) => false,
    };
    if points_there && view.checked() == Checked::No { Err(Look::Bucket(at).into()) } else { Ok(None) }
}

/// Returns the stop for a current key or public access that notes another store, while the record's
/// bucket does not prove to be the claim's.
pub(super) fn contradiction(view: &View, record: &BucketRecord) -> Result<Option<Stop>, Halt> {
    for secret in view.credential(record.generation).into_iter().chain(view.binding()) {
        let noted = secret.endpoint().filter(|noted| *noted != record.endpoint && secret.names_bucket_of(record));
        if let Some(noted) = noted
            && is_ours(view, record)? == Some(false)
        {
            let (secret, held_at) = (secret.name().to_owned(), record.endpoint.clone());
            return Ok(Some(Stop::new(SecretCause::Elsewhere { secret, noted, held_at })));
        }
    }
    Ok(None)
}

/// Completes a Secret from an older version with the endpoint from its record. Done last, and also
/// for a paused claim. Returns the time at which it is this claim's turn.
pub(super) fn complete(view: &View, now: Timestamp) -> Result<Option<Timestamp>, Halt> {
    let Some((secret, record)) = incomplete(view).next() else { return Ok(None) };
    if let Some(turn) = view.completed_after() {
        return Ok(Some(plus(now, SignedDuration::try_from(turn).unwrap_or(SignedDuration::MAX))));
    }
    let content = SecretContent {
        namespace: view.setting().operator_namespace.clone(),
        name: secret.name().to_owned(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        data: BTreeMap::from([(wire::ENDPOINT, record.endpoint.as_str().as_bytes().to_vec())]),
        owner: None,
        extra: Extra::default(),
    };
    repair(view, SecretPatch::between(&secret.0, &content, &[], Change::Complete))?;
    Ok(None)
}

/// Returns true if a Secret of the claim still has to be completed.
pub(crate) fn is_incomplete(view: &View) -> bool {
    incomplete(view).next().is_some()
}

/// Returns the credentials and the binding that note no endpoint, each with the record that has it.
/// The record that the claim is bound by comes first, because another one may be for an earlier
/// endpoint.
fn incomplete(view: &View) -> impl Iterator<Item = (&Stored, &BucketRecord)> {
    let secrets = view.credentials().chain(view.binding());
    let lacking = secrets.filter(|secret| secret.endpoint().is_none() && secret.kept_by().is_none());
    lacking.filter_map(|secret| {
        let records = view.record().into_iter().chain(view.records()).map(|(record, _)| record);
        Some((secret, records.into_iter().find(|record| secret.names_bucket_of(record))?))
    })
}
