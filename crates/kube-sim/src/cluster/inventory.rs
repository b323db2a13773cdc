//! What is stored, for whoever looks on from beside the API.

use std::sync::Arc;

use serde_json::Value;

use super::Cluster;
use crate::kind::Kind;
use crate::store::{Place, Shared};

/// One stored object, for oracles and tests.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredObject {
    /// API group, empty for the core group.
    pub group: String,
    /// Resource name, such as `secrets`.
    pub plural: String,
    /// Empty for cluster-scoped kinds.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// The whole object as stored.
    pub object: Arc<Value>,
}

impl Cluster {
    /// All stored objects in order of group, resource, namespace and name.
    pub fn objects(&self) -> Vec<StoredObject> {
        self.lock().everything().map(|(kind, place, object)| stored(kind, place, object)).collect()
    }

    /// The first objects of a resource in that order, so many at most; and how many there are.
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

    /// The objects of a resource in a namespace which have a label with such a value.
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

    /// Every state that an object of a resource had and that watches can still be told of, oldest
    /// first: also of objects that are gone.
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
