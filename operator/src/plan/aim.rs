//! The credential generation that a record aims at, and when it may aim at another (spec §3.3).

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::api::{AnonymousBinding, BucketRecord, Desired, Rotation};

use super::halt::Halt;
use super::patch::{Change, Trigger};
use super::secret::Stored;
use super::step::Look;
use super::view::View;
use super::write::rewrite;

/// After a key has expired, its Secret stays this long: so that a clock stepping forward doesn't
/// cut a key short. And no rotation starts sooner than this after the last.
pub(super) const GRACE: SignedDuration = SignedDuration::from_secs(60);

/// A record that an older version made, completed by what a live list shows: from then on it tells
/// what there may be.
fn complete(view: &View, record: &BucketRecord) -> BucketRecord {
    if record.lowest.is_some() {
        return record.clone();
    }
    let public = record.public || view.binding().is_some();
    BucketRecord { public, another: record.another || view.records().count() > 1, ..record.clone() }
}

/// Of a record that does not tell how many of its credentials are gone, so many names are looked at
/// before it is noted that they are free.
const STRETCH: u64 = 1000;

/// Whether the rotate annotation carries a value not yet handled.
pub(super) fn is_requested(view: &View, record: &BucketRecord) -> bool {
    let request = view.claim().rotate_request.clone();
    request.is_some() && request != record.handled_rotate_request
}

/// The step that aims at the next generation and takes the request at hand as handled. Planned on a
/// claim read live: an old list would ask twice. `unasked` says why it is aimed at if nobody asks.
pub(super) fn raise(view: &View, record: &BucketRecord, stored: &Stored, unasked: Trigger) -> Halt {
    if let Err(halt) = view.require_live_claim().and_then(|()| view.require_wanted_record(&record.name())) {
        return halt;
    }
    let trigger = if is_requested(view, record) { Trigger::Request } else { unasked };
    let request = view.claim().rotate_request.clone();
    let raised = BucketRecord {
        generation: view.next_generation(),
        handled_rotate_request: request.or_else(|| record.handled_rotate_request.clone()),
        ..view.keep_bound(record)
    };
    rewrite(view, &raised, stored, Change::RaiseGeneration(trigger))
}

/// A target that is gone raises the target, so that no id is ever given a second secret. It takes
/// no request as handled.
pub(super) fn raise_lost(view: &View, record: &BucketRecord, stored: &Stored) -> Halt {
    if let Err(halt) = view.require_wanted_record(&record.name()) {
        return halt;
    }
    let raised = BucketRecord { generation: view.next_generation(), ..view.keep_bound(record) };
    rewrite(view, &raised, stored, Change::RaiseGeneration(Trigger::Repair))
}

/// When the credential that is aimed at was made.
pub(super) fn made(view: &View, record: &BucketRecord) -> Option<Timestamp> {
    view.credential(record.generation)?.0.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

/// `at` and `time` after it; the end of time where that is beyond it: stamps are read from outside,
/// and may be any.
pub(super) fn plus(at: Timestamp, time: SignedDuration) -> Timestamp {
    at.checked_add(time).unwrap_or(Timestamp::MAX)
}

/// When a key that was made then is to be replaced, whoever's it is: at once where somebody asks,
/// but not within a minute of the last.
pub(super) fn due(made: Timestamp, rotation: Rotation, is_requested: bool) -> Option<Timestamp> {
    let interval = rotation.interval_days.map(|days| SignedDuration::from_hours(24 * i64::from(days)));
    let earliest = plus(made, GRACE);
    let timed = interval.map(|interval| plus(made, interval).max(earliest));
    if is_requested { Some(earliest) } else { timed }
}

/// Starts a rotation that is due: none while there is a lower generation, none within a minute of
/// the last. `has_lower` is what this walk just saw, be it from the cache; after each live read
/// everything is walked anew, and sees what that shows. `Ok` = when one will be due.
pub(super) fn raise_when_due(
    view: &View,
    desired: &Desired,
    record: &BucketRecord,
    stored: &Stored,
    now: Timestamp,
    has_lower: bool,
) -> Result<Option<Timestamp>, Halt> {
    let Some(made) = made(view, record) else { return Ok(None) };
    let Some(due) = due(made, desired.rotation, is_requested(view, record)) else { return Ok(None) };
    if has_lower || due > now {
        return Ok((!has_lower).then_some(due));
    }
    view.require_live_claim()?;
    // Two keys at most: what the cache does not show may live all the same.
    let told = without_lower(view, record, stored)?;
    Err(raise(view, &told, stored, Trigger::Interval))
}

/// The record as it is once it notes that every credential below its own is gone, each of which was
/// looked for by its name: from where the last note ends, so that there are few. Of a record that
/// an older version made there may be very many; how far it came is noted.
///
/// A mint of a lower generation that got no answer has landed long since, if it does: the
/// credential aimed at was made after it, a minute ago at the least.
fn without_lower(view: &View, record: &BucketRecord, stored: &Stored) -> Result<BucketRecord, Halt> {
    if !record.tells_all() {
        view.require_list()?;
    }
    if record.lowest.is_none() && view.binding().is_none() {
        view.require_absent(&AnonymousBinding::name(&record.uid))?;
    }
    let noted = |lowest| BucketRecord { lowest: Some(lowest), ..complete(view, record) };
    match view.unread_below(record.generation) {
        Some((first, _)) if first >= record.lowest_generation().saturating_add(STRETCH) => {
            Err(rewrite(view, &noted(first), stored, Change::NoteLowest))
        }
        Some((_, name)) => Err(Look::Internal(name).into()),
        None => Ok(noted(record.generation)),
    }
}

/// Before a key is minted: each that is revoked was looked for by its name, and is gone, or known
/// to be kept. Those that the view knows were deleted when the walk began.
pub(super) fn require_revoked(view: &View, record: &BucketRecord) -> Result<(), Halt> {
    if record.revoked_through < record.lowest_generation() {
        return Ok(());
    }
    if !record.tells_all() {
        view.require_list()?;
    }
    match view.unread_below(record.revoked_through.saturating_add(1)) {
        Some((_, name)) => Err(Look::Internal(name).into()),
        None => Ok(()),
    }
}
