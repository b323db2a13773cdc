//! Blobs of a keeper, and which of them a store refers to.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::keeper::{BlobReader, Keeper};

/// A blob that is kept; when nothing refers to it any more it can go.
pub(super) struct Blob {
    pub(super) id: u64,
    home: Arc<Home>,
}

impl Blob {
    /// Opens it, see [`Keeper::open`].
    pub(super) fn open(&self) -> io::Result<Arc<dyn BlobReader>> {
        self.home.keeper.open(self.id)
    }
}

impl Drop for Blob {
    fn drop(&mut self) {
        self.home.dropped(self.id);
    }
}

/// Where the blobs of one store are.
pub(super) struct Home {
    pub(super) keeper: Arc<dyn Keeper>,
    /// Blobs that nothing refers to any more, and that the keeper wasn't told of.
    dropped: Mutex<Vec<u64>>,
    /// Those that something refers to, by number.
    known: Mutex<BTreeMap<u64, Weak<Blob>>>,
}

impl Home {
    pub(super) fn new(keeper: Arc<dyn Keeper>) -> Self {
        Self { keeper, dropped: Mutex::default(), known: Mutex::default() }
    }

    /// The blob of this number: one for all who refer to it, so that it stays until the last of
    /// them lets go of it.
    pub(super) fn blob(self: &Arc<Self>, id: u64) -> Arc<Blob> {
        let mut known = self.known.lock();
        if let Some(blob) = known.get(&id).and_then(Weak::upgrade) {
            return blob;
        }
        let blob = Arc::new(Blob { id, home: self.clone() });
        known.insert(id, Arc::downgrade(&blob));
        blob
    }

    /// Nothing refers to a blob any more.
    fn dropped(&self, blob: u64) {
        let mut known = self.known.lock();
        if known.get(&blob).is_some_and(|known| known.strong_count() == 0) {
            known.remove(&blob);
        }
        drop(known);
        self.dropped.lock().push(blob);
    }

    /// Lets blobs go that nothing refers to. Called under the store's lock, after the change that
    /// has let go of them was kept.
    pub(super) fn sweep(&self) {
        let dropped = std::mem::take(&mut *self.dropped.lock());
        if !dropped.is_empty() {
            self.keeper.forget(dropped);
        }
    }
}
