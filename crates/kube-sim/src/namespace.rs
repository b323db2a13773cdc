//! The namespace controller: one step of emptying and removing terminating namespaces.

use serde_json::json;

use super::delete::{self, Deletion};
use super::meta;
use super::options::{Ownership, WriteOptions};
use super::store::{Place, Store};
use super::write;

/// Initial namespaces of every cluster.
const INITIAL: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Creates the initial namespaces.
pub(crate) fn create_initial(store: &mut Store) {
    let namespaces = store.kind("", "v1", "namespaces").expect("it is always served");
    for name in INITIAL {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        write::create(store, &namespaces, object, Ownership::Creator, &WriteOptions::own())
            .expect("the initial namespaces are valid");
    }
}

/// Deletes the objects in each terminating namespace, or removes the namespace if it is empty.
/// Returns the number of objects changed or removed.
pub(crate) fn finalize(state: &mut Store) -> usize {
    let namespaces = state.kind("", "v1", "namespaces").expect("namespaces are always served");
    let terminating: Vec<(Place, _)> = state
        .objects(&namespaces)
        .filter(|(_, object)| object.is_deleting())
        .map(|(place, object)| (place.clone(), object.clone()))
        .collect();
    let mut changes = 0;
    for (place, namespace) in terminating {
        let content: Vec<_> = state
            .everything()
            .filter(|(_, inner, _)| inner.namespace == place.name)
            .map(|(kind, inner, object)| (kind.clone(), inner.clone(), object.clone()))
            .collect();
        for (kind, inner, object) in content.iter().filter(|(_, _, object)| !object.is_deleting()) {
            let uid = Some(object.uid().to_owned());
            let deletion = Deletion { uid, ..Deletion::default() };
            changes += usize::from(delete::delete(state, kind, inner, &deletion).is_ok());
        }
        let left = state.everything().any(|(_, inner, _)| inner.namespace == place.name);
        if left || !content.is_empty() {
            continue;
        }
        let mut namespace = (*namespace).clone();
        namespace["spec"] = json!({});
        if meta::finalizers(&namespace).is_empty() {
            state.remove(&namespaces, &place);
            changes += 1;
        } else if state.get(&namespaces, &place).is_some_and(|stored| **stored != namespace) {
            state.put(&namespaces, namespace);
            changes += 1;
        }
    }
    changes
}
