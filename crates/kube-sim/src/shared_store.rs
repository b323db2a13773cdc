//! A store that requests, watches and steps share: each takes it for itself, one after the other.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::observer::Author;
use super::observers::Observers;
use super::store::Store;

/// A store under its lock, and who hears of its changes. Clones are the same store.
#[derive(Clone)]
pub(crate) struct SharedStore {
    store: Arc<Mutex<Store>>,
    observers: Arc<Observers>,
}

impl SharedStore {
    /// Shares a store, of which nobody hears yet.
    pub(crate) fn new(mut store: Store) -> Self {
        let observers: Arc<Observers> = Arc::default();
        store.log = Some(observers.clone());
        Self { store: Arc::new(Mutex::new(store)), observers }
    }

    /// Who hears of its changes.
    pub(crate) fn observers(&self) -> &Observers {
        &self.observers
    }

    /// The store, to be changed by the cluster itself.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Store> {
        self.lock_for(None)
    }

    /// The store, to be changed in the name of this author.
    pub(crate) fn lock_for(&self, author: Option<Author>) -> MutexGuard<'_, Store> {
        // A panic under the lock is a bug in this crate; the store is still the best there is.
        let mut store = self.store.lock();
        store.author = author;
        store
    }
}
