//! What the gateway knows of the cluster: keys, public access, who holds which bucket, and stores.
//!
//! [`Tables`] are pure: they are told of events, and asked. [`Registry`] is a handle to them for
//! every request, and follows the API server. Nothing here is written, and nothing of a live read
//! gets in: its answer may be older than what a watch has told.
//!
//! - A Secret counts whole or not at all, and a list takes the place of what was known when it is
//!   whole.
//! - A key opens a bucket at one store: where the record had it, not where an S3Backend of that
//!   name happens to be.
//! - A key of an access opens what all agree on: the key, its access, and whose bucket it is.
//! - What is not known is unavailable, and never open.

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

/// A handle to what is known. Clones are handles to the same.
#[derive(Clone)]
pub struct Registry(Arc<Shared>);

struct Shared {
    tables: RwLock<Tables>,
    /// How often they were told something.
    told: AtomicU64,
    freshness: Mutex<Freshness>,
}

impl Registry {
    /// Nothing is known yet: [`Registry::follow`] has to be driven.
    #[must_use]
    pub fn new(setting: Setting) -> Self {
        let shared = Shared {
            tables: RwLock::new(Tables::new(setting)),
            told: AtomicU64::default(),
            freshness: Mutex::default(),
        };
        Self(Arc::new(shared))
    }

    /// Asks several questions of one view. Nothing is told to it meanwhile, so it has to be quick.
    pub fn ask<T>(&self, questions: impl FnOnce(&Tables) -> T) -> T {
        questions(&self.0.tables.read())
    }

    /// How often something was told. Answers of the tables don't change as long as this is the same
    /// as before they were asked.
    #[must_use]
    pub fn told(&self) -> u64 {
        self.0.told.load(Ordering::Acquire)
    }

    fn tell(&self, news: impl FnOnce(&mut Tables)) {
        news(&mut self.0.tables.write());
        self.0.told.fetch_add(1, Ordering::Release);
    }

    /// The key of an access key id; see [`Tables::key`].
    #[must_use]
    pub fn key(&self, id: &str) -> Option<Arc<Key>> {
        self.ask(|tables| tables.key(id).cloned())
    }

    /// Who opens a bucket to everybody; see [`Tables::binding`].
    #[must_use]
    pub fn binding(&self, bucket: &str) -> Option<Arc<ServedBinding>> {
        self.ask(|tables| tables.binding(bucket).cloned())
    }

    /// The store of a backend; see [`Tables::backend`].
    #[must_use]
    pub fn backend(&self, name: &str) -> Option<Arc<Backend>> {
        self.ask(|tables| tables.backend(name).cloned())
    }

    /// Whether all of it was known once; see [`Tables::is_ready`].
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ask(Tables::is_ready)
    }

    /// How old the view is; `None` = there is none yet. See [`Freshness::age`].
    #[must_use]
    pub fn age(&self, now: Instant) -> Option<Duration> {
        self.0.freshness.lock().age(now)
    }

    /// How old what each watch has told is; see [`Freshness::ages`].
    #[must_use]
    pub fn ages(&self, now: Instant) -> Vec<(Watch, Option<Duration>)> {
        self.0.freshness.lock().ages(now)
    }

    /// Takes in what the watch of internal Secrets tells.
    pub fn apply(&self, event: Event<Secret>) {
        self.tell(|tables| tables.apply(event));
    }

    /// Takes in what the watch of S3Backends tells.
    pub fn apply_backend(&self, event: Event<SeenBackend>) {
        self.tell(|tables| tables.apply_backend(event));
    }

    /// Takes in what the watch of a Secret tells that a backend names.
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
