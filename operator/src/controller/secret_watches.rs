//! Watches of single Secrets by name: the admin and CA Secrets of backends (spec §1).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use daemon::backoff::WatchBackoff;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::upstream::Upstreams;

use super::wakes::Wakes;

/// Namespace and name of a Secret.
pub(super) type SecretName = (String, String);

/// One metadata watch per Secret that a backend refers to. Nothing is cached.
pub(super) struct SecretWatches {
    client: Client,
    changes: Arc<Changes>,
    watches: Mutex<BTreeMap<(String, SecretName), Watch>>,
}

/// Backends with changes of Secrets that have not been checked yet.
struct Changes {
    dirty: Mutex<BTreeSet<String>>,
    wakes: Arc<Wakes>,
    upstreams: Arc<Upstreams>,
}

/// A watch task, aborted on drop.
struct Watch(JoinHandle<()>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl SecretWatches {
    /// Creates an empty set of watches. A change wakes the backend through `wakes`, and marks its
    /// client in `upstreams` as possibly outdated.
    pub(super) fn new(client: Client, wakes: Arc<Wakes>, upstreams: Arc<Upstreams>) -> Self {
        let changes = Arc::new(Changes { dirty: Mutex::default(), wakes, upstreams });
        Self { client, changes, watches: Mutex::default() }
    }

    /// Sets the Secrets watched for this backend.
    pub(super) fn set(&self, backend: &str, secrets: &BTreeSet<SecretName>) {
        let mut watches = self.watches.lock();
        watches.retain(|(owner, secret), _| owner != backend || secrets.contains(secret));
        for secret in secrets {
            let key = (backend.to_owned(), secret.clone());
            watches.entry(key).or_insert_with(|| self.watch(backend, secret));
        }
    }

    /// Returns true if a Secret of this backend changed since the last call.
    pub(super) fn take_change(&self, backend: &str) -> bool {
        self.changes.dirty.lock().remove(backend)
    }

    /// Marks the Secrets of this backend as changed again, because the check of them failed.
    pub(super) fn keep_change(&self, backend: &str) {
        self.changes.dirty.lock().insert(backend.to_owned());
    }

    fn watch(&self, backend: &str, (namespace, name): &SecretName) -> Watch {
        let api: Api<PartialObjectMeta<Secret>> = Api::namespaced(self.client.clone(), namespace);
        let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let mut stream = watcher::watcher(api, config).backoff(WatchBackoff::new(Instant::now)).boxed();
        let (changes, backend) = (self.changes.clone(), backend.to_owned());
        Watch(tokio::spawn(async move {
            let mut version = Version::default();
            while let Some(event) = stream.next().await {
                let seen = version.is_known();
                if event.is_ok_and(|event| version.follow(&event)) {
                    // The first event mostly shows the version that was just read.
                    if seen {
                        changes.upstreams.doubt(&backend);
                    }
                    changes.note(&backend);
                }
            }
        }))
    }
}

impl Changes {
    fn note(&self, backend: &str) {
        self.dirty.lock().insert(backend.to_owned());
        self.wakes.backend(backend);
    }
}

/// The resourceVersion of a Secret in its watch; the inner `None` means absent.
#[derive(Default)]
struct Version {
    known: Option<Option<String>>,
    listed: Option<String>,
}

impl Version {
    /// Returns true once anything was seen.
    fn is_known(&self) -> bool {
        self.known.is_some()
    }

    /// Applies an event. Returns true if the version has changed.
    fn follow<K: ResourceExt>(&mut self, event: &Event<K>) -> bool {
        let now = match event {
            Event::Init => {
                self.listed = None;
                return false;
            }
            Event::InitApply(secret) => {
                self.listed = secret.resource_version();
                return false;
            }
            Event::InitDone => self.listed.clone(),
            Event::Apply(secret) => secret.resource_version(),
            Event::Delete(_) => None,
        };
        self.known.replace(now.clone()) != Some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(version: &str) -> Secret {
        let mut secret = Secret::default();
        secret.metadata.resource_version = Some(version.to_owned());
        secret
    }

    // covers: 3.5.wake.adminSecret
    #[test]
    fn only_what_changes_the_secret_counts() {
        let mut version = Version::default();
        assert!(!version.follow::<Secret>(&Event::Init));
        assert!(version.follow::<Secret>(&Event::InitDone), "the first sight may be later than the probe");
        assert!(version.follow(&Event::Apply(secret("5"))));
        assert!(!version.follow(&Event::Apply(secret("5"))));
        version.follow::<Secret>(&Event::Init);
        version.follow(&Event::InitApply(secret("5")));
        assert!(!version.follow::<Secret>(&Event::InitDone), "listed again, unchanged");
        version.follow::<Secret>(&Event::Init);
        assert!(version.follow::<Secret>(&Event::InitDone), "gone while nobody watched");
    }
}
