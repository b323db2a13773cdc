//! Handling of a consumer Secret with a later credential than the record's current one (spec §3.3).

use crate::api::{AccessKeyId, BucketRecord, Desired};

use super::credentials::{KeyHolder, bump_generation};
use super::halt::Halt;
use super::hold::recall;
use super::known::Knowledge;
use super::patch::Trigger;
use super::secret::Stored;
use super::step::Look;
use super::view::View;

/// Ensures that a consumer Secret never goes back to an earlier credential.
///
/// If the consumer Secret has a later credential than the record, the read of the record is usually
/// outdated. If live reads confirm it, somebody removed the labels of the later record or edited
/// the record. The name of the credential then leads to its Secret, which leads to the record of
/// its bucket. If that record is gone, it is recreated; otherwise the generation is bumped above
/// both.
///
/// If there is no such credential, the tenant made up the content of the consumer Secret.
pub(super) fn refuse(view: &View, desired: &Desired, record: &BucketRecord, stored: &Stored) -> Result<(), Halt> {
    let name = &view.claim().consumer_secret;
    let Knowledge::Present(secret) = view.consumer(name) else { return Ok(()) };
    let later = view.published_generation(secret).filter(|generation| *generation > record.generation);
    let Some(published) = later.filter(|_| secret.is_controlled_by(&record.uid)) else { return Ok(()) };
    if !view.is_consumer_live(name) {
        return Err(Look::Consumer(name.clone()).into());
    }
    view.require_live()?;
    view.require_settled(record)?;
    match view.credential(published) {
        None => view.require_absent(&AccessKeyId::of(&record.uid, published).secret_name()),
        Some(secret) if !view.records().any(|(record, _)| secret.opens(record)) => {
            Err(recall(view, desired, Some(secret))?.into())
        }
        Some(_) => Err(bump_generation(view, record, stored, Trigger::Repair)),
    }
}
