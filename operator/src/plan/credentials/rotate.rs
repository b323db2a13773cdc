//! When a key is replaced, and how the next one is made (spec §3.3).
//!
//! One patch of the record bumps the generation. The pass whose own write did that makes the key.

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::api::Rotation;

use super::super::patch::{Change, Trigger};
use super::super::secret::Stored;
use super::super::walk::Halt;
use super::holder::{HaltOf, KeyHolder, KeyStop};
use super::record::rewrite;
use super::retire::{GRACE, plus};

/// The key that the record aims at, and its Secret. `mint` gives the step that makes it, or why
/// none is made: nothing else is aimed at then, either.
pub(in super::super) fn ensure_key<'a, H: KeyHolder>(
    holder: &'a H,
    record: &H::Record,
    stored: &Stored,
    mint: impl FnOnce() -> Result<H::Step, HaltOf<H>>,
) -> Result<(H::Key, &'a Stored), HaltOf<H>> {
    if let Some(secret) = holder.key(H::handled(record).generation) {
        return match H::read_key(record, secret) {
            Ok(key) => Ok((key, secret)),
            Err(_) if is_rotation_requested(holder, record) => {
                Err(bump_generation(holder, record, stored, Trigger::Request))
            }
            Err(damage) => Err(Halt::stop(KeyStop::Damaged(damage))),
        };
    }
    let is_lost = is_lost(holder, record)?;
    let mint = mint()?;
    // No id is ever given a second secret: above one that is lost the next is aimed at.
    let bump = || aim_higher(holder, record, stored, Trigger::Repair, H::LOST_KEY_HANDLES_REQUEST);
    Err(if is_lost { bump() } else { Halt::step(mint) })
}

/// Why there is no key of the record's generation. `false`: this pass's own write aimed at it, so
/// nobody has made it yet. `true`: it was made, and is lost.
fn is_lost<H: KeyHolder>(holder: &H, record: &H::Record) -> Result<bool, HaltOf<H>> {
    let generation = H::handled(record).generation;
    let name = holder.key_name(generation);
    holder.require_live()?;
    holder.require_not_taken(&name)?;
    if holder.aimed_by_this_pass() == Some(generation) {
        holder.require_settled_if_in_doubt(record)?;
        holder.require_revoked(record)?;
        return Ok(false);
    }
    holder.require_absent(&name)?;
    holder.require_settled(record)?;
    // The first read may have been of the server's past, and there would be two keys then.
    holder.require_absent_twice(&name)?;
    Ok(true)
}

/// Aims above a key whose generation is above the record's: a mint that landed late, after its
/// record was let go or aimed elsewhere. From then on the key is retired.
pub(in super::super) fn overtake<H: KeyHolder>(
    holder: &H,
    record: &H::Record,
    stored: &Stored,
) -> Result<(), HaltOf<H>> {
    let aimed = H::handled(record).generation;
    let is_above = |key: &&Stored| holder.generation(key).is_some_and(|generation| generation > aimed);
    let Some(stray) = holder.keys().into_iter().find(is_above) else { return Ok(()) };
    holder.require_settled(record)?;
    holder.read_unless(holder.is_live(stray.name()), stray.name())?;
    Err(bump_generation(holder, record, stored, Trigger::Repair))
}

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

/// True if the rotate annotation carries a value not yet handled.
pub(in super::super) fn is_rotation_requested<H: KeyHolder>(holder: &H, record: &H::Record) -> bool {
    let request = holder.rotate_request();
    request.is_some() && request != H::handled(record).rotate_request
}

/// The step that aims at the next generation and takes the request at hand as handled. `unasked`
/// says why it is aimed at if nobody asks.
pub(in super::super) fn bump_generation<H: KeyHolder>(
    holder: &H,
    record: &H::Record,
    stored: &Stored,
    unasked: Trigger,
) -> HaltOf<H> {
    let is_told = H::REQUEST_IS_TOLD && is_rotation_requested(holder, record);
    aim_higher(holder, record, stored, if is_told { Trigger::Request } else { unasked }, true)
}

/// The step that aims at the next generation. Planned on an object read live: an old list would ask
/// twice.
pub(super) fn aim_higher<H: KeyHolder>(
    holder: &H,
    record: &H::Record,
    stored: &Stored,
    trigger: Trigger,
    handles_request: bool,
) -> HaltOf<H> {
    if let Err(halt) = holder.require_live().and_then(|()| holder.require_highest(record)) {
        return halt;
    }
    let request = holder.rotate_request().filter(|_| handles_request);
    let handled = request.or(H::handled(record).rotate_request).cloned();
    let bumped = holder.bumped(record, holder.next_generation(), handled);
    rewrite(holder, &bumped, stored, Change::RaiseGeneration(trigger))
}
