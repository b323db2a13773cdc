//! The published usage of all replicas. Pure: ConfigMaps are passed in.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ConfigMap;
use stowage_api::wire::{self, Usage};
use stowage_api::{Counters, Figures, RecordName, Snapshot, used};

use crate::registry::Table;

/// The published usage, including this replica's own.
#[derive(Debug, Default)]
pub struct View {
    counters: BTreeMap<String, BTreeMap<RecordName, Told>>,
    /// The versions of the ConfigMaps of the counters, by replica and shard.
    versions: BTreeMap<(String, u16), String>,
    snapshots: BTreeMap<RecordName, Seen>,
}

#[derive(Clone, Copy, Debug)]
struct Told {
    shard: u16,
    figures: Figures,
}

/// A snapshot as stored in the API server.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Content of the snapshot.
    pub snapshot: Snapshot,
    /// `resourceVersion` of the object that holds it.
    pub version: Option<String>,
}

impl View {
    /// Returns a replica's published figures of a bucket.
    #[must_use]
    pub fn figures(&self, replica: &str, bucket: &RecordName) -> Option<Figures> {
        self.counters.get(replica)?.get(bucket).map(|told| told.figures)
    }

    /// Returns the version of a ConfigMap of counters, if there is one.
    #[must_use]
    pub fn version(&self, replica: &str, shard: u16) -> Option<&String> {
        self.versions.get(&(replica.to_owned(), shard))
    }

    /// Returns true if counters of a replica are stored.
    #[must_use]
    pub fn has(&self, replica: &str) -> bool {
        self.counters.contains_key(replica)
    }

    /// Returns the snapshot of a bucket.
    #[must_use]
    pub fn snapshot(&self, bucket: &RecordName) -> Option<&Seen> {
        self.snapshots.get(bucket)
    }

    /// Returns the buckets with a snapshot.
    pub fn measured(&self) -> impl Iterator<Item = &RecordName> {
        self.snapshots.keys()
    }

    /// Returns the usage of a bucket, from the published figures of the others and these of `me`.
    #[must_use]
    pub fn used(&self, bucket: &RecordName, me: &str, own: Figures) -> u64 {
        let others = self.of(bucket).filter(|(replica, _)| *replica != me);
        used(self.snapshots.get(bucket).map(|seen| &seen.snapshot), others.chain([(me, own)]))
    }

    /// Returns the published figures of a bucket, by replica.
    pub fn of<'a>(&'a self, bucket: &'a RecordName) -> impl Iterator<Item = (&'a str, Figures)> {
        let told = |(replica, of): (&'a String, &'a BTreeMap<RecordName, Told>)| {
            of.get(bucket).map(|told| (replica.as_str(), told.figures))
        };
        self.counters.iter().filter_map(told)
    }

    /// Returns ConfigMaps of replicas that are not alive, all of whose figures are covered by a
    /// snapshot. They are no longer needed.
    #[must_use]
    pub fn covered(&self, alive: &BTreeSet<String>, is_limited: impl Fn(&RecordName) -> bool) -> Vec<(String, u16)> {
        let mut all = BTreeMap::new();
        for (replica, of) in self.counters.iter().filter(|(replica, _)| !alive.contains(*replica)) {
            for (bucket, told) in of {
                let is_seen = !is_limited(bucket) || self.is_covered(replica, bucket, told.figures);
                *all.entry((replica.clone(), told.shard)).or_insert(true) &= is_seen;
            }
        }
        all.into_iter().filter(|(_, is_seen)| *is_seen).map(|(shard, _)| shard).collect()
    }

    fn is_covered(&self, replica: &str, bucket: &RecordName, figures: Figures) -> bool {
        let measured = self.snapshots.get(bucket).and_then(|seen| seen.snapshot.measured.as_ref());
        measured.and_then(|it| it.covers.get(replica)).is_some_and(|covered| figures.beyond(*covered) == 0)
    }

    fn forget(&mut self, replica: &str, shard: u16) {
        self.versions.remove(&(replica.to_owned(), shard));
        if let Some(of) = self.counters.get_mut(replica) {
            of.retain(|_, told| told.shard != shard);
            if of.is_empty() {
                self.counters.remove(replica);
            }
        }
    }

    fn put_snapshot(&mut self, snapshot: Snapshot, version: Option<String>) {
        self.snapshots.insert(snapshot.bucket.clone(), Seen { snapshot, version });
    }
}

fn is(map: &ConfigMap, usage: Usage) -> bool {
    map.metadata.labels.as_ref().and_then(|labels| labels.get(wire::USAGE)).is_some_and(|it| it == usage.as_str())
}

impl Table<ConfigMap> for View {
    /// Adds a ConfigMap. An invalid one counts as absent: it was not written by a gateway.
    fn put(&mut self, map: ConfigMap) {
        let name = map.metadata.name.as_deref().unwrap_or_default();
        let read = if is(&map, Usage::Counters) {
            Counters::read(&map).map(|counters| {
                self.forget(&counters.replica, counters.shard);
                let Counters { replica, shard, of } = counters;
                self.versions.extend(map.metadata.resource_version.clone().map(|it| ((replica.clone(), shard), it)));
                let told = of.into_iter().map(|(bucket, figures)| (bucket, Told { shard, figures }));
                self.counters.entry(replica).or_default().extend(told);
            })
        } else {
            Snapshot::read(&map).map(|snapshot| self.put_snapshot(snapshot, map.metadata.resource_version.clone()))
        };
        if let Err(reason) = read {
            tracing::warn!(config_map = name, %reason, "a ConfigMap does not count");
            self.take(&map);
        }
    }

    fn take(&mut self, map: &ConfigMap) {
        let only_name = ConfigMap {
            metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                name: map.metadata.name.clone(),
                labels: map.metadata.labels.clone(),
                ..Default::default()
            },
            ..ConfigMap::default()
        };
        if let Ok(counters) = Counters::read(&only_name) {
            self.forget(&counters.replica, counters.shard);
        } else if let Ok(snapshot) = Snapshot::read(&only_name) {
            self.snapshots.remove(&snapshot.bucket);
        }
    }

    fn succeed(&mut self, _: Self) {}
}
