//! Cache of the usage that gateways measured in buckets with a quota.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::runtime::watcher::Event;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::api::{RecordName, Snapshot};
use crate::plan::Held;

/// Usage of each bucket, by its record.
#[derive(Default)]
pub(crate) struct UsageCache {
    found: Mutex<Found>,
    wanted: Notify,
}

#[derive(Default)]
struct Found {
    by_map: BTreeMap<String, (RecordName, Held)>,
    listing: Option<BTreeSet<String>>,
}

impl UsageCache {
    /// Starts the watch once a claim has a quota.
    pub(crate) fn want(&self) {
        self.wanted.notify_one();
    }

    /// Waits until a claim has a quota.
    pub(crate) async fn are_wanted(&self) {
        self.wanted.notified().await;
    }

    /// Applies a watch event. Returns the records of buckets whose usage has changed.
    pub(crate) fn apply(&self, event: &Event<ConfigMap>) -> Vec<RecordName> {
        let mut found = self.found.lock();
        match event {
            Event::Init => found.listing = Some(BTreeSet::new()),
            Event::InitApply(map) | Event::Apply(map) => return found.put(map),
            Event::Delete(map) => {
                found.by_map.remove(&map.name_any());
            }
            Event::InitDone => {
                let listed = found.listing.take().unwrap_or_default();
                found.by_map.retain(|name, _| listed.contains(name));
            }
        }
        Vec::new()
    }

    /// Returns the usage of the buckets of these records.
    pub(crate) fn of(&self, records: impl Iterator<Item = RecordName>) -> BTreeMap<RecordName, Held> {
        let found = self.found.lock();
        let held = |record: &RecordName| found.by_map.get(&Snapshot::name(record)).map(|(_, held)| *held);
        records.filter_map(|record| held(&record).map(|held| (record, held))).collect()
    }
}

impl Found {
    /// Stores a ConfigMap. One that can't be read, or has no measurement yet, counts as absent.
    fn put(&mut self, map: &ConfigMap) -> Vec<RecordName> {
        let name = map.name_any();
        if let Some(listing) = &mut self.listing {
            listing.insert(name.clone());
        }
        let read = Snapshot::read(map).inspect_err(|why| {
            tracing::warn!(config_map = name, %why, "what a gateway measured can't be read");
        });
        let Some((bucket, measured)) = read.ok().and_then(|it| it.measured.map(|measured| (it.bucket, measured)))
        else {
            self.by_map.remove(&name);
            return Vec::new();
        };
        let held = Held::of(&measured);
        let before = self.by_map.insert(name, (bucket.clone(), held));
        let is_same = before.is_some_and(|(_, it)| (it.bytes, it.objects) == (held.bytes, held.objects));
        if is_same { Vec::new() } else { vec![bucket] }
    }
}
