//! Tables filled by watches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::runtime::watcher::Event;
use stowage_api::{BucketName, ServedBinding, ServedRecord};

/// The state delivered by a watch. A new list replaces the old state only once it is complete: half
/// a list would be half of the keys.
#[derive(Debug, Default)]
pub(crate) struct Listed<T> {
    live: T,
    /// A list that is still being received.
    incoming: Option<T>,
    /// True once a list was complete.
    is_whole: bool,
}

/// A table to which the objects of a watch are added, and from which they are removed.
pub(crate) trait Table<K>: Default {
    /// Adds or replaces an object.
    fn put(&mut self, object: K);
    /// Removes an object.
    fn take(&mut self, object: &K);
    /// Called when a new list is complete: takes over equal values from the old table.
    fn succeed(&mut self, before: Self);
}

impl<T> Listed<T> {
    /// Returns the current state.
    pub(crate) fn live(&self) -> &T {
        &self.live
    }

    /// Returns true once a list was complete.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Applies an event of the watch.
    pub(crate) fn apply<K>(&mut self, event: Event<K>)
    where
        T: Table<K>,
    {
        match event {
            Event::Init => self.incoming = Some(T::default()),
            Event::InitApply(object) => self.incoming.get_or_insert_default().put(object),
            Event::InitDone => {
                let before = std::mem::replace(&mut self.live, self.incoming.take().unwrap_or_default());
                self.live.succeed(before);
                self.is_whole = true;
            }
            Event::Apply(object) => self.live.put(object),
            Event::Delete(object) => self.live.take(&object),
        }
    }
}

/// A value about one bucket.
pub(super) trait OfBucket {
    /// Returns the bucket.
    fn bucket(&self) -> &BucketName;
}

impl OfBucket for ServedBinding {
    fn bucket(&self) -> &BucketName {
        &self.bucket
    }
}

impl OfBucket for ServedRecord {
    fn bucket(&self) -> &BucketName {
        &self.bucket
    }
}

/// Values by the name of their Secret, indexed by bucket.
#[derive(Debug)]
pub(super) struct ByBucket<T> {
    by_name: BTreeMap<String, Arc<T>>,
    names: BTreeMap<BucketName, BTreeSet<String>>,
}

impl<T> Default for ByBucket<T> {
    fn default() -> Self {
        Self { by_name: BTreeMap::new(), names: BTreeMap::new() }
    }
}

impl<T: OfBucket> ByBucket<T> {
    pub(super) fn insert(&mut self, name: &str, value: T) {
        self.remove(name);
        self.names.entry(value.bucket().clone()).or_default().insert(name.to_owned());
        self.by_name.insert(name.to_owned(), Arc::new(value));
    }

    pub(super) fn remove(&mut self, name: &str) {
        let Some(value) = self.by_name.remove(name) else { return };
        if let Some(names) = self.names.get_mut(value.bucket()) {
            names.remove(name);
            if names.is_empty() {
                self.names.remove(value.bucket());
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Arc<T>> {
        self.by_name.values()
    }

    /// Returns the values of a bucket, ordered by the names of the Secrets.
    pub(super) fn of(&self, bucket: &str) -> impl Iterator<Item = (&String, &Arc<T>)> {
        let names = self.names.get(bucket).into_iter().flatten();
        names.filter_map(|name| self.by_name.get_key_value(name))
    }
}

#[cfg(test)]
mod tests {
    use stowage_api::{ClaimUid, Endpoint};

    use super::*;

    fn binding(bucket: &str) -> ServedBinding {
        ServedBinding {
            claim: None,
            uid: ClaimUid::new("u-1"),
            backend: "main".to_owned(),
            bucket: BucketName::parse(bucket).expect("a name"),
            endpoint: Endpoint::parse("http://s3.example").ok(),
            per_source_ip_rps: 0,
        }
    }

    fn found(table: &ByBucket<ServedBinding>, bucket: &str) -> Vec<String> {
        table.of(bucket).map(|(name, _)| name.clone()).collect()
    }

    #[test]
    fn what_goes_leaves_no_trace() {
        let mut table = ByBucket::default();
        table.insert("b", binding("photos"));
        table.insert("a", binding("photos"));
        assert_eq!(found(&table, "photos"), ["a", "b"]);
        table.insert("b", binding("films"));
        assert_eq!((found(&table, "photos"), found(&table, "films")), (vec!["a".to_owned()], vec!["b".to_owned()]));
        for name in ["a", "b", "c"] {
            table.remove(name);
        }
        assert!(table.names.is_empty() && table.len() == 0);
    }
}
