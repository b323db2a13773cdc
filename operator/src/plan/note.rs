//! The annotation of another operator on a claim or an access, and its effect (spec §1).
//!
//! Every user with write access to an object can set the annotation, so it must not keep a key
//! alive. If this operator has Secrets of the object, the annotation is overruled, unless the
//! administrator of the S3Backends has annotated these with another operator as well.

use std::collections::BTreeSet;

use crate::api::ServedBy;

use super::answer::BackendSeen;
use super::halt::Halt;
use super::step::Act;
use super::view::View;

/// Verdict about the annotation of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// The annotation names no other operator.
    Ours,
    /// The annotation names this other operator and is overruled. The object is served, and its
    /// status says so.
    Overruled(ServedBy),
    /// Another operator took over the object and its S3Backends. This operator still revokes its
    /// keys on request; the other operator writes everything else, including the status.
    HandedOver,
    /// The annotation names this other operator, and this operator has no Secret of the object.
    Anothers(ServedBy),
}

impl Note {
    /// Judges the annotation of another operator. `owns` is true if this operator has Secrets of
    /// the object, `handed_over` if another operator is annotated on every S3Backend that these
    /// name.
    pub(super) fn anothers(operator: &ServedBy, owns: bool, handed_over: bool) -> Self {
        match (owns, handed_over) {
            (false, _) => Self::Anothers(operator.clone()),
            (true, true) => Self::HandedOver,
            (true, false) => Self::Overruled(operator.clone()),
        }
    }

    /// Judges the annotation of a claim.
    pub(super) fn of_claim(view: &View) -> Result<Self, Halt> {
        let Some(operator) = view.served_by_another() else { return Ok(Self::Ours) };
        let own = view.all_own().map(|secret| secret.text("backend"));
        // The record is deleted before the finalizer is removed.
        let let_go = view.let_go().iter().map(|let_go| Some(let_go.record.backend.as_str()));
        let backends: BTreeSet<Option<&str>> = own.chain(let_go).collect();
        let mut handed_over = true;
        for backend in &backends {
            handed_over &= match backend {
                Some(name) => is_anothers(view, view.backend(name)?),
                None => false,
            };
        }
        Ok(Self::anothers(operator, !backends.is_empty(), handed_over))
    }
}

fn is_anothers(view: &View, seen: &BackendSeen) -> bool {
    match seen {
        BackendSeen::Present { backend, .. } => view.is_served_by_another(backend),
        BackendSeen::Missing | BackendSeen::Invalid(_) => false,
    }
}

/// Restores this operator's annotation on a claim that is being deleted, before the Secrets that
/// overrule another's annotation are deleted. Otherwise no operator would remove the finalizer
/// after a crash.
pub(super) fn take_back(view: &View) -> Result<(), Halt> {
    if view.served_by_another().is_some() {
        return Err(Act::AddFinalizer(view.claim().id.clone()).into());
    }
    Ok(())
}
