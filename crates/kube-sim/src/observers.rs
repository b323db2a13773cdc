//! The observer and the keeper of a cluster, which are notified of its changes.

use std::sync::Arc;

use parking_lot::Mutex;

use super::change_log::{ChangeLog, Entry};
use super::keeper::{Keeper, Kept};
use super::observer::{Observer, Stored};
use super::store::Shared;

/// The listeners of a cluster: at most one of each kind.
#[derive(Default)]
pub(crate) struct Observers {
    observer: Mutex<Option<Arc<dyn Observer>>>,
    keeper: Mutex<Option<Arc<dyn Keeper>>>,
}

impl Observers {
    /// Sets the observer.
    pub(crate) fn observe(&self, observer: Arc<dyn Observer>) {
        *self.observer.lock() = Some(observer);
    }

    /// Returns the observer.
    pub(crate) fn observer(&self) -> Option<Arc<dyn Observer>> {
        self.observer.lock().clone()
    }

    /// Sets the keeper.
    pub(crate) fn keep(&self, keeper: Arc<dyn Keeper>) {
        *self.keeper.lock() = Some(keeper);
    }

    fn keeper(&self) -> Option<Arc<dyn Keeper>> {
        self.keeper.lock().clone()
    }
}

impl ChangeLog for Observers {
    fn changed(&self, entry: &Entry<'_>) {
        let Entry { kind, place, version, old, new, completed_on_read, author, is_write } = *entry;
        if let Some(keeper) = self.keeper() {
            // Events have two API groups. This is the one in which they are stored.
            let (group, plural) = kind.key();
            keeper.keep(Kept {
                group: group.to_owned(),
                plural: plural.to_owned(),
                namespace: place.namespace.clone(),
                name: place.name.clone(),
                version,
                object: new.map(|object| object.json().clone()),
                completed_on_read,
            });
        }
        if let Some(observer) = self.observer().filter(|_| is_write) {
            let [old, new] = [old, new].map(|object| object.map(Shared::tree));
            let (namespace, name) = (place.namespace.clone(), place.name.clone());
            observer.stored(author, Stored { plural: kind.plural.clone(), namespace, name, old, new });
        }
    }

    fn cleared(&self) {
        if let Some(keeper) = self.keeper() {
            keeper.cleared();
        }
    }
}
