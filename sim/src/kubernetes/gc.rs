//! The garbage collector: one pass over all objects with owner references.
//!
//! A pass is a step that the simulation schedules. Rules as in `kube-controller-manager`: an owner
//! counts only if its UID is the one in the reference and it lives where the dependant can see it
//! (cluster-wide, or in the dependant's namespace).

use serde_json::{Value, json};

use super::delete::{self, Deletion, Propagation};
use super::kind::{Kind, SharedKind};
use super::managed;
use super::meta::{self, FOREGROUND, ORPHAN};
use super::store::{Place, Shared, State};
use super::write;

/// An object as the collector remembers it during a pass.
type Item = (SharedKind, Place, Shared);

/// What became of the owner that a reference names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Alive,
    /// It is being deleted in the foreground and waits for its dependants.
    Waiting,
    Gone,
    /// Its kind isn't served, so nothing can be known of it.
    Unknowable,
}

/// Runs one pass and returns how many objects it changed or removed.
pub(crate) fn collect(state: &mut State) -> usize {
    let items: Vec<Item> =
        state.everything().map(|(kind, place, object)| (kind.clone(), place.clone(), object.clone())).collect();
    let mut changes = 0;
    for (kind, place, _) in &items {
        // Earlier steps of the pass may have changed it.
        let Some(object) = state.get(kind, place).cloned() else { continue };
        if meta::is_deleting(&object) {
            changes += finish_deletion(state, &(kind.clone(), place.clone(), object));
        } else if !meta::owners(&object).is_empty() {
            changes += usize::from(attend(state, &(kind.clone(), place.clone(), object)));
        }
    }
    changes
}

fn look_up(state: &State, dependant: &Value, reference: &Value) -> Owner {
    let text = |name: &str| reference[name].as_str().unwrap_or_default();
    let Some(kind) = state.kind_named(text("apiVersion"), text("kind")) else { return Owner::Unknowable };
    let namespace = meta::namespace(dependant);
    if kind.is_namespaced() && namespace.is_empty() {
        // A cluster-wide object can't have an owner in a namespace; the collector leaves it alone.
        return Owner::Unknowable;
    }
    let place = Place::new(if kind.is_namespaced() { namespace } else { "" }, text("name"));
    match state.get(&kind, &place) {
        Some(owner) if meta::uid(owner) == text("uid") => {
            let foreground = meta::is_deleting(owner) && meta::finalizers(owner).contains(&FOREGROUND);
            if foreground { Owner::Waiting } else { Owner::Alive }
        }
        _ => Owner::Gone,
    }
}

/// Deletes an object whose owners are all gone, or drops the references to those that are.
fn attend(state: &mut State, (kind, place, object): &Item) -> bool {
    let references: Vec<(Owner, Value)> =
        meta::owners(object).iter().map(|reference| (look_up(state, object, reference), reference.clone())).collect();
    if references.iter().any(|(owner, _)| *owner == Owner::Unknowable) {
        return false;
    }
    let alive: Vec<Value> =
        references.iter().filter(|(owner, _)| *owner == Owner::Alive).map(|(_, reference)| reference.clone()).collect();
    if alive.len() == references.len() {
        return false;
    }
    if !alive.is_empty() {
        let mut kept = (**object).clone();
        meta::set(&mut kept, "ownerReferences", alive.into());
        disown(state, kind, object, &mut kept);
        state.put(kind, kept);
        return true;
    }
    let names = meta::finalizers(object);
    let waiting = references.iter().any(|(owner, _)| *owner == Owner::Waiting);
    let propagation = if names.contains(&ORPHAN) {
        Propagation::Orphan
    } else if names.contains(&FOREGROUND) || (waiting && !dependants(state, object).is_empty()) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    let uid = Some(meta::uid(object).to_owned());
    let deletion = Deletion { uid, propagation: Some(propagation), ..Deletion::default() };
    delete::delete(state, kind, place, &deletion).is_ok()
}

/// The objects that name this one as an owner.
fn dependants(state: &State, owner: &Value) -> Vec<Item> {
    let uid = meta::uid(owner);
    let names_it = |object: &Value| meta::owners(object).iter().any(|reference| reference["uid"] == uid);
    state
        .everything()
        .filter(|(_, _, object)| names_it(object))
        .map(|(kind, place, object)| (kind.clone(), place.clone(), object.clone()))
        .collect()
}

/// Does the collector's own part of a deletion: lets dependants go, or waits for them.
fn finish_deletion(state: &mut State, item: &Item) -> usize {
    let names = meta::finalizers(&item.2);
    if names.contains(&ORPHAN) {
        orphan_dependants(state, &item.2) + drop_finalizer(state, item, ORPHAN)
    } else if names.contains(&FOREGROUND) {
        // Dependants come first, as in the queue of a real one: they still find an owner that waits for them.
        let attended = attend_all(state, dependants(state, &item.2));
        let uid = meta::uid(&item.2);
        let blocking = dependants(state, &item.2).iter().any(|(_, _, object)| {
            meta::owners(object)
                .iter()
                .any(|reference| reference["uid"] == uid && reference["blockOwnerDeletion"] == Value::Bool(true))
        });
        attended + if blocking { 0 } else { drop_finalizer(state, item, FOREGROUND) }
    } else {
        0
    }
}

/// Attends to those that are not on their way out; returns how many it changed or removed.
fn attend_all(state: &mut State, items: Vec<Item>) -> usize {
    let living = items.into_iter().filter(|(_, _, object)| !meta::is_deleting(object));
    living.filter(|item| attend(state, item)).count()
}

fn orphan_dependants(state: &mut State, owner: &Value) -> usize {
    let found = dependants(state, owner);
    for (kind, _, object) in &found {
        let mut free = (**object).clone();
        let rest: Vec<Value> =
            meta::owners(object).iter().filter(|reference| reference["uid"] != meta::uid(owner)).cloned().collect();
        meta::set(&mut free, "ownerReferences", rest.into());
        meta::tidy(&mut free);
        disown(state, kind, object, &mut free);
        state.put(kind, free);
    }
    found.len()
}

/// Nobody owns what the collector takes away.
fn disown(state: &State, kind: &Kind, old: &Value, object: &mut Value) {
    managed::record_update(kind, old, object, "kube-controller-manager", "", &state.now());
}

fn drop_finalizer(state: &mut State, (kind, place, stored): &Item, name: &str) -> usize {
    let mut object = (**stored).clone();
    let rest: Vec<String> =
        meta::finalizers(&object).into_iter().filter(|other| *other != name).map(str::to_owned).collect();
    let last = rest.is_empty() && !write::holds_content(kind, &object);
    meta::set(&mut object, "finalizers", json!(rest));
    meta::tidy(&mut object);
    disown(state, kind, stored, &mut object);
    if last {
        state.remove(kind, place);
    } else {
        state.put(kind, object);
    }
    1
}
