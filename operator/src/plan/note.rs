//! The note of another operator on a claim or an access, and when it counts (spec §1).
//!
//! Whoever may write an object may write the note on it. So it keeps no key alive: where this
//! operator has Secrets of the object the note is overruled, unless the administrator of the
//! S3Backends has noted another operator on these as well.

use std::collections::BTreeSet;

use crate::api::ServedBy;

use super::answer::BackendSeen;
use super::halt::Halt;
use super::step::Act;
use super::view::View;

/// Verdict about the note on an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// It names no other operator.
    Ours,
    /// It names this other operator, and is overruled: the object is served, and tells of it.
    Overruled(ServedBy),
    /// Another operator took over object and S3Backends. Keys of this one still end as asked; all
    /// else, the status included, is the other's to write.
    HandedOver,
    /// It names this other operator, and this one has no Secret of the object.
    Anothers(ServedBy),
}

impl Note {
    /// Judges the note of another operator. `owns`: this one has Secrets of the object;
    /// `handed_over`: another operator is noted on every S3Backend that these name.
    pub(super) fn anothers(operator: &ServedBy, owns: bool, handed_over: bool) -> Self {
        match (owns, handed_over) {
            (false, _) => Self::Anothers(operator.clone()),
            (true, true) => Self::HandedOver,
            (true, false) => Self::Overruled(operator.clone()),
        }
    }

    /// Judges the note on a claim.
    pub(super) fn of_claim(view: &View) -> Result<Self, Halt> {
        let Some(operator) = view.served_by_another() else { return Ok(Self::Ours) };
        let own = view.all_own().map(|secret| secret.text("backend"));
        // The record goes before the finalizer does.
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

/// Makes sure that this operator is noted on a claim that is deleted, before the Secrets go by
/// which another's note is overruled: else nobody would take the finalizer off after a crash.
pub(super) fn take_back(view: &View) -> Result<(), Halt> {
    if view.served_by_another().is_some() {
        return Err(Act::AddFinalizer(view.claim().id.clone()).into());
    }
    Ok(())
}
