//! When a key is replaced, and how the next one is made (spec §3.3).
//!
//! One patch of the record bumps the generation. The pass whose own write did that makes the key.

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::api::Rotation;

use super::super::patch::Trigger;
use super::super::secret::Stored;
use super::super::walk::Halt;
use super::holder::{HaltOf, KeyHolder};
use super::record::bump_generation;
use super::retire::{GRACE, plus};

/// When the key of a generation was made.
pub(in super::super) fn made<H: KeyHolder>(holder: &H, generation: u64) -> Option<Timestamp> {
    holder.key(generation)?.0.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

/// When a key that was made then is to be replaced: at once where somebody asks, but not within a
/// minute of the last.
pub(in super::super) fn due(made: Timestamp, rotation: Rotation, is_requested: bool) -> Option<Timestamp> {
    let interval = rotation.interval_days.map(|days| SignedDuration::from_hours(24 * i64::from(days)));
    let earliest = plus(made, GRACE);
    let timed = interval.map(|interval| plus(made, interval).max(earliest));
    if is_requested { Some(earliest) } else { timed }
}

/// Whether a rotation starts.
pub(in super::super) enum Due {
    /// Not now; when one will be due by itself.
    Later(Option<Timestamp>),
    /// Now: the current key was made then.
    Now(Timestamp),
}

/// Decides whether a rotation starts: none while there is a lower generation, none within a minute
/// of the last. `has_lower` is what this walk just saw, be it from the cache; after each live read
/// everything is walked anew, and sees what that shows.
pub(in super::super) fn rotation_due<H: KeyHolder>(
    holder: &H,
    record: &H::Record,
    rotation: Rotation,
    is_requested: bool,
    has_lower: bool,
    now: Timestamp,
) -> Result<Due, HaltOf<H>> {
    let Some(made) = made(holder, H::handled(record).generation) else { return Ok(Due::Later(None)) };
    let Some(due) = due(made, rotation, is_requested) else { return Ok(Due::Later(None)) };
    if has_lower || due > now {
        return Ok(Due::Later((!has_lower).then_some(due)));
    }
    holder.require_live()?;
    Ok(Due::Now(made))
}

/// What is done about the key that the record aims at where there is none.
pub(in super::super) enum Missing {
    /// It is made: this pass's own write aimed at it, so nobody has made it yet.
    Mint,
    /// It was, and is lost: the next generation is aimed at, so that no id is ever given a second
    /// secret.
    Lost,
}

/// Finds out why there is no key of this name, which is that of the record's generation.
pub(in super::super) fn missing_key<H: KeyHolder>(
    holder: &H,
    record: &H::Record,
    name: &str,
) -> Result<Missing, HaltOf<H>> {
    holder.require_live()?;
    holder.require_not_taken(name)?;
    if holder.aimed_by_this_pass() == Some(H::handled(record).generation) {
        holder.require_settled_if_in_doubt(record)?;
        holder.require_revoked(record)?;
        return Ok(Missing::Mint);
    }
    holder.require_absent(name)?;
    holder.require_settled(record)?;
    // The first read may have been of the server's past, and there would be two keys then.
    holder.require_absent_twice(name)?;
    Ok(Missing::Lost)
}

/// The step about a key above the record's generation: a mint that landed late, after its record
/// was let go or aimed elsewhere. The record is aimed above it, and the key is retired.
pub(in super::super) fn overtake<H: KeyHolder>(
    holder: &H,
    record: &H::Record,
    stored: &Stored,
    stray: &Stored,
    trigger: Trigger,
) -> HaltOf<H> {
    if let Err(halt) = holder.require_settled(record) {
        return halt;
    }
    if !holder.is_live(stray.name()) {
        return Halt::Step(Box::new(H::read_internal(stray.name().to_owned())));
    }
    bump_generation(holder, record, stored, trigger)
}
