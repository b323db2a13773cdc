//! The end of a key that another has replaced (spec §3.3).
//!
//! Everything here is level-based: a lower generation is stamped with `expires-at`, and deleted
//! once that has passed. Nothing has to be remembered but what the Secrets say.

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::api::{Rotation, SecretContent, wire};

use super::super::patch::{Change, SecretPatch};
use super::super::secret::Stored;
use super::super::walk::{Halt, Outcome};
use super::holder::{HaltOf, KeyHolder, KeyStop};
use super::record::{delete_secret, repair};

/// After a key has expired, its Secret stays this long: so that a clock stepping forward doesn't
/// cut a key short. And no rotation starts sooner than this after the last.
pub(super) const GRACE: SignedDuration = SignedDuration::from_secs(60);

/// Retires every key but the current one; a failure on one doesn't block the others. `lower` gives
/// the Secret of a lower key as it should be, `None` of the current one. None is stamped before the
/// consumer Secret holds the current one (`is_published`).
pub(in super::super) fn retire_lower<H: KeyHolder>(
    holder: &H,
    rotation: Rotation,
    is_published: bool,
    now: Timestamp,
    lower: impl Fn(&Stored) -> Result<Option<SecretContent>, HaltOf<H>>,
) -> Result<Outcome<H::Stop>, HaltOf<H>> {
    let mut outcome = Outcome::default();
    for key in holder.keys() {
        let retire = |content| retire(holder, key, content, rotation, is_published, now);
        match lower(key).and_then(|content| content.map(retire).transpose()) {
            Ok(due) => outcome.wake = outcome.wake.into_iter().chain(due).min(),
            Err(Halt::Stop(stop)) if H::FIRST_IS_TOLD => outcome.impaired = outcome.impaired.or(Some(*stop)),
            Err(Halt::Stop(stop)) => outcome.impaired = Some(*stop),
            Err(halt) => return Err(halt),
        }
    }
    Ok(outcome)
}

/// Stamps a key that is not stamped, deletes one that has expired. `Ok` = when it is due.
fn retire<H: KeyHolder>(
    holder: &H,
    key: &Stored,
    mut content: SecretContent,
    rotation: Rotation,
    is_published: bool,
    now: Timestamp,
) -> Result<Timestamp, HaltOf<H>> {
    let stamp = stamp(key).map_err(|()| Halt::stop(KeyStop::StampDamaged { secret: key.name().to_owned() }))?;
    let due = match stamp {
        Some(at) if now >= plus(at, GRACE) => return Err(delete_secret(holder, key)),
        Some(at) => plus(at, GRACE),
        None if !is_published => plus(now, SignedDuration::from_secs(1)),
        None => {
            // The clock is read in whole seconds, and the switch may be later by part of one: late
            // is allowed, early is not.
            let at = plus(now, SignedDuration::from_secs(i64::from(rotation.overlap_seconds) + 1));
            content.annotations.insert(wire::EXPIRES_AT.to_owned(), at.to_string());
            plus(at, GRACE)
        }
    };
    repair(holder, SecretPatch::between(&key.0, &content, H::REMOVABLE_OF_KEYS, Change::Retire))?;
    Ok(due)
}

/// `at` and `time` after it; the end of time where that is beyond it: stamps are read from outside,
/// and may be any.
pub(in super::super) fn plus(at: Timestamp, time: SignedDuration) -> Timestamp {
    at.checked_add(time).unwrap_or(Timestamp::MAX)
}

/// The stamp of a key, if it has one that can be read.
pub(in super::super) fn stamp(secret: &Stored) -> Result<Option<Timestamp>, ()> {
    secret.annotation(wire::EXPIRES_AT).map(str::parse).transpose().map_err(|_| ())
}
