//! Our own last writes, until the watch shows them.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt;
use parking_lot::Mutex;

use super::is_later;

/// Answers to our own writes of one kind, each until the watch has caught up with it.
///
/// The caller passes the object in its reflector's store at that moment, because the store is
/// filled before the watch counts as caught up.
pub(crate) struct Written<K>(Mutex<BTreeMap<Key, Arc<K>>>);

type Key = (Option<String>, String);

impl<K> Default for Written<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: ResourceExt + Clone> Written<K> {
    /// Stores the answer to a write of ours.
    pub(crate) fn wrote(&self, object: K) {
        self.0.lock().insert(key(&object), Arc::new(object));
    }

    /// Returns the watched object or our own write of it, if that is newer.
    pub(crate) fn latest(&self, seen: &K) -> Arc<K> {
        let mut written = self.0.lock();
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

    /// Returns true if the watched object is our own write, or older. Must be called once for each
    /// event.
    pub(crate) fn is_echo(&self, seen: &K) -> bool {
        let mut written = self.0.lock();
        let key = key(seen);
        let Some(ours) = written.get(&key) else { return false };
        let (echo, caught_up) = (!is_later(seen, ours.as_ref()), !is_later(ours.as_ref(), seen));
        if caught_up {
            written.remove(&key);
        }
        echo
    }

    /// Clears all entries, after a relist.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }

    /// Forgets a deleted object. The namespace is empty for a cluster-scoped one.
    pub(crate) fn forget(&self, namespace: &str, name: &str) {
        let namespace = (!namespace.is_empty()).then(|| namespace.to_owned());
        self.0.lock().remove(&(namespace, name.to_owned()));
    }
}

fn key(object: &impl ResourceExt) -> Key {
    (object.namespace(), object.name_any())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn object(version: u32) -> ConfigMap {
        let mut object = ConfigMap::default();
        object.metadata.name = Some("one".to_owned());
        object.metadata.resource_version = Some(version.to_string());
        object
    }

    fn written() -> Written<ConfigMap> {
        let written = Written::default();
        written.wrote(object(9));
        written
    }

    #[test]
    fn our_own_write_is_the_latest_until_the_watch_has_caught_up() {
        let written = written();
        assert!(written.is_echo(&object(8)), "older than what we wrote");
        let latest = written.latest(&object(8));
        assert_eq!(latest.resource_version().as_deref(), Some("9"));
        assert!(written.is_echo(&object(9)));
        assert!(written.0.lock().is_empty(), "nothing is kept twice");
        assert!(!written.is_echo(&object(10)));
    }

    #[test]
    fn somebody_elses_later_write_is_no_echo() {
        let written = written();
        assert!(!written.is_echo(&object(10)));
        assert!(written.0.lock().is_empty());
        written.wrote(object(9));
        assert_eq!(written.latest(&object(10)).resource_version().as_deref(), Some("10"));
        assert!(written.0.lock().is_empty());
    }
}
