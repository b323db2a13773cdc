//! The emergency: a key has leaked, and every key of its holder ends at once (spec §3.3).
//!
//! One patch of the record bumps the generation, takes the request as handled, and notes up to
//! which generation keys are revoked. From there on this too is level-based: whenever a key of one
//! of those generations is met it is deleted, and none is minted before they are gone.

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

/// Whether the revoke annotation carries a value not yet handled.
pub(in super::super) fn is_revocation_requested<H: KeyHolder>(holder: &H, record: &H::Record) -> bool {
    let request = holder.revoke_request();
    request.is_some() && request != H::handled(record).revoke_request
}

/// Sees to every key that is revoked, and says what keeps the first of those that are kept.
pub(in super::super) fn end_revoked<H: KeyHolder>(holder: &H) -> Result<Option<H::Stop>, HaltOf<H>> {
    let mut kept = None;
    for key in holder.keys().into_iter().filter(|key| holder.is_revoked(key)) {
        // One that somebody's finalizer keeps is over by its stamp, and keeps no other.
        kept = kept.or(tolerate(end(holder, key))?);
    }
    Ok(kept)
}

/// The step that starts a revocation: it aims above every key that there is, and takes a rotate
/// request as handled too, as whoever asked for another key has it by this one.
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

/// Deletes a key. One that somebody's finalizer keeps is still accepted, so it is stamped as well.
fn end<H: KeyHolder>(holder: &H, key: &Stored) -> Result<(), HaltOf<H>> {
    repair(holder, stamp_over(key))?;
    Err(delete_secret(holder, key))
}

/// True for a key that is over by every clock.
pub(in super::super) fn is_over(key: &Stored) -> bool {
    key.annotation(wire::EXPIRES_AT).is_some_and(|at| {
        // The gateway refuses one whose stamp can't be read.
        at.parse::<Timestamp>().map_or(true, |at| at <= Timestamp::UNIX_EPOCH)
    })
}

/// The patch that stamps a key which somebody's finalizer keeps with a time that is over by every
/// clock; `None` = it needs none.
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

/// The end of the minute after a revocation has made the current key, while it lasts: requests in
/// it count as one. A clock that takes the key to be of the future measures nothing by it.
pub(in super::super) fn pause<H: KeyHolder>(holder: &H, record: &H::Record, now: Timestamp) -> Option<Timestamp> {
    let handled = H::handled(record);
    let through = handled.revoked_through;
    let is_of_revocation = through > 0 && through.saturating_add(1) == handled.generation;
    let made = made(holder, handled.generation).filter(|made| is_of_revocation && *made <= now)?;
    Some(plus(made, GRACE)).filter(|over| now < *over)
}

/// The lowest generation that the revocation before left a key of. Those that it ended were looked
/// for by their names before the next key was made, and a mint of theirs that got no answer has
/// landed before that key was a minute old.
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
