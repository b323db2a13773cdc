//! Definitions written through the API, and their effect on the served resources
//! (`k8s.io/apiextensions-apiserver/pkg/controller/{status,establish,finalizer}`).
//!
//! A definition is established immediately. A deleted definition keeps its finalizer until all of
//! its objects are gone. If a client removes the finalizer, the objects are removed too. A server
//! would keep them, and show them again once the definition is created again.

use serde_json::{Value, json};

use super::definition;
use super::delete::{self, Deleted, Deletion};
use super::kind::{Kind, SharedKind};
use super::meta;
use super::options::{WriteOptions, Written};
use super::status::Failure;
use super::store::{Place, Shared, Store};

/// Finalizer that keeps a definition until its objects are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Writes a definition if it is valid, and serves its resource.
///
/// # Errors
/// Returns the errors of the write, and 422 for an invalid definition.
pub(crate) fn write(
    state: &mut Store,
    definitions: &Kind,
    options: &WriteOptions,
    write: impl Fn(&mut Store, &WriteOptions) -> Result<Written, Failure>,
) -> Result<Written, Failure> {
    let proposed = write(state, &WriteOptions { dry_run: true, ..options.clone() })?;
    let kind = definition::read_stored(&proposed.object)?;
    if options.dry_run {
        return Ok(proposed);
    }
    let written = write(state, options)?;
    let place = Place::of(&written.object);
    // The write may have removed the last finalizer.
    match state.get(definitions, &place).cloned() {
        Some(stored) => {
            state.serve(kind.clone());
            state.restamp(&kind);
            let object = establish(state, definitions, &stored);
            Ok(Written { object: object.unwrap_or(written.object), ..written })
        }
        None => {
            state.withdraw(&kind);
            Ok(written)
        }
    }
}

/// Deletes a definition. It is marked, and removed once it has no objects, which may be
/// immediately.
///
/// # Errors
/// Like [`delete::delete`].
pub(crate) fn delete(
    state: &mut Store,
    definitions: &Kind,
    place: &Place,
    deletion: &Deletion,
) -> Result<Deleted, Failure> {
    if !deletion.dry_run
        && let Some(existing) = state.get(definitions, place).cloned()
        && !meta::finalizers(&existing).contains(&CLEANUP)
    {
        // Errors of the deletion must be found before anything changes.
        let dry_run = Deletion { dry_run: true, ..deletion.clone() };
        delete::delete(state, definitions, place, &dry_run)?;
        let mut object = Value::clone(&existing);
        let mut finalizers = meta::finalizers(&existing);
        finalizers.push(CLEANUP);
        meta::set(&mut object, "finalizers", json!(finalizers));
        // A precondition on the version that the client knows refers to the version before this
        // write.
        let version = object["metadata"]["resourceVersion"].clone();
        let put = state.put(definitions, object);
        let known = deletion.version.as_ref().filter(|known| version == known.as_str());
        let now = known.map(|_| meta::text(&put, "resourceVersion").to_owned()).or(deletion.version.clone());
        // Admission has reviewed it already.
        let deletion = Deletion { version: now, admission: None, ..deletion.clone() };
        let deleted = delete::delete(state, definitions, place, &deletion);
        settle(state);
        return deleted;
    }
    delete::delete(state, definitions, place, deletion)
}

/// Runs one step for every definition, and returns the number of objects changed or removed.
pub(crate) fn settle(state: &mut Store) -> usize {
    let Some(definitions) = state.kind("apiextensions.k8s.io", "v1", "customresourcedefinitions") else { return 0 };
    let all: Vec<Shared> = state.objects(&definitions).map(|(_, object)| object.clone()).collect();
    all.iter()
        .map(|object| {
            if meta::is_deleting(object) {
                empty(state, &definitions, object)
            } else {
                usize::from(establish(state, &definitions, object).is_some())
            }
        })
        .sum()
}

/// Deletes the objects of a definition, or removes its finalizer if there are none.
fn empty(state: &mut Store, definitions: &SharedKind, object: &Shared) -> usize {
    let Some(kind) = defined(state, object) else { return release(state, definitions, object) };
    let left: Vec<(Place, bool)> =
        state.objects(&kind).map(|(place, object)| (place.clone(), object.is_deleting())).collect();
    if left.is_empty() {
        state.withdraw(&kind);
        return release(state, definitions, object);
    }
    let doomed = left.iter().filter(|(_, leaving)| !leaving);
    let changed = doomed.filter(|(place, _)| delete::delete(state, &kind, place, &Deletion::default()).is_ok()).count();
    if changed > 0 && state.objects(&kind).next().is_none() {
        state.withdraw(&kind);
        return changed + release(state, definitions, object);
    }
    changed
}

/// Returns the kind that a definition defines, if it is served.
fn defined(state: &Store, definition: &Value) -> Option<SharedKind> {
    let spec = &definition["spec"];
    let (group, plural) = (spec["group"].as_str()?, spec["names"]["plural"].as_str()?);
    state.kinds().find(|kind| kind.is_custom() && kind.key() == (group, plural))
}

/// Removes the finalizer. If it was the last one, the definition is removed.
fn release(state: &mut Store, definitions: &Kind, object: &Shared) -> usize {
    let place = Place::of(object);
    let mut last = Value::clone(object);
    let rest: Vec<&str> = meta::finalizers(object).into_iter().filter(|name| *name != CLEANUP).collect();
    if rest.len() == meta::finalizers(object).len() && !rest.is_empty() {
        return 0;
    }
    if rest.is_empty() {
        return usize::from(state.remove(definitions, &place).is_some());
    }
    meta::set(&mut last, "finalizers", json!(rest));
    state.put(definitions, last);
    1
}

/// Writes the status of a served definition; `None` if it has that status already.
fn establish(state: &mut Store, definitions: &Kind, object: &Shared) -> Option<Shared> {
    let mut new = Value::clone(object);
    let now = state.now();
    let known = |name: &str| {
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().find(|condition| condition["type"] == name && condition["status"] == "True").cloned()
    };
    let condition = |name: &str, reason: &str, message: &str| {
        known(name).unwrap_or_else(|| {
            json!({
                "type": name, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message,
            })
        })
    };
    let versions = object["spec"]["versions"].as_array().into_iter().flatten();
    let storage = versions.into_iter().find(|version| version["storage"] == true).map(|version| &version["name"]);
    let mut stored: Vec<Value> = object["status"]["storedVersions"].as_array().cloned().unwrap_or_default();
    if let Some(name) = storage.filter(|name| !stored.contains(name)) {
        stored.push(name.clone());
    }
    new["status"] = json!({
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "acceptedNames": object["spec"]["names"],
        "storedVersions": stored,
    });
    (new != **object).then(|| state.put(definitions, new))
}
