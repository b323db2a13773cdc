//! Access to stored objects without the API.

use std::sync::Arc;

use serde_json::Value;

use super::Cluster;
use crate::kind::Kind;
use crate::store::{Place, Shared};

/// A stored object, for oracles and tests.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredObject {
    /// API group, empty for the core group.
    pub group: String,
    /// Resource name, such as `secrets`.
    pub plural: String,
    /// Namespace, empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// The object as stored.
    pub object: Arc<Value>,
}

impl Cluster {
    /// Returns all stored objects in order of group, resource, namespace and name.
    pub fn objects(&self) -> Vec<StoredObject> {
        self.lock().everything().map(|(kind, place, object)| stored(kind, place, object)).collect()
    }

    /// Returns the first objects of a resource in the same order, at most `most`, and the total
    /// number.
    pub fn first_objects(&self, plural: &str, most: usize) -> (Vec<StoredObject>, usize) {
        let state = self.lock();
        let mut count = 0;
        let mut first = Vec::new();
        for (kind, place, object) in state.everything_of(plural) {
            count += 1;
            if first.len() < most {
                first.push(stored(kind, place, object));
            }
        }
        (first, count)
    }

    /// Returns the objects of a resource in a namespace whose value of a label is wanted.
    pub fn labelled_objects(
        &self,
        plural: &str,
        namespace: &str,
        label: &str,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Vec<StoredObject> {
        let state = self.lock();
        let of_namespace = state.everything_of(plural).filter(|(_, place, _)| place.namespace == namespace);
        let labelled = of_namespace.filter(|(_, _, object)| object.label(label).is_some_and(&is_wanted));
        labelled.map(|(kind, place, object)| stored(kind, place, object)).collect()
    }

    /// Returns every state of the resource's objects in the watch history, oldest first, including
    /// those of removed objects.
    pub fn past_objects(&self, plural: &str) -> Vec<Arc<Value>> {
        self.lock().past(plural).map(|object| object.tree()).collect()
    }
}

fn stored(kind: &Kind, place: &Place, object: &Shared) -> StoredObject {
    StoredObject {
        group: kind.group.clone(),
        plural: kind.plural.clone(),
        namespace: place.namespace.clone(),
        name: place.name.clone(),
        object: object.tree(),
    }
}
