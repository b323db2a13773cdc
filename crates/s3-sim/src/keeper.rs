//! Keepers of a store beyond the process: they hold the bytes of objects, and are told of every
//! change of all else.
//!
//! A store without a keeper has everything in memory and pays nothing for this.

use std::io;
use std::sync::Arc;

use futures::future::BoxFuture;

/// A place in a store, and what stands there from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Begins with the bytes of the place that it is within, if it is within one.
    pub place: Vec<u8>,
    /// A document that [`Store::restore`](super::Store::restore) reads, in the order of places.
    /// Absent where nothing stands there any more, nor within it.
    pub document: Option<Vec<u8>>,
}

/// Keeps what a store holds.
pub trait Keeper: Send + Sync {
    /// The store is changed so, by all of these or none. Told in order and while it happens, so it
    /// has to be quick and must not call the store.
    fn keep(&self, changes: Vec<Entry>);

    /// Comes to an end once everything that was told so far outlives the process.
    fn kept(&self) -> BoxFuture<'static, ()>;

    /// Begins a blob.
    ///
    /// # Errors
    /// When there is no room for it.
    fn begin(&self) -> io::Result<Box<dyn BlobWriter>>;

    /// Opens a blob, which can be read from then on, also once it was let go.
    ///
    /// # Errors
    /// When it isn't there.
    fn open(&self, id: u64) -> io::Result<Arc<dyn BlobReader>>;

    /// These blobs can go once the changes so far outlive the process.
    fn forget(&self, blobs: Vec<u64>);
}

/// A blob that is being written. One that is dropped before it is finished leaves nothing.
pub trait BlobWriter: Send {
    /// Adds bytes.
    ///
    /// # Errors
    /// When there is no room for them.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Ends it: from now on it outlives the process. May take a while. Returns its id, which no
    /// other blob of this keeper ever has.
    ///
    /// # Errors
    /// When it can't be written.
    fn finish(self: Box<Self>) -> io::Result<u64>;
}

/// A blob that is read.
pub trait BlobReader: Send + Sync {
    /// Fills the buffer from this place on.
    ///
    /// # Errors
    /// When there aren't so many bytes.
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<()>;
}
