//! Keeping a cluster beyond the process: whoever keeps it is told of every change, and can put the
//! cluster back where it stood.
//!
//! A cluster without a keeper pays nothing for this.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::Cluster;
use super::builtin;
use super::definition;
use super::meta;
use super::store::{Place, Shared, State};

/// A stored object, or that there is none any more.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// API group, empty for the core group.
    pub group: String,
    /// Resource name, such as `secrets`.
    pub plural: String,
    /// Empty for cluster-scoped kinds.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// The cluster's version after the change.
    pub version: u64,
    /// The object as JSON; `None` for one that is gone.
    pub object: Option<Bytes>,
    /// Whether reads of the object show defaults that aren't stored.
    pub completed_on_read: bool,
}

/// Told of each change of what a cluster holds, in order and while it happens: has to be quick and
/// must not call the cluster. What is told twice is as it was told last.
pub trait Keeper: Send + Sync {
    /// An object is so from now on.
    fn keep(&self, kept: Kept);

    /// There is no object any more.
    fn cleared(&self);
}

impl Cluster {
    /// Tells this keeper of everything from now on, and before that of all that is there if it
    /// `knows_nothing` yet.
    pub fn keep_with(&self, keeper: Arc<dyn Keeper>, knows_nothing: bool) {
        let mut state = self.lock();
        if knows_nothing {
            all(&state).for_each(|kept| keeper.keep(kept));
        }
        state.keeper = Some(keeper);
    }

    /// Everything that the cluster holds, which [`Cluster::restore`] takes.
    pub fn kept(&self) -> Vec<Kept> {
        let state = self.lock();
        all(&state).collect()
    }

    /// Makes the cluster what it was when these were told of, in place of all that it holds: UIDs
    /// and versions too. Its next version is higher than any before and than this one, and watches
    /// of older ones get 410. The kinds of a [`crate::Front`] are served from now on. Objects of
    /// kinds that nothing defines are left out, and returned.
    ///
    /// # Errors
    /// In one sentence, for what can't be an object here; the cluster is as it was, then.
    pub fn restore(&self, kept: impl IntoIterator<Item = Kept>, version: u64) -> Result<Vec<Kept>, String> {
        let mut state = self.lock();
        let mut restored = state.emptied();
        let left_out = read_all(&mut restored, kept, version)?;
        state.become_another(restored);
        Ok(left_out)
    }

    /// Empties the cluster: it holds what a new one does, under versions and UIDs of its own.
    pub fn begin_anew(&self) {
        let mut state = self.lock();
        let mut new = state.emptied();
        builtin::kinds().iter().chain(builtin::extra_kinds()).for_each(|kind| new.serve(kind.clone()));
        super::create_namespaces(&mut new);
        let version = new.version();
        new.settle_at(version + 1);
        state.become_another(new);
    }
}

/// Puts everything into an empty state; returns what has no place there.
fn read_all(state: &mut State, kept: impl IntoIterator<Item = Kept>, version: u64) -> Result<Vec<Kept>, String> {
    builtin::kinds().iter().chain(builtin::extra_kinds()).for_each(|kind| state.serve(kind.clone()));
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
            // Its definition may be still to come.
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

fn all(state: &State) -> impl Iterator<Item = Kept> + '_ {
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

fn served(state: &State, one: &Kept) -> Option<super::kind::SharedKind> {
    state.kinds().find(|kind| kind.key() == (one.group.as_str(), one.plural.as_str()))
}

fn read(one: &Kept) -> Result<Value, String> {
    let text = one.object.as_deref().unwrap_or_default();
    serde_json::from_slice(text).map_err(|error| format!("{} {} isn't JSON: {error}", one.plural, one.name))
}

/// Puts an object where it stood, if its kind is served.
fn insert(state: &mut State, one: &Kept, object: Value) -> Result<bool, String> {
    let Some(kind) = served(state, one) else { return Ok(false) };
    let place = Place::new(&one.namespace, &one.name);
    if meta::name(&object) != one.name || meta::namespace(&object) != one.namespace {
        return Err(format!("{} {} has another name in it", one.plural, one.name));
    }
    state.restore(&kind, place, Shared::new(object), one.completed_on_read);
    Ok(true)
}

/// What of a state a keeper has to be told after a change of an object.
pub(crate) fn told(state: &State, kind: &super::kind::Kind, place: &Place, object: Option<&Shared>) {
    let Some(keeper) = &state.keeper else { return };
    // Of two faces that objects have, the one by which they are stored.
    let (group, plural) = kind.key();
    keeper.keep(Kept {
        group: group.to_owned(),
        plural: plural.to_owned(),
        namespace: place.namespace.clone(),
        name: place.name.clone(),
        version: state.version(),
        object: object.map(|object| object.json().clone()),
        completed_on_read: object.is_some() && state.is_completed_on_read(kind, place),
    });
}

/// Tells a keeper that everything is another.
pub(crate) fn told_all(state: &State) {
    let Some(keeper) = &state.keeper else { return };
    keeper.cleared();
    all(state).for_each(|kept| keeper.keep(kept));
}
