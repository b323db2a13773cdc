//! What the list of a watch shows, object by object, and when it is to be looked at.

use std::sync::Arc;

use kube::runtime::reflector::{Lookup, ObjectRef, Store};
use kube::runtime::watcher::Event;

/// What a list has shown, until the store has it: a list comes in pages, and only after the last
/// one all of it takes the place of what was there before. A pass any sooner would be one over the
/// past, or over nothing.
pub(super) struct Shown<K: Lookup<DynamicType = ()>>(Vec<ObjectRef<K>>);

impl<K: Lookup<DynamicType = ()>> Default for Shown<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Lookup<DynamicType = ()> + Clone> Shown<K> {
    /// Takes in an event that went through the store before. Returns what there is to be looked at
    /// by now, as the store has it.
    pub(super) fn take(&mut self, event: &Event<K>, store: &Store<K>) -> Vec<Arc<K>> {
        match event {
            Event::Init => self.0.clear(),
            Event::InitApply(object) => self.0.push(ObjectRef::from_obj(object)),
            Event::InitDone => return self.0.drain(..).filter_map(|object| store.get(&object)).collect(),
            Event::Apply(object) => return store.get(&ObjectRef::from_obj(object)).into_iter().collect(),
            Event::Delete(_) => {}
        }
        Vec::new()
    }
}
