//! The stores behind the backends of a running simulator: who applies an S3Backend has a store at
//! its endpoint, which the keys of its Secret open.

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

/// How long changes are gathered.
const GATHERED: Duration = Duration::from_millis(20);

/// Most stores that there are: an endpoint that is edited for ever makes no more.
const MOST: usize = 256;

/// Keeps the network as the backends have it, for ever. Stores stay when their backends go, as
/// real ones do.
pub(super) async fn follow(cluster: Cluster, stores: Stores, new: New) {
    loop {
        let version = cluster.resource_version();
        bring(&cluster, &stores, &new);
        cluster.written_after(version).await;
        tokio::time::sleep(GATHERED).await;
    }
}

/// How stores are made. Clones are the same.
#[derive(Clone)]
pub(super) struct New {
    /// Makes one for a region.
    make: Arc<dyn Fn(&str) -> Store + Send + Sync>,
    /// Where they are kept, if they are.
    data: Option<Data>,
    /// Taken by a change of stores or clock, and while everything is read: a snapshot must not have
    /// one change without another that came before it.
    still: Arc<Mutex<()>>,
}

impl New {
    /// This makes them, and there they are kept.
    pub(super) fn by(make: Arc<dyn Fn(&str) -> Store + Send + Sync>, data: Option<Data>) -> Self {
        Self { make, data, still: Arc::default() }
    }

    /// Until it is dropped, no store is added, nobody sets the clock, and nobody takes down all.
    pub(super) fn still(&self) -> MutexGuard<'_, ()> {
        self.still.lock()
    }

    /// Makes a store for this name, of which nobody knows yet.
    pub(super) fn store(&self, name: &str, region: &str) -> Store {
        let store = (self.make)(region);
        if let Some(data) = &self.data {
            data.keep_store(name, &store);
        }
        store
    }

    /// Keeps that the store of this name is there. Whoever says so adds it before others may go on.
    pub(super) fn keep(&self, name: &str, store: &Store) {
        if let Some(data) = &self.data {
            data.add_store(name, &store.dialect().region);
        }
    }

    /// The store of this name among these, added to them if there is room for one more.
    fn among(&self, stores: &Stores, name: &str, region: &str) -> Option<Store> {
        let _still = self.still();
        // Somebody may have been faster.
        stores.get(name).or_else(|| {
            let room = stores.all().len() < MOST;
            let store = room.then(|| self.store(name, region))?;
            self.keep(name, &store);
            stores.add(name.to_owned(), store.clone());
            Some(store)
        })
    }
}

/// Makes the network what the backends say now.
pub(super) fn bring(cluster: &Cluster, stores: &Stores, new: &New) {
    for backend in backends(cluster) {
        add(stores, &backend, new);
    }
}

/// The stores that the backends in a cluster speak of, as far as they are well-formed.
fn backends(cluster: &Cluster) -> Vec<BackendStore> {
    let listed = cluster.list(&resource::<S3Backend>(&()), "").unwrap_or_default();
    let store = |backend: S3Backend| {
        let reference = &backend.spec.admin_credentials_secret_ref;
        let secret = cluster.get(&resource::<Secret>(&()), &reference.namespace, &reference.name).ok();
        BackendStore::of(&backend, secret.as_ref().and_then(typed).as_ref())
    };
    listed.iter().filter_map(typed).filter_map(store).collect()
}

/// Makes the store of a backend, unless it is there, and has it accept the backend's keys. All keys
/// are one account's: in a simulator nobody is a stranger.
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
