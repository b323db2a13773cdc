//! The garbage collector: one pass over all objects with owner references.
//!
//! A pass is a step that the simulation schedules. The rules are those of
//! `kube-controller-manager`: an owner counts only if its UID is the one in the reference, and if
//! it is cluster-scoped or in the namespace of the dependant.

use serde_json::{Value, json};

use super::delete::{self, Deletion, Propagation};
use super::kind::{Kind, SharedKind};
use super::managed;
use super::meta::{self, FOREGROUND, ORPHAN};
use super::store::{Place, Shared, Store};
use super::write;

/// A snapshot of an object during a pass.
type Item = (SharedKind, Place, Shared);

/// State of the owner in a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Alive,
    /// Being deleted in the foreground, and waiting for its dependants.
    Waiting,
    Gone,
    /// Unknown, because its kind is not served.
    Unknowable,
}

/// Runs one pass and returns the number of objects changed or removed.
pub(crate) fn collect(state: &mut Store) -> usize {
    let items: Vec<Item> =
        state.everything().map(|(kind, place, object)| (kind.clone(), place.clone(), object.clone())).collect();
    // Owners that wait for their dependants are processed first, with all of these.
    let (leaving, staying): (Vec<Item>, Vec<Item>) = items.into_iter().partition(|(_, _, object)| object.is_deleting());
    let mut changes = 0;
    for (kind, place, _) in leaving.into_iter().chain(staying) {
        // Earlier steps of the pass may have changed the object.
        let Some(object) = state.get(&kind, &place).cloned() else { continue };
        if object.is_deleting() {
            changes += finish_deletion(state, &(kind, place, object));
        } else if !object.owners().is_empty() {
            changes += usize::from(attend(state, &(kind, place, object)));
        }
    }
    changes
}

/// Looks up the owner referenced by an object of this namespace.
fn look_up(state: &Store, namespace: &str, reference: &Value) -> Owner {
    let text = |name: &str| reference[name].as_str().unwrap_or_default();
    let Some(kind) = state.kind_named(text("apiVersion"), text("kind")) else { return Owner::Unknowable };
    if kind.is_namespaced() && namespace.is_empty() {
        // A cluster-scoped object cannot have a namespaced owner. The collector leaves it alone.
        return Owner::Unknowable;
    }
    let place = Place::new(if kind.is_namespaced() { namespace } else { "" }, text("name"));
    match state.get(&kind, &place) {
        Some(owner) if owner.uid() == text("uid") => {
            let foreground = owner.is_deleting() && meta::finalizers(owner).contains(&FOREGROUND);
            if foreground { Owner::Waiting } else { Owner::Alive }
        }
        _ => Owner::Gone,
    }
}

/// Decision about an object with owners.
enum Verdict {
    Rest,
    /// Keep only these owners, which exist.
    Keep(Vec<Value>),
    /// Stop the object's references from blocking its owners, because together with one of its
    /// dependants there might be a cycle.
    Unblock,
    Delete(Propagation),
}

/// Deletes an object whose owners are all gone, or removes its references to those that are gone.
fn attend(state: &mut Store, item: &Item) -> bool {
    let verdict = judge(state, item);
    carry_out(state, item, verdict)
}

fn judge(state: &Store, item: &Item) -> Verdict {
    let (_, place, object) = item;
    let references: Vec<(Owner, &Value)> =
        object.owners().iter().map(|reference| (look_up(state, &place.namespace, reference), reference)).collect();
    let all = |wanted: Owner| references.iter().filter(move |(owner, _)| *owner == wanted);
    if all(Owner::Unknowable).next().is_some() {
        return Verdict::Rest;
    }
    let alive: Vec<Value> = all(Owner::Alive).map(|(_, reference)| (*reference).clone()).collect();
    if !alive.is_empty() {
        return if alive.len() == references.len() { Verdict::Rest } else { Verdict::Keep(alive) };
    }
    if all(Owner::Waiting).next().is_some() {
        let own = dependants(state, object);
        if own.iter().any(|dependant| has_waited(state, dependant)) && object.owners().iter().any(blocks) {
            return Verdict::Unblock;
        }
        if !own.is_empty() {
            return Verdict::Delete(Propagation::Foreground);
        }
    }
    let names = meta::finalizers(object);
    Verdict::Delete(if names.contains(&ORPHAN) {
        Propagation::Orphan
    } else if names.contains(&FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    })
}

fn blocks(reference: &Value) -> bool {
    reference["blockOwnerDeletion"] == Value::Bool(true)
}

/// Executes a decision, unless the object has changed since.
fn carry_out(state: &mut Store, (kind, place, object): &Item, verdict: Verdict) -> bool {
    if state.get(kind, place).is_none_or(|stored| !stored.is(object)) {
        return false;
    }
    let references = match verdict {
        Verdict::Rest => return false,
        Verdict::Delete(propagation) => {
            let uid = Some(object.uid().to_owned());
            let deletion = Deletion { uid, propagation: Some(propagation), ..Deletion::default() };
            return delete::delete(state, kind, place, &deletion).is_ok();
        }
        Verdict::Keep(alive) => alive,
        Verdict::Unblock => {
            let mut references = meta::owners(object).to_vec();
            for reference in references.iter_mut().filter(|reference| blocks(reference)) {
                reference["blockOwnerDeletion"] = false.into();
            }
            references
        }
    };
    let mut kept = (**object).clone();
    meta::set(&mut kept, "ownerReferences", references.into());
    disown(state, kind, object, &mut kept);
    state.put(kind, kept);
    true
}

/// Returns true if an object is being deleted, and waits or has waited for its dependants. The
/// collector remembers that.
fn has_waited(state: &Store, (kind, _, object): &Item) -> bool {
    let waits = |object: &Shared| object.is_deleting() && meta::finalizers(object).contains(&FOREGROUND);
    let uid = object.uid();
    let mut past = state.past(&kind.plural);
    object.is_deleting() && (waits(object) || past.any(|before| before.uid() == uid && waits(before)))
}

/// Returns the objects that have this object as an owner.
fn dependants(state: &Store, owner: &Value) -> Vec<Item> {
    let uid = meta::uid(owner);
    let names_it = |object: &Shared| object.owners().iter().any(|reference| reference["uid"] == uid);
    state
        .everything()
        .filter(|(_, _, object)| names_it(object))
        .map(|(kind, place, object)| (kind.clone(), place.clone(), object.clone()))
        .collect()
}

/// Processes the garbage collector's finalizers of an object: orphans its dependants, or waits for
/// them.
fn finish_deletion(state: &mut Store, item: &Item) -> usize {
    let names = meta::finalizers(&item.2);
    if names.contains(&ORPHAN) {
        orphan_dependants(state, &item.2) + drop_finalizer(state, item, ORPHAN)
    } else if names.contains(&FOREGROUND) {
        // Dependants come first, as in the queue of the real controller, while their owner is still
        // waiting for them.
        let attended = attend_all(state, dependants(state, &item.2));
        let uid = meta::uid(&item.2);
        let blocking = dependants(state, &item.2)
            .iter()
            .any(|(_, _, object)| object.owners().iter().any(|reference| reference["uid"] == uid && blocks(reference)));
        attended + if blocking { 0 } else { drop_finalizer(state, item, FOREGROUND) }
    } else {
        0
    }
}

/// Processes those objects that are not being deleted, and returns the number changed or removed.
/// All decisions are made before the first is executed.
fn attend_all(state: &mut Store, items: Vec<Item>) -> usize {
    let living = items.into_iter().filter(|(_, _, object)| !object.is_deleting());
    let judged: Vec<(Item, Verdict)> = living.map(|item| (item.clone(), judge(state, &item))).collect();
    judged.into_iter().filter_map(|(item, verdict)| carry_out(state, &item, verdict).then_some(())).count()
}

fn orphan_dependants(state: &mut Store, owner: &Value) -> usize {
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

/// Records that the fields removed by the collector have no owner.
fn disown(state: &Store, kind: &Kind, old: &Value, object: &mut Value) {
    managed::record_update(kind, old, object, "kube-controller-manager", "", &state.now());
}

fn drop_finalizer(state: &mut Store, (kind, place, stored): &Item, name: &str) -> usize {
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
