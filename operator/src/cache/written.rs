//! Objects as we last wrote them, until the watch shows them so.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::ResourceExt;

use super::is_later;

/// Answers to our own writes of one kind. Holds an entry only while the watch is behind, or was when last asked.
pub(crate) struct Written<K>(Mutex<BTreeMap<Key, Arc<K>>>);

type Key = (Option<String>, String);

impl<K> Default for Written<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: ResourceExt + Clone> Written<K> {
    /// Notes the answer to a write of ours.
    pub(crate) fn wrote(&self, object: K) {
        self.lock().insert(key(&object), Arc::new(object));
    }

    /// The later of what the watch shows and what we wrote.
    pub(crate) fn latest(&self, seen: &K) -> Arc<K> {
        let mut written = self.lock();
        let key = key(seen);
        match written.get(&key) {
            Some(ours) if is_later(ours.as_ref(), seen) => ours.clone(),
            Some(_) => {
                written.remove(&key);
                Arc::new(seen.clone())
            }
            None => Arc::new(seen.clone()),
        }
    }

    /// Whether what the watch shows is what we wrote ourselves, or older.
    pub(crate) fn is_echo(&self, seen: &K) -> bool {
        self.lock().get(&key(seen)).is_some_and(|ours| !is_later(seen, ours.as_ref()))
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget(&self, gone: &K) {
        self.lock().remove(&key(gone));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Arc<K>>> {
        // A panic elsewhere leaves at worst an old entry, which the watch supersedes.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(object: &impl ResourceExt) -> Key {
    (object.namespace(), object.name_any())
}
