//! Persistence of a cluster: a keeper is notified of every change, and can restore the cluster's
//! state.
//!
//! A cluster without a keeper has no cost.

use std::sync::Arc;

use serde_json::Value;

use super::Cluster;
use crate::builtin;
use crate::definition;
use crate::keeper::{Keeper, Kept};
use crate::kind::SharedKind;
use crate::meta;
use crate::namespace;
use crate::store::{Place, Shared, Store};

impl Cluster {
    /// Sends every change from now on to this keeper. If it `knows_nothing` yet, all current
    /// objects are sent first.
    pub fn keep_with(&self, keeper: Arc<dyn Keeper>, knows_nothing: bool) {
        // The lock prevents changes until the keeper is registered.
        let state = self.lock();
        if knows_nothing {
            all(&state).for_each(|kept| keeper.keep(kept));
        }
        self.store.observers().keep(keeper);
    }

    /// Returns the complete state of the cluster, for [`Cluster::restore`].
    pub fn kept(&self) -> Vec<Kept> {
        let state = self.lock();
        all(&state).collect()
    }

    /// Replaces the state of the cluster by the given one, including UIDs and versions.
    ///
    /// The next version is higher than all earlier ones and than `version`. Watches of older
    /// versions get 410. The kinds without controllers are served from now on
    /// ([`Cluster::serve_inert_kinds`]). Objects whose kind is not defined are left out and
    /// returned.
    ///
    /// # Errors
    /// An error message about an object that is invalid here. The cluster is unchanged then.
    pub fn restore(&self, kept: impl IntoIterator<Item = Kept>, version: u64) -> Result<Vec<Kept>, String> {
        let mut state = self.lock();
        let mut restored = state.emptied();
        let left_out = read_all(&mut restored, kept, version)?;
        state.become_another(restored);
        Ok(left_out)
    }

    /// Resets the cluster to the state of a new one, with new versions and UIDs.
    pub fn begin_anew(&self) {
        let mut state = self.lock();
        let mut new = state.emptied();
        builtin::kinds().iter().chain(builtin::inert_kinds()).for_each(|kind| new.serve(kind.clone()));
        namespace::create_initial(&mut new);
        let version = new.version();
        new.settle_at(version + 1);
        state.become_another(new);
    }
}

/// Loads everything into an empty state, and returns the objects whose kind is not defined.
fn read_all(state: &mut Store, kept: impl IntoIterator<Item = Kept>, version: u64) -> Result<Vec<Kept>, String> {
    builtin::kinds().iter().chain(builtin::inert_kinds()).for_each(|kind| state.serve(kind.clone()));
    let mut later = Vec::new();
    let mut version = state.version().max(version);
    for one in kept {
        version = version.max(one.version);
        if one.plural == "customresourcedefinitions" {
            let object = read(&one)?;
            let kind = definition::read_stored(&object)
                .map_err(|failure| format!("the definition {} is no good: {}", one.name, failure.message))?;
            state.serve(kind);
            insert(state, &one, object)?;
        } else if !insert(state, &one, read(&one)?)? {
            // Its definition may follow.
            later.push(one);
        }
    }
    let mut left_out = Vec::new();
    for one in later {
        if !insert(state, &one, read(&one)?)? {
            left_out.push(one);
        }
    }
    state.settle_at(version + 1);
    Ok(left_out)
}

fn all(state: &Store) -> impl Iterator<Item = Kept> + '_ {
    state.everything().map(|(kind, place, object)| Kept {
        group: kind.group.clone(),
        plural: kind.plural.clone(),
        namespace: place.namespace.clone(),
        name: place.name.clone(),
        version: state.version(),
        object: Some(object.json().clone()),
        completed_on_read: state.is_completed_on_read(kind, place),
    })
}

fn served(state: &Store, one: &Kept) -> Option<SharedKind> {
    state.kinds().find(|kind| kind.key() == (one.group.as_str(), one.plural.as_str()))
}

fn read(one: &Kept) -> Result<Value, String> {
    let text = one.object.as_deref().unwrap_or_default();
    serde_json::from_slice(text).map_err(|error| format!("{} {} isn't JSON: {error}", one.plural, one.name))
}

/// Inserts an object at its place. Returns `false` if its kind is not served.
fn insert(state: &mut Store, one: &Kept, object: Value) -> Result<bool, String> {
    let Some(kind) = served(state, one) else { return Ok(false) };
    let place = Place::new(&one.namespace, &one.name);
    if meta::name(&object) != one.name || meta::namespace(&object) != one.namespace {
        return Err(format!("{} {} has another name in it", one.plural, one.name));
    }
    state.restore(&kind, place, Shared::new(object), one.completed_on_read);
    Ok(true)
}
