//! Deletion of an access, from the deletion timestamp on (spec §8): keys → consumer Secret → record
//! → finalizer. It depends on no claim, no backend and no store.

use crate::api::{AccessReason, AccessRecord};

use super::super::credentials::{KeyHolder, delete_secret, unpublish};
use super::super::secret::Stored;
use super::keys;
use super::step::{AccessAct, AccessLook};
use super::view::{AccessView, Halt, Stop};

/// Walks through the steps of a deletion. `Ok` means that nothing is left to do.
pub(super) fn walk(view: &AccessView) -> Result<(), Halt> {
    if view.is_finalizer_removed || !view.access.has_finalizer() {
        return Ok(());
    }
    let record = read_live(view)?;
    if record.is_none() {
        take_back(view)?;
    }
    end_keys(view)?;
    if view.access.paused {
        let why = "its keys are revoked; the rest waits for the pause to end".to_owned();
        return Err(Stop::new(AccessReason::Paused, why).into());
    }
    for name in [Some(&view.access.consumer_secret), view.before.bound_secret_name.as_ref()].into_iter().flatten() {
        unpublish(view, name)?;
    }
    if let Some(stored) = record {
        take_back(view)?;
        return Err(delete_secret(view, stored));
    }
    // A create request for a key may have taken effect since.
    view.require_current_list()?;
    Err(AccessAct::RemoveFinalizer(view.access.id.clone()).into())
}

/// Ends the keys of an access that another operator took over, and does nothing else.
pub(super) fn end_taken_over(view: &AccessView) -> Result<(), Halt> {
    read_live(view)?;
    end_keys(view)
}

/// Reads the access and its internal Secrets live. Returns its record, if it exists.
fn read_live(view: &AccessView) -> Result<Option<&Stored>, Halt> {
    view.require_live()?;
    view.require_list()?;
    let name = AccessRecord::name(&view.access.uid);
    match view.internal.present(&name) {
        Some(stored) if view.internal.is_live(&name) => Ok(Some(stored)),
        Some(_) => Err(AccessLook::Internal(name).into()),
        None => view.require_absent(&name).map(|()| None),
    }
}

/// Restores this operator's annotation before the Secrets that overrule another's annotation are
/// deleted. Otherwise no operator would remove the finalizer after a crash.
fn take_back(view: &AccessView) -> Result<(), Halt> {
    match view.served_by_another() {
        Some(_) => Err(AccessAct::AddFinalizer(view.access.id.clone()).into()),
        None => Ok(()),
    }
}

/// Deletes the keys of the access until none is left.
fn end_keys(view: &AccessView) -> Result<(), Halt> {
    keys::end_next(view)?;
    // A list does not show a key that lost its labels. The generations come from the record or the
    // status.
    let (lowest, highest) = match view.record() {
        Some((record, _)) => (record.lowest, record.generation),
        None => (view.highest_generation().saturating_sub(1).max(1), view.highest_generation()),
    };
    for generation in lowest.max(highest.saturating_sub(MOST))..=highest {
        match view.key(generation) {
            Some(key) => return Err(delete_secret(view, key)),
            None => view.require_absent(&view.key_name(generation))?,
        }
    }
    Ok(())
}

/// Maximum number of generations to look up by name.
const MOST: u64 = 1000;
