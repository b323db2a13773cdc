//! The observer and the keeper of a cluster, who hear of its changes.

use std::sync::Arc;

use parking_lot::Mutex;

use super::change_log::{ChangeLog, Entry};
use super::keeper::{Keeper, Kept};
use super::observer::{Observer, Stored};
use super::store::Shared;

/// Those who hear of the changes of a cluster: of each sort one, or nobody.
#[derive(Default)]
pub(crate) struct Observers {
    observer: Mutex<Option<Arc<dyn Observer>>>,
    keeper: Mutex<Option<Arc<dyn Keeper>>>,
}

impl Observers {
    /// Sets who hears of every request and every write.
    pub(crate) fn observe(&self, observer: Arc<dyn Observer>) {
        *self.observer.lock() = Some(observer);
    }

    /// Who hears of every request and every write.
    pub(crate) fn observer(&self) -> Option<Arc<dyn Observer>> {
        self.observer.lock().clone()
    }

    /// Sets who keeps what the cluster holds.
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
            // Of two faces that objects have, the one by which they are stored.
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
