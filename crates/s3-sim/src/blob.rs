//! Blobs in a keeper, and the references of a store to them.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::keeper::{BlobReader, Keeper};

/// A blob in a keeper. The keeper can delete it once this value is dropped.
pub(super) struct Blob {
    pub(super) id: u64,
    home: Arc<Home>,
}

impl Blob {
    /// Opens the blob, see [`Keeper::open`].
    pub(super) fn open(&self) -> io::Result<Arc<dyn BlobReader>> {
        self.home.keeper.open(self.id)
    }
}

impl Drop for Blob {
    fn drop(&mut self) {
        self.home.dropped(self.id);
    }
}

/// The blobs of a store.
pub(super) struct Home {
    pub(super) keeper: Arc<dyn Keeper>,
    /// Blobs without references that have not been reported to the keeper yet.
    dropped: Mutex<Vec<u64>>,
    /// Blobs with references, by number.
    known: Mutex<BTreeMap<u64, Weak<Blob>>>,
}

impl Home {
    pub(super) fn new(keeper: Arc<dyn Keeper>) -> Self {
        Self { keeper, dropped: Mutex::default(), known: Mutex::default() }
    }

    /// Returns the blob with this number. All references share one value: the blob is kept until
    /// the last of them is dropped.
    pub(super) fn blob(self: &Arc<Self>, id: u64) -> Arc<Blob> {
        let mut known = self.known.lock();
        if let Some(blob) = known.get(&id).and_then(Weak::upgrade) {
            return blob;
        }
        let blob = Arc::new(Blob { id, home: self.clone() });
        known.insert(id, Arc::downgrade(&blob));
        blob
    }

    /// Records that a blob has no more references.
    fn dropped(&self, blob: u64) {
        let mut known = self.known.lock();
        if known.get(&blob).is_some_and(|known| known.strong_count() == 0) {
            known.remove(&blob);
        }
        drop(known);
        self.dropped.lock().push(blob);
    }

    /// Reports blobs without references to the keeper. Must be called with the store locked, after
    /// the keeper has received the change that dropped the references.
    pub(super) fn sweep(&self) {
        let dropped = std::mem::take(&mut *self.dropped.lock());
        if !dropped.is_empty() {
            self.keeper.forget(dropped);
        }
    }
}
