//! Emergency revocation: after a leak, every key of a holder is ended at once (spec §3.3).
//!
//! One patch of the record bumps the generation, marks the request as handled, and notes the
//! highest revoked generation. The rest is level-based: a key of a revoked generation is deleted
//! wherever it appears, and no key is created before those are gone.

use std::collections::BTreeMap;

use k8s_openapi::jiff::Timestamp;

use crate::api::{Extra, SecretContent, wire};

use super::super::patch::{Change, SecretPatch, Trigger};
use super::super::secret::Stored;
use super::super::walk::tolerate;
use super::holder::{HaltOf, KeyHolder};
use super::record::{delete_secret, repair};
use super::retire::{GRACE, plus};
use super::rotate::{aim_higher, made};

/// Returns true if the revoke annotation has a value that is not handled yet.
pub(in super::super) fn is_revocation_requested<H: KeyHolder>(holder: &H, record: &H::Record) -> bool {
    let request = holder.revoke_request();
    request.is_some() && request != H::handled(record).revoke_request
}

/// Deletes every revoked key. Returns the reason that keeps the first of those that can't be
/// deleted.
pub(in super::super) fn end_revoked<H: KeyHolder>(holder: &H) -> Result<Option<H::Stop>, HaltOf<H>> {
    let mut kept = None;
    for key in holder.keys().into_iter().filter(|key| holder.is_revoked(key)) {
        // A key that a finalizer keeps has expired by its annotation, and does not block the
        // others.
        kept = kept.or(tolerate(end(holder, key))?);
    }
    Ok(kept)
}

/// Returns the step that starts a revocation.
///
/// It bumps the generation above every known key. It also marks a rotate request as handled,
/// because the user who requested a new key gets one by this bump.
pub(in super::super) fn revoke<H: KeyHolder>(
    holder: &H,
    record: &H::Record,
    stored: &Stored,
    now: Timestamp,
) -> HaltOf<H> {
    let through = holder.next_generation().saturating_sub(1);
    let revoked = holder.revoked(record, through, lowest_left(holder, record, now));
    aim_higher(holder, &revoked, stored, Trigger::Revocation, true)
}

/// Deletes a key. The gateway still accepts a key that a finalizer keeps, so such a key is expired
/// as well.
fn end<H: KeyHolder>(holder: &H, key: &Stored) -> Result<(), HaltOf<H>> {
    repair(holder, stamp_over(key))?;
    Err(delete_secret(holder, key))
}

/// Returns true if the key has expired by every clock.
pub(in super::super) fn is_over(key: &Stored) -> bool {
    key.annotation(wire::EXPIRES_AT).is_some_and(|at| {
        // The gateway refuses a key whose expiry can't be parsed.
        at.parse::<Timestamp>().map_or(true, |at| at <= Timestamp::UNIX_EPOCH)
    })
}

/// Returns the patch that sets the expiry of a key kept by a finalizer to the Unix epoch, so that
/// every clock sees it as expired. `None` if no patch is needed.
fn stamp_over(key: &Stored) -> Option<SecretPatch> {
    if key.kept_by().is_none() || is_over(key) {
        return None;
    }
    let content = SecretContent {
        namespace: key.reference().namespace,
        name: key.name().to_owned(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::from([(wire::EXPIRES_AT.to_owned(), Timestamp::UNIX_EPOCH.to_string())]),
        data: BTreeMap::new(),
        owner: None,
        extra: Extra::default(),
    };
    SecretPatch::between(&key.0, &content, &[], Change::Retire)
}

/// Returns the end of the minute after a revocation has created the current key, while that minute
/// lasts. Revoke requests within it count as one.
///
/// Returns `None` if the key's creation time is in the future of this clock, which then can't
/// measure the minute.
pub(in super::super) fn pause<H: KeyHolder>(holder: &H, record: &H::Record, now: Timestamp) -> Option<Timestamp> {
    let handled = H::handled(record);
    let through = handled.revoked_through;
    let is_of_revocation = through > 0 && through.saturating_add(1) == handled.generation;
    let made = made(holder, handled.generation).filter(|made| is_of_revocation && *made <= now)?;
    Some(plus(made, GRACE)).filter(|over| now < *over)
}

/// Returns the lowest generation that may still have a key after the previous revocation.
///
/// The keys that it revoked were looked up by name before the next key was created. A create
/// request of theirs without an answer has taken effect before that key was a minute old.
fn lowest_left<H: KeyHolder>(holder: &H, record: &H::Record, now: Timestamp) -> u64 {
    let through = H::handled(record).revoked_through;
    let is_later = |key: &&Stored| {
        let made = key.0.metadata.creation_timestamp.as_ref();
        made.is_some_and(|made| plus(made.0, GRACE) <= now)
            && holder.generation(key).is_some_and(|generation| generation > through)
    };
    let keys = holder.keys();
    let is_left = keys.iter().any(|key| holder.is_revoked(key));
    if !is_left && keys.iter().any(is_later) { through.saturating_add(1) } else { 1 }
}
