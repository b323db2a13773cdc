//! The cached cluster state: keys, public access, bucket records and stores.
//!
//! [`Tables`] are pure: events go in, queries are answered. [`Registry`] shares them between
//! requests, and follows the API server. Nothing is written to the API server, and results of live
//! reads never enter the tables, because they may be older than what a watch has delivered.
//!
//! - A Secret is used as a whole or not at all, and a new list replaces the old state once it is
//!   complete.
//! - A key opens a bucket at one store: the one in the record, not any store that an S3Backend of
//!   that name may point to.
//! - A key of an access opens what all agree on: the key, its access, and the owner of the bucket.
//! - An object that the gateway does not know yet counts as unavailable, never as open.

mod backend;
mod follow;
mod freshness;
mod grants;
mod internal;
mod life;
mod limited;
mod live;
mod namespaces;
mod stores;
mod table;
mod tables;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::runtime::watcher::Event;
use parking_lot::{Mutex, RwLock};
use stowage_api::ServedBinding;
use tokio::time::Instant;

pub use backend::{Access, Backend, Failure, SecretName, Setting, Unusable};
pub use follow::Source;
pub use freshness::{Freshness, Sign, Watch};
pub use grants::Granted;
pub use internal::{Counts, Holder, Key};
pub use limited::Limited;
pub use live::Live;
pub use stores::SeenBackend;
pub(crate) use table::{Listed, Table};
pub use tables::{Tables, Unreachable};

/// A handle to the cached state. Clones share it.
#[derive(Clone)]
pub struct Registry(Arc<Shared>);

struct Shared {
    tables: RwLock<Tables>,
    /// Number of events applied so far.
    told: AtomicU64,
    freshness: Mutex<Freshness>,
}

impl Registry {
    /// Creates an empty registry. [`Registry::follow`] has to be driven to fill it.
    #[must_use]
    pub fn new(setting: Setting) -> Self {
        let shared = Shared {
            tables: RwLock::new(Tables::new(setting)),
            told: AtomicU64::default(),
            freshness: Mutex::default(),
        };
        Self(Arc::new(shared))
    }

    /// Runs queries on one consistent state. Blocks updates meanwhile, so it has to be quick.
    pub fn ask<T>(&self, questions: impl FnOnce(&Tables) -> T) -> T {
        questions(&self.0.tables.read())
    }

    /// Returns the number of events applied so far. While it is unchanged, queries return the same
    /// results.
    #[must_use]
    pub fn told(&self) -> u64 {
        self.0.told.load(Ordering::Acquire)
    }

    fn tell(&self, news: impl FnOnce(&mut Tables)) {
        news(&mut self.0.tables.write());
        self.0.told.fetch_add(1, Ordering::Release);
    }

    /// Returns the key of an access key id; see [`Tables::key`].
    #[must_use]
    pub fn key(&self, id: &str) -> Option<Arc<Key>> {
        self.ask(|tables| tables.key(id).cloned())
    }

    /// Returns the binding that makes a bucket public; see [`Tables::binding`].
    #[must_use]
    pub fn binding(&self, bucket: &str) -> Option<Arc<ServedBinding>> {
        self.ask(|tables| tables.binding(bucket).cloned())
    }

    /// Returns the store of a backend; see [`Tables::backend`].
    #[must_use]
    pub fn backend(&self, name: &str) -> Option<Arc<Backend>> {
        self.ask(|tables| tables.backend(name).cloned())
    }

    /// Returns true once the state has been complete; see [`Tables::is_ready`].
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ask(Tables::is_ready)
    }

    /// Returns the age of the state, or `None` if there is none yet. See [`Freshness::age`].
    #[must_use]
    pub fn age(&self, now: Instant) -> Option<Duration> {
        self.0.freshness.lock().age(now)
    }

    /// Returns the age of each watch's data; see [`Freshness::ages`].
    #[must_use]
    pub fn ages(&self, now: Instant) -> Vec<(Watch, Option<Duration>)> {
        self.0.freshness.lock().ages(now)
    }

    /// Applies an event of the watch of internal Secrets.
    pub fn apply(&self, event: Event<Secret>) {
        self.tell(|tables| tables.apply(event));
    }

    /// Applies an event of the watch of S3Backends.
    pub fn apply_backend(&self, event: Event<SeenBackend>) {
        self.tell(|tables| tables.apply_backend(event));
    }

    /// Applies an event of the watch of a Secret referenced by a backend.
    pub fn apply_store_secret(&self, name: &SecretName, event: Event<Secret>) {
        self.tell(|tables| tables.apply_store_secret(name, event));
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.ask(Tables::counts);
        f.debug_struct("Registry").field("counts", &counts).field("is_ready", &self.is_ready()).finish_non_exhaustive()
    }
}
