//! A store shared by requests, watches and controller steps, each of which locks it.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::observer::Author;
use super::observers::Observers;
use super::store::Store;

/// A store behind a lock, and the listeners for its changes. Clones refer to the same store.
#[derive(Clone)]
pub(crate) struct SharedStore {
    store: Arc<Mutex<Store>>,
    observers: Arc<Observers>,
}

impl SharedStore {
    /// Shares a store, without listeners yet.
    pub(crate) fn new(mut store: Store) -> Self {
        let observers: Arc<Observers> = Arc::default();
        store.log = Some(observers.clone());
        Self { store: Arc::new(Mutex::new(store)), observers }
    }

    /// Returns the listeners for changes.
    pub(crate) fn observers(&self) -> &Observers {
        &self.observers
    }

    /// Locks the store for changes by the cluster itself.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Store> {
        self.lock_for(None)
    }

    /// Locks the store for changes by this author.
    pub(crate) fn lock_for(&self, author: Option<Author>) -> MutexGuard<'_, Store> {
        // A panic under the lock is a bug in this crate. The store is used nevertheless.
        let mut store = self.store.lock();
        store.author = author;
        store
    }
}
