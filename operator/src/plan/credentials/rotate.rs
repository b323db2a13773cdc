//! Rotation: when a key is replaced, and how the next key is created (spec §3.3).
//!
//! One patch of the record bumps the generation. Only the pass that wrote that patch creates the
//! key.

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::api::Rotation;

use super::super::patch::{Change, Trigger};
use super::super::secret::Stored;
use super::super::walk::Halt;
use super::holder::{HaltOf, KeyHolder, KeyStop};
use super::record::rewrite;
use super::retire::{GRACE, plus};

/// Returns the current key of the record and its Secret, or the step that creates it.
///
/// `mint` returns the step that creates the key, or the reason that none is created. Without a key
/// the generation is not bumped either.
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
    // An access key id never gets a second secret key. A lost key is replaced by the next
    // generation.
    let bump = || aim_higher(holder, record, stored, Trigger::Repair, H::LOST_KEY_HANDLES_REQUEST);
    Err(if is_lost { bump() } else { Halt::step(mint) })
}

/// Returns true if the key of the current generation was created and is lost, and false if this
/// pass wrote the generation, so that nobody has created the key yet.
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
    // A single read may be stale, and a bump would then lead to two current keys.
    holder.require_absent_twice(&name)?;
    Ok(true)
}

/// Bumps the generation above a key whose generation is above the record's, so that the key gets
/// retired. Such a key comes from a create request that took effect late, after its record was
/// released or changed.
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

/// Returns the creation time of the key of a generation.
pub(in super::super) fn made<H: KeyHolder>(holder: &H, generation: u64) -> Option<Timestamp> {
    holder.key(generation)?.0.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

/// Returns the time at which a key created at `made` is to be replaced. A request makes it due at
/// once, but at least a minute after the last rotation.
pub(in super::super) fn due(made: Timestamp, rotation: Rotation, is_requested: bool) -> Option<Timestamp> {
    let interval = rotation.interval_days.map(|days| SignedDuration::from_hours(24 * i64::from(days)));
    let earliest = plus(made, GRACE);
    let timed = interval.map(|interval| plus(made, interval).max(earliest));
    if is_requested { Some(earliest) } else { timed }
}

/// Decision about a rotation.
pub(in super::super) enum Due {
    /// No rotation now. Holds the time at which one becomes due without a request.
    Later(Option<Timestamp>),
    /// A rotation starts now. Holds the creation time of the current key.
    Now(Timestamp),
}

/// Decides whether a rotation starts. No rotation starts while a lower generation exists, or within
/// a minute of the last rotation.
///
/// `has_lower` is the result of this walk and may come from the cache. Each live read restarts the
/// walk, so the result of the read is taken into account.
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

/// Returns true if the rotate annotation has a value that is not handled yet.
pub(in super::super) fn is_rotation_requested<H: KeyHolder>(holder: &H, record: &H::Record) -> bool {
    let request = holder.rotate_request();
    request.is_some() && request != H::handled(record).rotate_request
}

/// Returns the step that bumps the generation and marks the pending rotate request as handled.
/// `unasked` is the reported trigger if no request is pending.
pub(in super::super) fn bump_generation<H: KeyHolder>(
    holder: &H,
    record: &H::Record,
    stored: &Stored,
    unasked: Trigger,
) -> HaltOf<H> {
    let is_told = H::REQUEST_IS_TOLD && is_rotation_requested(holder, record);
    aim_higher(holder, record, stored, if is_told { Trigger::Request } else { unasked }, true)
}

/// Returns the step that bumps the generation, once the object was read live. An outdated cache
/// would bump twice for one request.
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
