//! The store that a key or public access is for: the endpoint that its Secret notes (spec §2).
//!
//! It comes from the record, and never from the S3Backend: whoever edits that does not choose which
//! bucket a key opens. A Secret that an older version made is completed from the record, in its
//! turn. One that notes another endpoint is written only by a pass that saw the claim's own tags
//! where the record has the bucket: a record that was made again by an older version may be of
//! another store.

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

/// What is to be written over a credential or binding that is there: of `content` all but an
/// endpoint that is not to be written now.
pub(super) fn keep(
    view: &View,
    secret: &Stored,
    record: &BucketRecord,
    content: &mut SecretContent,
) -> Result<(), Halt> {
    let is_written = match secret.endpoint() {
        Some(noted) => noted == record.endpoint || is_ours(view, record)?.unwrap_or(false),
        // That waits for its turn.
        None => false,
    };
    if !is_written {
        content.data.remove(wire::ENDPOINT);
    }
    Ok(())
}

/// Whether the record's bucket carries the claim's tags, as this pass saw it. `None` = it has not
/// seen it, and can't now.
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

/// What is to be told of the record's key and of public access where they note another store, and
/// the bucket that the record has is not seen to be the claim's.
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

/// Notes in a Secret that an older version made where its bucket is, as its record has it: last of
/// all, and also of a claim that is paused. `Ok` = when it is this claim's turn.
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

/// Whether a Secret of the claim is still to be completed.
pub(crate) fn is_incomplete(view: &View) -> bool {
    incomplete(view).next().is_some()
}

/// Credentials and binding that don't note where their bucket is, each with the record that does.
/// The one that the claim is bound by goes first: the other may be of an earlier endpoint.
fn incomplete(view: &View) -> impl Iterator<Item = (&Stored, &BucketRecord)> {
    let secrets = view.credentials().chain(view.binding());
    let lacking = secrets.filter(|secret| secret.endpoint().is_none() && secret.kept_by().is_none());
    lacking.filter_map(|secret| {
        let records = view.record().into_iter().chain(view.records()).map(|(record, _)| record);
        Some((secret, records.into_iter().find(|record| secret.names_bucket_of(record))?))
    })
}
