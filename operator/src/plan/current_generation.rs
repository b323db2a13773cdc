//! The credential generation that a record aims at, and when it may aim at another (spec §3.3).

use k8s_openapi::jiff::Timestamp;

use crate::api::{AnonymousBinding, BucketRecord, Desired};

use super::credentials::{Due, bump_generation, is_rotation_requested, rewrite, rotation_due};
use super::halt::Halt;
use super::patch::{Change, Trigger};
use super::secret::Stored;
use super::step::Look;
use super::view::View;

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

/// The step that aims at the next generation. `unasked` says why it is aimed at if nobody asks. A
/// request that stands there is told as the reason, whatever else led here; of an access it is not.
pub(super) fn bump(view: &View, record: &BucketRecord, stored: &Stored, unasked: Trigger) -> Halt {
    let trigger = if is_rotation_requested(view, record) { Trigger::Request } else { unasked };
    bump_generation(view, record, stored, trigger)
}

/// Aims above a key that is lost, so that no id is ever given a second secret. It takes no request
/// as handled: one that stands there makes a rotation of its own. An access handles it with this.
pub(super) fn bump_lost(view: &View, record: &BucketRecord, stored: &Stored) -> Halt {
    if let Err(halt) = view.require_wanted_record(&record.name()) {
        return halt;
    }
    let bumped = BucketRecord { generation: view.next_generation(), ..view.keep_bound(record) };
    rewrite(view, &bumped, stored, Change::RaiseGeneration(Trigger::Repair))
}

/// Starts a rotation that is due. `Ok` = when one will be due.
pub(super) fn bump_when_due(
    view: &View,
    desired: &Desired,
    record: &BucketRecord,
    stored: &Stored,
    now: Timestamp,
    has_lower: bool,
) -> Result<Option<Timestamp>, Halt> {
    let is_requested = is_rotation_requested(view, record);
    if let Due::Later(due) = rotation_due(view, record, desired.rotation, is_requested, has_lower, now)? {
        return Ok(due);
    }
    // Two keys at most: what the cache does not show may live all the same.
    let told = without_lower(view, record, stored)?;
    Err(bump(view, &told, stored, Trigger::Interval))
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
