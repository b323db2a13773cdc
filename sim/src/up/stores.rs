//! The stores of a running simulator's backends: an S3Backend that is applied gets a store at its
//! endpoint, which accepts the keys of its Secret.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::core::{GroupVersionResource, Resource};
use kube_sim::Cluster;
use parking_lot::{Mutex, MutexGuard};
use s3_sim::Store;
use serde::de::DeserializeOwned;
use serde_json::Value;
use stowage_operator::api::S3Backend;
use stowage_world::{ADMIN_ACCOUNT, BackendStore, Stores, authority};

use super::data::Data;

/// Time to collect changes.
const GATHERED: Duration = Duration::from_millis(20);

/// Maximum number of stores. It limits the memory of a backend whose endpoint is edited again and
/// again.
const MOST: usize = 256;

/// Creates stores for backends forever. Stores stay when their backends are deleted, as real ones
/// do.
pub(super) async fn follow(cluster: Cluster, stores: Stores, new: New) {
    loop {
        let version = cluster.resource_version();
        bring(&cluster, &stores, &new);
        cluster.written_after(version).await;
        tokio::time::sleep(GATHERED).await;
    }
}

/// A factory of stores. Clones share it.
#[derive(Clone)]
pub(super) struct New {
    /// Creates a store for a region.
    make: Arc<dyn Fn(&str) -> Store + Send + Sync>,
    /// The data directory to save them in, if any.
    data: Option<Data>,
    /// Locked for a change of stores or clock, and while the whole state is read: a snapshot must
    /// not contain a change without an earlier one.
    still: Arc<Mutex<()>>,
}

impl New {
    /// Creates a factory with this function and this data directory.
    pub(super) fn by(make: Arc<dyn Fn(&str) -> Store + Send + Sync>, data: Option<Data>) -> Self {
        Self { make, data, still: Arc::default() }
    }

    /// Locks the set of stores and the clock. Until the guard is dropped, no store is added, the
    /// clock is not set, and no snapshot is taken.
    pub(super) fn still(&self) -> MutexGuard<'_, ()> {
        self.still.lock()
    }

    /// Creates a store for this name, without adding it.
    pub(super) fn store(&self, name: &str, region: &str) -> Store {
        let store = (self.make)(region);
        if let Some(data) = &self.data {
            data.keep_store(name, &store);
        }
        store
    }

    /// Saves that a store of this name exists. The caller has to add it before it releases the
    /// lock.
    pub(super) fn keep(&self, name: &str, store: &Store) {
        if let Some(data) = &self.data {
            data.add_store(name, &store.dialect().region);
        }
    }

    /// Returns the store with this name; adds a new one if there is room.
    fn among(&self, stores: &Stores, name: &str, region: &str) -> Option<Store> {
        let _still = self.still();
        // Another task may have added it meanwhile.
        stores.get(name).or_else(|| {
            let room = stores.all().len() < MOST;
            let store = room.then(|| self.store(name, region))?;
            self.keep(name, &store);
            stores.add(name.to_owned(), store.clone());
            Some(store)
        })
    }
}

/// Creates the missing stores of the current backends.
pub(super) fn bring(cluster: &Cluster, stores: &Stores, new: &New) {
    for backend in backends(cluster) {
        add(stores, &backend, new);
    }
}

/// Returns the stores of the backends in a cluster, without malformed ones.
fn backends(cluster: &Cluster) -> Vec<BackendStore> {
    let listed = cluster.list(&resource::<S3Backend>(&()), "").unwrap_or_default();
    let store = |backend: S3Backend| {
        let reference = &backend.spec.admin_credentials_secret_ref;
        let secret = cluster.get(&resource::<Secret>(&()), &reference.namespace, &reference.name).ok();
        BackendStore::of(&backend, secret.as_ref().and_then(typed).as_ref())
    };
    listed.iter().filter_map(typed).filter_map(store).collect()
}

/// Creates the store of a backend if it doesn't exist, and makes it accept the backend's keys. All
/// keys belong to one account: a simulator has no other parties to protect from.
fn add(stores: &Stores, backend: &BackendStore, new: &New) {
    let host = authority(backend.endpoint.as_str());
    let store = stores.get(&host).or_else(|| new.among(stores, &host, &backend.region));
    match (store, &backend.keys) {
        (Some(store), Some((id, secret))) => store.add_account(ADMIN_ACCOUNT, id, secret),
        (Some(_), None) => {}
        (None, _) => tracing::warn!(backend = backend.name, "there are {MOST} stores already, this one isn't made"),
    }
}

fn resource<K: Resource>(dynamic: &K::DynamicType) -> GroupVersionResource {
    GroupVersionResource::gvr(&K::group(dynamic), &K::version(dynamic), &K::plural(dynamic))
}

fn typed<T: DeserializeOwned>(object: &Arc<Value>) -> Option<T> {
    T::deserialize(object.as_ref()).ok()
}

#[cfg(test)]
mod tests {
    use s3_sim::Dialect;
    use serde_json::json;
    use stowage_world::definitions;

    use super::*;
    use crate::up::clock::Clock;

    fn backend(endpoint: &str) -> Value {
        json!({"spec": {
            "endpoint": endpoint, "adminCredentialsSecretRef": {"name": "admin", "namespace": "default"},
        }})
    }

    #[tokio::test(start_paused = true)]
    async fn an_applied_backend_has_a_store_which_its_keys_open_whenever_they_come() {
        let (clock, stores) = (Clock::default().clock(), Stores::new([]));
        let timed = clock.clone();
        let make =
            move |region: &str| Store::new(timed.clone(), Dialect { region: region.to_owned(), ..Dialect::default() });
        let new = New::by(Arc::new(make), None);
        let cluster = Cluster::new(clock, 1);
        definitions().iter().for_each(|definition| cluster.serve(definition).expect("it is valid"));
        let follows = tokio::spawn(follow(cluster.clone(), stores.clone(), new));
        let put = |name: &str, endpoint: &str| {
            cluster.put(&resource::<S3Backend>(&()), "", name, backend(endpoint)).expect("it is valid");
        };
        put("one", "http://one.example:9000");
        put("alias", "http://one.example:9000/");
        tokio::time::sleep(GATHERED * 3).await;
        let store = stores.get("one.example:9000").expect("it is there");
        assert_eq!(stores.all().len(), 1);
        assert!(!store.revoke_key("id"), "it knows no key yet");
        let secret = json!({"stringData": {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"}});
        cluster.put(&resource::<Secret>(&()), "default", "admin", secret).expect("it is valid");
        tokio::time::sleep(GATHERED * 3).await;
        assert!(store.revoke_key("id"), "it knows the key");
        follows.abort();
    }
}
