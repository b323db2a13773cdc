//! The [`Shown`] type: delays reconciliations until the store has a complete list.

use std::sync::Arc;

use kube::runtime::reflector::{Lookup, ObjectRef, Store};
use kube::runtime::watcher::Event;

/// Objects of a list that is still being received, which are to be reconciled once it is complete.
///
/// A list comes in pages, and the store replaces its content only after the last one. A pass before
/// that would see outdated data, or none.
///
/// An object that the store already has in the same version is left out. A watch that keeps failing
/// relists twice a minute, and a pass over a claim that waits for its user calls an S3 store each
/// time.
pub(super) struct Shown<K: Lookup<DynamicType = ()>>(Vec<ObjectRef<K>>);

impl<K: Lookup<DynamicType = ()>> Default for Shown<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Lookup<DynamicType = ()> + Clone> Shown<K> {
    /// Handles an event that was already applied to `store`. Returns the objects to reconcile now.
    pub(super) fn take(&mut self, event: &Event<K>, store: &Store<K>) -> Vec<Arc<K>> {
        match event {
            Event::Init => self.0.clear(),
            Event::InitApply(object) => {
                let place = ObjectRef::from_obj(object);
                if store.get(&place).is_none_or(|before| !is_same(before.as_ref(), object)) {
                    self.0.push(place);
                }
            }
            Event::InitDone => return self.0.drain(..).filter_map(|object| store.get(&object)).collect(),
            Event::Apply(object) => return store.get(&ObjectRef::from_obj(object)).into_iter().collect(),
            Event::Delete(_) => {}
        }
        Vec::new()
    }
}

/// Returns true if both are the same version of one object.
fn is_same<K: Lookup>(before: &K, now: &K) -> bool {
    let versions = (before.resource_version(), now.resource_version());
    before.uid() == now.uid() && versions.0.is_some() && versions.0 == versions.1
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::runtime::reflector;

    use super::*;

    fn object(name: &str, uid: &str, version: &str) -> ConfigMap {
        let mut object = ConfigMap::default();
        object.metadata.name = Some(name.to_owned());
        object.metadata.uid = Some(uid.to_owned());
        object.metadata.resource_version = Some(version.to_owned());
        object
    }

    // covers: 3.5.wake.list
    #[test]
    fn of_a_later_list_only_what_has_changed_is_looked_at() {
        let (store, mut writer) = reflector::store();
        let mut shown = Shown::default();
        let mut list = |objects: &[ConfigMap]| {
            let listed = objects.iter().cloned().map(Event::InitApply);
            let events = [Event::Init].into_iter().chain(listed).chain([Event::InitDone]);
            let looked = events.flat_map(|event| {
                writer.apply_watcher_event(&event);
                shown.take(&event, &store)
            });
            looked.filter_map(|object| object.metadata.name.clone()).collect::<Vec<_>>()
        };
        let first = [object("a", "1", "5"), object("b", "2", "6"), object("c", "3", "7")];
        assert_eq!(list(&first), ["a", "b", "c"]);
        assert_eq!(list(&first), [] as [&str; 0]);
        let later =
            [object("a", "1", "9"), object("b", "made again", "6"), object("c", "3", "7"), object("d", "4", "8")];
        assert_eq!(list(&later), ["a", "b", "d"]);
    }
}
