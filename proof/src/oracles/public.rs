//! Public access: it is as the spec requests it (I16), to a bucket that its claim holds (I15), is
//! withdrawn first when the claim is deleted (I12), and is not created after it (I7).
//!
//! Bindings that nothing requests any more are judged with all other leftovers (I14).

use super::Promise;
use super::findings::Findings;
use super::state::{HistoryStep, Life, Seen, State};
use super::views::{Access, Binding, End, Key, Record, Secret};

/// Judges a step.
pub(super) fn see(state: &State<'_>, step: &HistoryStep<'_>, found: &mut Findings) {
    let Seen::Secret(place, new) = &step.seen else { return };
    if !step.by_operator() || !state.alone {
        // A binding that one of two operators creates late is deleted again.
        return;
    }
    match (state.secrets.get(place).map(|held| &held.secret), new) {
        (old, Some(Secret::Binding(new))) => {
            if old.is_none() {
                comes_after_claim(state, step, place.1, new, found);
            }
            goes_where_it_may(state, step, new, found);
        }
        (Some(Secret::Key(key)), None) => goes_before_keys(state, step, key, found),
        (Some(Secret::Record(record)), None) => goes_before_record(state, step, record, found),
        _ => {}
    }
}

fn comes_after_claim(state: &State<'_>, step: &HistoryStep<'_>, name: &str, new: &Binding, found: &mut Findings) {
    if let Some(life) = state.lives.get(new.uid.as_str()).filter(|life| life.was_let_go()) {
        let claim = life.claim.full_name();
        found.broken(Promise::I7, step, format!("binding {name} is made for claim {claim}, which is gone"));
    }
}

/// Judges that a binding opens only a bucket that its claim holds.
fn goes_where_it_may(state: &State<'_>, step: &HistoryStep<'_>, new: &Binding, found: &mut Findings) {
    let Some(life) = state.lives.get(new.uid.as_str()).filter(|life| life.gone.is_none()) else { return };
    let Some(access) = &new.access else { return };
    let holds = |secret: &Secret<'_>| matches!(secret, Secret::Record(record) if opens(access, record));
    // A record may have been deleted by hand since the pass read it.
    if !life.meddling.record && !state.of(&new.uid).any(|(_, held)| holds(&held.secret)) {
        let claim = life.claim.full_name();
        found.broken(Promise::I15, step, format!("claim {claim} opens {access}, which it does not hold"));
    }
}

/// Judges that a claim's deletion withdraws public access before its keys (spec §3.4), as far as
/// the operator does it.
///
/// A key without an expiry is only deleted for that reason. Keys that are deleted by hand don't
/// count.
fn goes_before_keys(state: &State<'_>, step: &HistoryStep<'_>, key: &Key<'_>, found: &mut Findings) {
    let going = state.lives.get(key.uid.as_str()).filter(|life| life.claim.is_deleting());
    let Some(life) = going.filter(|_| key.counts && key.end == End::Open) else { return };
    if bindings(state, life).any(|(_, binding)| !binding.kept) {
        let message = format!("key {} is revoked before public access of claim {}", key.id, life.claim.full_name());
        found.broken(Promise::I12, step, message);
    }
}

/// Judges that a record is deleted after its public access: the next holder of the bucket must not
/// find it public.
fn goes_before_record(state: &State<'_>, step: &HistoryStep<'_>, record: &Record, found: &mut Findings) {
    let Some(life) = state.lives.get(record.uid.as_str()) else { return };
    let is_another =
        |held: &Record| held.host != record.host && held.bucket == record.bucket && held.backend == record.backend;
    let follows = |secret: &Secret<'_>| matches!(secret, Secret::Record(held) if is_another(held));
    // A backend that points elsewhere keeps its name, and with it the binding.
    if state.of(&record.uid).any(|(_, held)| follows(&held.secret)) {
        return;
    }
    let open = bindings(state, life).find_map(|(_, binding)| binding.access.as_ref().filter(|it| opens(it, record)));
    if let Some(access) = open {
        let message =
            format!("claim {} lets go of {access}, which is still open to the public", life.claim.full_name());
        found.broken(Promise::I15, step, message);
    }
}

/// Judges the end of a run that came to rest: a claim that is Ready has the public access that it
/// requests.
pub(super) fn judge(state: &State<'_>, found: &mut Findings) {
    for life in state.lives.values().filter(|life| life.gone.is_none() && life.claim.is_ready()) {
        let Some(wanted) = life.claim.public_access() else { continue };
        let mut given = bindings(state, life).peekable();
        let claim = life.claim.full_name();
        let mut broken =
            |why| found.broken_in_the_end(Promise::I16, format!("claim {claim} says that it is Ready, but {why}"));
        if given.peek().is_none() {
            broken(format!("nothing opens {wanted}"));
        }
        for (name, binding) in given.filter(|(_, binding)| binding.access.as_ref() != Some(&wanted)) {
            let opened = binding.access.as_ref().map_or("nothing".to_owned(), Access::to_string);
            broken(format!("binding {name} opens {opened}, and not {wanted}"));
        }
    }
}

/// Returns true if the access is to the bucket of this record.
pub(super) fn opens(access: &Access, record: &Record) -> bool {
    let is_there = access.host.as_ref().is_none_or(|host| *host == record.host);
    is_there && access.bucket == record.bucket && access.backend == record.backend
}

/// Returns the bindings of a claim that the gateway finds, by name. A binding whose labels were
/// removed opens nothing.
fn bindings<'s>(state: &'s State<'_>, life: &Life<'_>) -> impl Iterator<Item = (&'s str, &'s Binding)> {
    state.of(life.claim.uid).filter_map(|((_, name), held)| match &held.secret {
        Secret::Binding(binding) if binding.counts => Some((*name, binding)),
        _ => None,
    })
}
