//! From the deletion timestamp to the end of an access (spec §8): keys → consumer Secret → record →
//! finalizer. It depends on no claim, no backend and no store.

use crate::api::{AccessReason, AccessRecord};

use super::super::credentials::delete_secret;
use super::super::secret::Stored;
use super::consumer;
use super::step::{GrantAct, GrantLook};
use super::view::{Grant, Halt, Stop};

/// Walks through the steps. `Ok` = nothing is left to do.
pub(super) fn walk(grant: &Grant) -> Result<(), Halt> {
    if grant.is_finalizer_removed || !grant.access.has_finalizer() {
        return Ok(());
    }
    let record = read_live(grant)?;
    if record.is_none() {
        take_back(grant)?;
    }
    end_keys(grant)?;
    if grant.access.paused {
        let why = "its keys are revoked; the rest waits for the pause to end".to_owned();
        return Err(Stop::new(AccessReason::Paused, why).into());
    }
    for name in [Some(&grant.access.consumer_secret), grant.before.bound_secret_name.as_ref()].into_iter().flatten() {
        consumer::remove(grant, name)?;
    }
    if let Some(stored) = record {
        take_back(grant)?;
        return Err(delete_secret(grant, stored));
    }
    // A mint that was under way may have landed since.
    grant.require_current_list()?;
    Err(GrantAct::RemoveFinalizer(grant.access.id.clone()).into())
}

/// Ends the keys of an access that another operator took over, and does nothing else.
pub(super) fn end_taken_over(grant: &Grant) -> Result<(), Halt> {
    read_live(grant)?;
    end_keys(grant)
}

/// The access and what there is of it, read live; its record, if it is there.
fn read_live(grant: &Grant) -> Result<Option<&Stored>, Halt> {
    grant.require_live()?;
    grant.require_list()?;
    let name = AccessRecord::name(&grant.access.uid);
    match grant.internal.present(&name) {
        Some(stored) if grant.internal.is_live(&name) => Ok(Some(stored)),
        Some(_) => Err(GrantLook::Internal(name).into()),
        None => grant.require_absent(&name).map(|()| None),
    }
}

/// Makes sure that this operator is noted before the Secrets go by which another's note is
/// overruled: else nobody would take the finalizer off after a crash.
fn take_back(grant: &Grant) -> Result<(), Halt> {
    match grant.served_by_another() {
        Some(_) => Err(GrantAct::AddFinalizer(grant.access.id.clone()).into()),
        None => Ok(()),
    }
}

/// Deletes its keys until none is left.
fn end_keys(grant: &Grant) -> Result<(), Halt> {
    // One that a finalizer of others keeps is deleted already, and keeps no other from that.
    let keys = grant.keys();
    let is_kept = |(_, key): &&(u64, &Stored)| key.kept_by().is_some();
    if let Some((_, key)) = keys.iter().find(|key| !is_kept(key)).or_else(|| keys.first()) {
        return Err(delete_secret(grant, key));
    }
    // No list shows a key that lost its labels: the record, or the status, leads to it.
    let (lowest, highest) = match grant.record() {
        Some((record, _)) => (record.lowest, record.generation),
        None => (grant.highest().saturating_sub(1).max(1), grant.highest()),
    };
    for generation in lowest.max(highest.saturating_sub(MOST))..=highest {
        let name = grant.key_name(generation);
        match grant.internal.present(&name) {
            Some(key) => return Err(delete_secret(grant, key)),
            None => grant.require_absent(&name)?,
        }
    }
    Ok(())
}

/// So many generations are looked for by name.
const MOST: u64 = 1000;
