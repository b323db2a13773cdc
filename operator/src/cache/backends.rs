//! Backends, parsed once per change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::ResourceExt;
use kube::core::DeserializeGuard;
use kube::runtime::watcher::Event;
use parking_lot::Mutex;

use crate::api::{Backend, S3Backend};

/// Every backend, or why it can't be read.
#[derive(Default)]
pub(crate) struct BackendCache(Mutex<Backends>);

pub(crate) type Parsed = Result<Arc<Backend>, String>;

#[derive(Default)]
struct Backends {
    parsed: BTreeMap<String, Parsed>,
    listing: Option<BTreeSet<String>>,
}

impl BackendCache {
    /// Takes in what the watch shows. Returns the names of backends that changed in what claims
    /// depend on: not in the count of buckets, for instance.
    pub(crate) fn apply(&self, event: &Event<DeserializeGuard<S3Backend>>) -> Vec<String> {
        let mut backends = self.0.lock();
        match event {
            Event::Init => {
                backends.listing = Some(BTreeSet::new());
                Vec::new()
            }
            Event::InitApply(backend) | Event::Apply(backend) => backends.put(backend.name_any(), &parse(backend)),
            Event::Delete(backend) => {
                backends.parsed.remove_entry(&backend.name_any()).map(|(name, _)| name).into_iter().collect()
            }
            Event::InitDone => {
                let listed = backends.listing.take().unwrap_or_default();
                let gone: Vec<String> =
                    backends.parsed.keys().filter(|name| !listed.contains(*name)).cloned().collect();
                backends.parsed.retain(|name, _| listed.contains(name));
                gone
            }
        }
    }

    /// The backend of this name.
    pub(crate) fn get(&self, name: &str) -> Option<Parsed> {
        self.0.lock().parsed.get(name).cloned()
    }

    /// Every backend, by name.
    pub(crate) fn all(&self) -> BTreeMap<String, Parsed> {
        self.0.lock().parsed.clone()
    }
}

impl Backends {
    fn put(&mut self, name: String, parsed: &Parsed) -> Vec<String> {
        if let Some(listing) = &mut self.listing {
            listing.insert(name.clone());
        }
        let before = self.parsed.insert(name.clone(), parsed.clone());
        if before.is_some_and(|before| same_for_claims(&before, parsed)) { Vec::new() } else { vec![name] }
    }
}

fn parse(backend: &DeserializeGuard<S3Backend>) -> Parsed {
    match &backend.0 {
        Ok(raw) => Backend::parse(raw).map(Arc::new).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

fn same_for_claims(one: &Parsed, other: &Parsed) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => {
            let key =
                |backend: &Backend| (backend.id.uid.clone(), backend.generation, backend.ready, backend.was_ready);
            key(one) == key(other)
        }
        (Err(one), Err(other)) => one == other,
        _ => false,
    }
}
