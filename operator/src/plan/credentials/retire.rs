//! Retirement of keys that were replaced (spec §3.3).
//!
//! The rules are level-based. A lower generation gets an `expires-at` annotation and is deleted
//! once that time has passed. No state is kept outside the Secrets.

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::api::{Rotation, SecretContent, wire};

use super::super::patch::{Change, SecretPatch};
use super::super::secret::Stored;
use super::super::walk::{Halt, Outcome};
use super::holder::{HaltOf, KeyHolder, KeyStop};
use super::record::{delete_secret, repair};

/// Time after which the Secret of an expired key is deleted. It is kept until then, so that a clock
/// that steps forward does not cut a key short. Also the minimum time between two rotations.
pub(super) const GRACE: SignedDuration = SignedDuration::from_secs(60);

/// Retires every key except the current one. A failure on one key does not block the others.
///
/// `lower` returns the Secret of a lower key as it should be, and `None` for the current key. No
/// key gets an expiry before the consumer Secret has the current key (`is_published`).
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

/// Sets the expiry of a key that has none and deletes a key that has expired. Otherwise returns the
/// time at which the key is due for the next of these steps.
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
            // The clock is read in whole seconds, so the switch may be up to a second later than it
            // shows. A late expiry is allowed, an early one is not.
            let at = plus(now, SignedDuration::from_secs(i64::from(rotation.overlap_seconds) + 1));
            content.annotations.insert(wire::EXPIRES_AT.to_owned(), at.to_string());
            plus(at, GRACE)
        }
    };
    repair(holder, SecretPatch::between(&key.0, &content, H::REMOVABLE_OF_KEYS, Change::Retire))?;
    Ok(due)
}

/// Adds `time` to `at` and saturates at the maximum. Expiry annotations are external input and can
/// have any value.
pub(in super::super) fn plus(at: Timestamp, time: SignedDuration) -> Timestamp {
    at.checked_add(time).unwrap_or(Timestamp::MAX)
}

/// Parses the `expires-at` annotation of a key, if it has one.
pub(in super::super) fn stamp(secret: &Stored) -> Result<Option<Timestamp>, ()> {
    secret.annotation(wire::EXPIRES_AT).map(str::parse).transpose().map_err(|_| ())
}
