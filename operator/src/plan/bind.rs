//! Binding a claim, and keeping it bound (spec §3.1).
//!
//! finalizer → backend → name → record → bucket → access. Each step either finds its part as it
//! should be, or halts the walk with what must be done first.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;

use crate::api::{Backend, BucketRecord, Desired};

use super::answer::BackendSeen;
use super::cause::ClaimCause;
use super::credentials::{KeyHolder, record_patch, repair};
use super::halt::{Halt, Outcome};
use super::hold::recall;
use super::patch::Change;
use super::secret::Stored;
use super::step::Act;
use super::stop::{Stop, together};
use super::view::View;
use super::walk::tolerate;
use super::{bucket, consent, keys, moves, place, public, revocation};

/// Walks through the steps of a claim that is not being deleted.
///
/// Revocation comes before everything that may stop the walk. Record fields that an older version
/// did not write are completed even if the walk stops. While the claim is over its write limit,
/// everything but revocation and the withdrawal of consent waits.
pub(super) fn walk(view: &View, now: Timestamp) -> Result<Outcome, Halt> {
    let revoked = revocation::walk(view, now)?;
    consent::narrow(view)?;
    if view.held_off().is_some() {
        return Ok(revoked);
    }
    let served = match serve(view, now) {
        Ok(served) => served,
        Err(Halt::Stop(stop)) => Outcome { impaired: Some(*stop), wake: None },
        Err(halt) => return Err(halt),
    };
    consent::settle(view)?;
    let turn = place::complete(view, now)?;
    Ok(Outcome {
        impaired: together([served.impaired, revoked.impaired]),
        wake: served.wake.into_iter().chain(revoked.wake).chain(turn).min(),
    })
}

/// Ends revoked keys and withdrawn consent, and does nothing else.
pub(super) fn end_keys(view: &View, now: Timestamp) -> Result<Outcome, Halt> {
    let revoked = revocation::walk(view, now)?;
    consent::narrow(view)?;
    Ok(revoked)
}

/// Serves the claim. `Ok` means that everything is as it should be, except for an impairment that
/// takes no access away: a bound claim whose backend is no longer Ready keeps its keys (spec §1).
fn serve(view: &View, now: Timestamp) -> Result<Outcome, Halt> {
    let claim = view.claim();
    refuse_own_namespaces(view)?;
    if claim.paused {
        return Err(Stop::new(ClaimCause::Paused).into());
    }
    let desired = view.desired()?;
    take_charge(view, desired)?;
    let open = tolerate(public::withdraw(view, desired))?;
    let Some((record, stored)) = view.record() else {
        let latest = view.credentials().max_by_key(|secret| view.labelled_generation(secret));
        return Err(recall(view, desired, latest)?.into());
    };
    for (record, stored) in view.records() {
        // Repairs labels too: deletion finds the record by its labels.
        repair(view, record_patch(view, record, stored, Change::Repair))?;
    }
    let outcome = if view.is_bound_by(record) {
        keep(view, desired, record, stored, now)?
    } else {
        moves::choose(view, desired, record, stored)?;
        bucket::obtain(view, desired, record, stored)?;
        keys::walk(view, desired, record, stored, now)?
    };
    Ok(Outcome { impaired: together([open, outcome.impaired]), ..outcome })
}

/// Adds the finalizer. From then on the operator serves the claim, so the finalizer is not added
/// for a backend that another operator serves.
fn take_charge(view: &View, desired: &Desired) -> Result<(), Halt> {
    if view.claim().has_finalizer() {
        return Ok(());
    }
    match view.backend(&desired.backend)? {
        BackendSeen::Present { backend, .. } if view.is_served_by_another(backend) => Err(Halt::LeaveAlone),
        BackendSeen::Present { .. } | BackendSeen::Missing | BackendSeen::Invalid(_) => {
            Err(Act::AddFinalizer(view.claim().id.clone()).into())
        }
    }
}

/// Keeps a claim bound. Problems with the bucket, the backend, an edit or the deletion of an old
/// key take no access away: key management and rotation continue.
fn keep(
    view: &View,
    desired: &Desired,
    record: &BucketRecord,
    stored: &Stored,
    now: Timestamp,
) -> Result<Outcome, Halt> {
    moves::mark_left(view, record)?;
    let impaired = tolerate(check(view, record, stored))?;
    let keys = keys::walk(view, desired, record, stored, now)?;
    let edited = if desired.backend != record.backend {
        tolerate(moves::walk(view, desired, record, stored))?
    } else if impaired.is_none() {
        tolerate(bucket::keep_versioning(view, desired, record))?
    } else {
        None
    };
    let left = moves::leave(view, desired, record, now)?;
    Ok(Outcome {
        impaired: together([keys.impaired, edited, impaired, left.impaired]),
        wake: keys.wake.into_iter().chain(left.wake).min(),
    })
}

/// Checks backend and bucket of a bound claim.
fn check(view: &View, record: &BucketRecord, stored: &Stored) -> Result<(), Halt> {
    let backend = still_usable(view, record)?;
    if backend.endpoint == record.endpoint {
        bucket::drift(view, record, stored)
    } else {
        moves::follow(view, record, stored, &backend)
    }
}

/// Refuses a claim in the operator namespace or in a trusted Secret namespace, because labels and
/// names there are proof for gateway and operator (spec §2).
fn refuse_own_namespaces(view: &View) -> Result<(), Halt> {
    let namespace = &view.claim().at.namespace;
    if view.setting().trusts(namespace) {
        return Err(Stop::new(ClaimCause::OperatorNamespace { namespace: namespace.clone() }).into());
    }
    Ok(())
}

/// Returns the backend of a bound claim.
///
/// After an edit, the backend counts as Ready until the next probe has judged the edit, unless the
/// edit changed the endpoint: no problem has been observed yet.
fn still_usable(view: &View, record: &BucketRecord) -> Result<Arc<Backend>, Halt> {
    match view.backend(&record.backend)? {
        BackendSeen::Present { backend, allowed: true, .. }
            if backend.was_ready && backend.endpoint == record.endpoint && !view.is_served_by_another(backend) =>
        {
            Ok(backend.clone())
        }
        BackendSeen::Present { .. } | BackendSeen::Missing | BackendSeen::Invalid(_) => {
            view.usable_backend(&record.backend)
        }
    }
}
