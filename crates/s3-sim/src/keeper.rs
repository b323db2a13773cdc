//! Persistence of a store: a keeper stores the bytes of objects, and is notified of every other
//! change.
//!
//! A store without a keeper is in memory, and has no cost for this.

use std::io;
use std::sync::Arc;

use futures::future::BoxFuture;

/// A place in a store, and its new content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Key of the place. If the place is inside another, its key begins with the other's.
    pub place: Vec<u8>,
    /// Document for [`Store::restore`](super::Store::restore), which reads documents in the order
    /// of places. `None` if the place and everything in it was removed.
    pub document: Option<Vec<u8>>,
}

/// A persistent storage for the content of a store.
pub trait Keeper: Send + Sync {
    /// Stores these changes atomically. Called in order while each change happens, so it must be
    /// quick and must not call the store.
    fn keep(&self, changes: Vec<Entry>);

    /// Completes once every change reported so far is persistent.
    fn kept(&self) -> BoxFuture<'static, ()>;

    /// Starts a blob.
    ///
    /// # Errors
    /// Returns an error if there is no space for it.
    fn begin(&self) -> io::Result<Box<dyn BlobWriter>>;

    /// Opens a blob. It can be read from then on, even after it was forgotten.
    ///
    /// # Errors
    /// Returns an error if the blob does not exist.
    fn open(&self, id: u64) -> io::Result<Arc<dyn BlobReader>>;

    /// Allows these blobs to be deleted once the changes reported so far are persistent.
    fn forget(&self, blobs: Vec<u64>);
}

/// A blob being written. If it is dropped before it is finished, nothing remains.
pub trait BlobWriter: Send {
    /// Appends bytes.
    ///
    /// # Errors
    /// Returns an error if there is no space for them.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Completes the blob and makes it persistent, which may take a while. Returns its id, which
    /// this keeper never uses for another blob.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    fn finish(self: Box<Self>) -> io::Result<u64>;
}

/// A blob being read.
pub trait BlobReader: Send + Sync {
    /// Fills the buffer with the bytes from `at` on.
    ///
    /// # Errors
    /// Returns an error if there are not enough bytes.
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<()>;
}
