//! A consumer Secret that holds a later credential than the record aims at (spec §3.3).

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use crate::api::{AccessKeyId, BucketRecord, Desired};

use super::aim;
use super::halt::Halt;
use super::hold::recall;
use super::patch::Trigger;
use super::secret::Stored;
use super::step::Look;
use super::view::{Knowledge, View};

/// Credentials of a claim that live at once, but for repairs.
const MOST_LIVE: usize = 2;

/// A consumer Secret never goes back to an earlier credential. Where it holds a later one than the
/// record aims at, what was read of the record is old, mostly. Where live reads say the same,
/// somebody took the labels off what was aimed at then, or set the record back: the credential's
/// name leads to it, and it to the record of its bucket; if it is gone, a later one still is aimed
/// at. And a number far ahead of everything else that nobody has a credential of is the tenant's
/// own.
///
/// `Ok` with a time = the Secret stays as it is for so long: it is the tenant's to write, and each
/// edit of it would have a credential made otherwise. And where there are two already, what nobody
/// has a credential of is the tenant's own.
pub(super) fn refuse(
    view: &View,
    desired: &Desired,
    record: &BucketRecord,
    stored: &Stored,
    now: Timestamp,
) -> Result<Option<Duration>, Halt> {
    let name = &view.claim().consumer_secret;
    let Knowledge::Present(secret) = view.consumer(name) else { return Ok(None) };
    let later = view.published_generation(secret).filter(|generation| *generation > record.generation);
    let Some(published) = later.filter(|_| secret.is_controlled_by(&record.uid)) else { return Ok(None) };
    if !view.is_consumer_live(name) {
        return Err(Look::Consumer(name.clone()).into());
    }
    view.require_live_claim()?;
    view.require_list()?;
    match view.credential(published) {
        None => {
            view.require_absent(&AccessKeyId::of(&record.uid, published).secret_name())?;
            if !view.may_have_published(published) || view.credentials().count() >= MOST_LIVE {
                return Ok(None);
            }
            match aim::too_soon(view, record, now) {
                Some(time) => Ok(Some(time)),
                None => Err(aim::raise(view, record, stored, Trigger::Repair)),
            }
        }
        Some(secret) if !view.records().any(|(record, _)| secret.opens(record)) => {
            Err(recall(view, desired, Some(secret))?.into())
        }
        Some(_) => Err(aim::raise(view, record, stored, Trigger::Repair)),
    }
}
