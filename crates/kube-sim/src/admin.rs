//! The admin handle: hands of people and other programs in the cluster, without a client.

use std::sync::Arc;

use serde_json::Value;

use super::kind::SharedKind;
use super::managed;
use super::meta;
use super::store::{Place, State};
use super::write::{self, Ownership, Part, WriteOptions};
use super::{Cluster, FieldValidation};

/// Field manager of what is done by hand.
const MANAGER: &str = "somebody";

fn options() -> WriteOptions {
    WriteOptions { manager: MANAGER.to_owned(), dry_run: false, validation: FieldValidation::Ignore }
}

/// Of several groups with such a resource, the first.
fn kind(state: &State, plural: &str) -> Option<SharedKind> {
    state.kinds().find(|kind| kind.plural == plural)
}

impl Cluster {
    /// A stored object.
    pub fn object(&self, plural: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let state = self.lock();
        let kind = kind(&state, plural)?;
        state.get(&kind, &Place::new(namespace, name)).map(|object| object.value().clone())
    }

    /// Goes on as if there had been so many writes more: the versions between belong to nothing.
    pub fn pass_over_versions(&self, writes: u64) {
        self.lock().pass_over(writes);
    }

    /// Makes an object, in its complete form and with its namespace. `false` if the API server would refuse it.
    pub fn create(&self, object: Value) -> bool {
        let mut state = self.lock();
        let types = (object["apiVersion"].as_str().unwrap_or_default(), object["kind"].as_str().unwrap_or_default());
        let Some(kind) = state.kind_named(types.0, types.1) else { return false };
        write::create(&mut state, &kind, object, Ownership::Creator, &options()).is_ok()
    }

    /// Changes an object but for its status. `false` if there is none, or the API server would refuse the new one.
    pub fn change(&self, plural: &str, namespace: &str, name: &str, change: impl FnOnce(&mut Value)) -> bool {
        let mut state = self.lock();
        let Some(kind) = kind(&state, plural) else { return false };
        let Some(existing) = state.get(&kind, &Place::new(namespace, name)).cloned() else { return false };
        let mut object = Value::clone(&existing);
        change(&mut object);
        let now = state.now();
        managed::record_update(&kind, &existing, &mut object, MANAGER, "", &now);
        write::update(&mut state, &kind, &existing, object, Part::Main, &options()).is_ok()
    }

    /// Removes an object at once, finalizers or not; its last state if there was one.
    pub fn remove(&self, plural: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let mut state = self.lock();
        let kind = kind(&state, plural)?;
        state.remove(&kind, &Place::new(namespace, name)).map(|last| last.value().clone())
    }

    /// Makes an object of this name anew, as it was but for its status: another UID, nobody's finalizers and owners.
    /// `false` if there is none.
    pub fn recreate(&self, plural: &str, namespace: &str, name: &str) -> bool {
        let Some(last) = self.remove(plural, namespace, name) else { return false };
        let mut object = (*last).clone();
        for field in ["finalizers", "ownerReferences", "managedFields", "resourceVersion"] {
            meta::set(&mut object, field, Value::Null);
        }
        self.create(object)
    }
}
