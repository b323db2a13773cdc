//! Cache of backends, parsed once per change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::ResourceExt;
use kube::core::DeserializeGuard;
use kube::runtime::watcher::Event;
use parking_lot::Mutex;

use crate::api::{Backend, BucketName, Endpoint, S3Backend};

/// Maximum number of returned spellings of an endpoint.
const MOST_SPELLINGS: usize = 8;

/// Every backend, or the error if it is invalid.
#[derive(Default)]
pub(crate) struct BackendCache(Mutex<Backends>);

pub(crate) type Parsed = Result<Arc<Backend>, String>;

#[derive(Default)]
struct Backends {
    parsed: BTreeMap<String, Parsed>,
    /// Current and former endpoints of backends, by the normalized endpoint of their store.
    spellings: BTreeMap<String, BTreeSet<Endpoint>>,
    /// Buckets that backends share, by the normalized endpoint of their store.
    shared: BTreeMap<String, BTreeSet<BucketName>>,
    listing: Option<BTreeSet<String>>,
}

impl BackendCache {
    /// Applies a watch event. Returns the names of backends that changed in a way that matters to
    /// claims; the count of buckets, for example, doesn't.
    pub(crate) fn apply(&self, event: &Event<DeserializeGuard<S3Backend>>) -> Vec<String> {
        let mut backends = self.0.lock();
        let changed = backends.apply(event);
        // During a list only once, at its end.
        if matches!(event, Event::InitDone) || (backends.listing.is_none() && !changed.is_empty()) {
            backends.spell();
        }
        changed
    }

    /// Returns the other current and former spellings of an endpoint that are known to be the same
    /// store.
    pub(crate) fn spellings(&self, endpoint: &Endpoint) -> Vec<Endpoint> {
        let backends = self.0.lock();
        let known = backends.spellings.get(&endpoint.plain());
        known.into_iter().flatten().filter(|other| *other != endpoint).take(MOST_SPELLINGS).cloned().collect()
    }

    /// Returns the buckets that backends of this store share, at any spelling of its endpoint.
    pub(crate) fn shared(&self, endpoint: &Endpoint) -> BTreeSet<BucketName> {
        self.0.lock().shared.get(&endpoint.plain()).cloned().unwrap_or_default()
    }

    /// Returns the backend of this name.
    pub(crate) fn get(&self, name: &str) -> Option<Parsed> {
        self.0.lock().parsed.get(name).cloned()
    }

    /// Returns every backend, by name.
    pub(crate) fn all(&self) -> BTreeMap<String, Parsed> {
        self.0.lock().parsed.clone()
    }
}

impl Backends {
    fn apply(&mut self, event: &Event<DeserializeGuard<S3Backend>>) -> Vec<String> {
        match event {
            Event::Init => {
                self.listing = Some(BTreeSet::new());
                Vec::new()
            }
            Event::InitApply(backend) | Event::Apply(backend) => self.put(backend.name_any(), &parse(backend)),
            Event::Delete(backend) => {
                self.parsed.remove_entry(&backend.name_any()).map(|(name, _)| name).into_iter().collect()
            }
            Event::InitDone => {
                let listed = self.listing.take().unwrap_or_default();
                let gone: Vec<String> = self.parsed.keys().filter(|name| !listed.contains(*name)).cloned().collect();
                self.parsed.retain(|name, _| listed.contains(name));
                gone
            }
        }
    }

    fn spell(&mut self) {
        self.spellings.clear();
        self.shared.clear();
        for backend in self.parsed.values().flatten() {
            for endpoint in backend.former_endpoints.iter().chain([&backend.endpoint]) {
                self.spellings.entry(endpoint.plain()).or_default().insert(endpoint.clone());
                if !backend.shared_buckets.is_empty() {
                    let shared = self.shared.entry(endpoint.plain()).or_default();
                    shared.extend(backend.shared_buckets.keys().cloned());
                }
            }
        }
    }

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
