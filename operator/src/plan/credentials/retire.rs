//! The end of a key that another has replaced (spec §3.3).
//!
//! Everything here is level-based: a lower generation is stamped with `expires-at`, and deleted
//! once that has passed. Nothing has to be remembered but what the Secrets say.

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::api::{Rotation, wire};

use super::super::secret::Stored;

/// After a key has expired, its Secret stays this long: so that a clock stepping forward doesn't
/// cut a key short. And no rotation starts sooner than this after the last.
pub(super) const GRACE: SignedDuration = SignedDuration::from_secs(60);

/// `at` and `time` after it; the end of time where that is beyond it: stamps are read from outside,
/// and may be any.
pub(in super::super) fn plus(at: Timestamp, time: SignedDuration) -> Timestamp {
    at.checked_add(time).unwrap_or(Timestamp::MAX)
}

/// The stamp of a key, if it has one that can be read.
pub(in super::super) fn stamp(secret: &Stored) -> Result<Option<Timestamp>, ()> {
    secret.annotation(wire::EXPIRES_AT).map(str::parse).transpose().map_err(|_| ())
}

/// What is done about a key that another has replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum RetireDecision {
    /// Its time has come.
    Over,
    /// It is looked at again then.
    Waits(Timestamp),
    /// It is stamped with this time, and looked at again then.
    Stamped { at: Timestamp, until: Timestamp },
}

impl RetireDecision {
    /// By its stamp, and by whether the next key is what tenants read.
    pub(in super::super) fn of(
        expires_at: Option<Timestamp>,
        is_published: bool,
        rotation: Rotation,
        now: Timestamp,
    ) -> Self {
        match expires_at {
            Some(at) if now >= plus(at, GRACE) => Self::Over,
            Some(at) => Self::Waits(plus(at, GRACE)),
            None if !is_published => Self::Waits(plus(now, SignedDuration::from_secs(1))),
            None => {
                // The clock is read in whole seconds, and the switch may be later by part of one:
                // late is allowed, early is not.
                let at = plus(now, SignedDuration::from_secs(i64::from(rotation.overlap_seconds) + 1));
                Self::Stamped { at, until: plus(at, GRACE) }
            }
        }
    }
}
