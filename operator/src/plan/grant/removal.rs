//! From the deletion timestamp to the end of an access (spec §8): keys → consumer Secret → record →
//! finalizer. It depends on no claim, no backend and no store.

use crate::api::{AccessReason, AccessRecord};

use super::super::secret::Stored;
use super::consumer;
use super::keys::delete;
use super::step::{GrantAct, GrantLook};
use super::view::{Grant, Halt, Stop};

/// Walks through the steps. `Ok` = nothing is left to do.
pub(super) fn walk(grant: &Grant) -> Result<(), Halt> {
    if grant.is_finalizer_removed || !grant.access.has_finalizer() {
        return Ok(());
    }
    grant.require_live()?;
    grant.require_list()?;
    let name = AccessRecord::name(&grant.access.uid);
    let record = match grant.internal.present(&name) {
        Some(stored) if grant.internal.is_live(&name) => Some(stored),
        Some(_) => return Err(GrantLook::Internal(name).into()),
        None => {
            grant.require_absent(&name)?;
            None
        }
    };
    // One that a finalizer of others keeps is deleted already, and keeps no other from that.
    let keys = grant.keys();
    let is_kept = |(_, key): &&(u64, &Stored)| key.kept_by().is_some();
    if let Some((_, key)) = keys.iter().find(|key| !is_kept(key)).or_else(|| keys.first()) {
        return Err(delete(key));
    }
    // No list shows a key that lost its labels: the record, or the status, leads to it.
    let (lowest, highest) = match grant.record() {
        Some((record, _)) => (record.lowest, record.generation),
        None => (grant.highest().saturating_sub(1).max(1), grant.highest()),
    };
    for generation in lowest.max(highest.saturating_sub(MOST))..=highest {
        let name = grant.key_name(generation);
        match grant.internal.present(&name) {
            Some(key) => return Err(delete(key)),
            None => grant.require_absent(&name)?,
        }
    }
    if grant.access.paused {
        let why = "its keys are revoked; the rest waits for the pause to end".to_owned();
        return Err(Stop::new(AccessReason::Paused, why).into());
    }
    for name in [Some(&grant.access.consumer_secret), grant.before.bound_secret_name.as_ref()].into_iter().flatten() {
        consumer::remove(grant, name)?;
    }
    if let Some(stored) = record {
        return Err(delete(stored));
    }
    // A mint that was under way may have landed since.
    grant.require_current_list()?;
    Err(GrantAct::RemoveFinalizer(grant.access.id.clone()).into())
}

/// So many generations are looked for by name.
const MOST: u64 = 1000;
