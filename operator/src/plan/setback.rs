//! A consumer Secret that holds a later credential than the record aims at (spec §3.3).

use crate::api::{AccessKeyId, BucketRecord, Desired};

use super::credentials::{KeyHolder, bump_generation};
use super::halt::Halt;
use super::hold::recall;
use super::known::Knowledge;
use super::patch::Trigger;
use super::secret::Stored;
use super::step::Look;
use super::view::View;

/// A consumer Secret never goes back to an earlier credential. Where it holds a later one than the
/// record aims at, what was read of the record is old, mostly. Where live reads say the same,
/// somebody took the labels off what was aimed at then, or set the record back: the credential's
/// name leads to it, and it to the record of its bucket; if that is gone, a later one still is
/// aimed at. Where nobody has a credential of that number, the Secret tells of one that its tenant
/// made up.
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
