//! Keeping a store beyond the process: whoever keeps it holds the bytes of objects, and is told of
//! every change of all else.
//!
//! A store without a keeper has everything in memory and pays nothing for this.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Weak};

use futures::StreamExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use s3s::dto::StreamingBlob;
use s3s::{S3ErrorCode, S3Result};

use super::Store;
use super::data::{Blob, Data, Piece, unreadable};
use super::errors::refuse;
use super::record::document;
use super::state::State;
use super::touched::Before;

/// Keeps what a store holds.
pub trait Keeper: Send + Sync {
    /// The store is changed so: a document that [`Store::restore`] reads. Told in order and while
    /// it happens, so it has to be quick and must not call the store.
    fn keep(&self, change: Vec<u8>);

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

/// Where the blobs of one store are.
pub(super) struct Home {
    pub(super) keeper: Arc<dyn Keeper>,
    /// Blobs that nothing refers to any more, and that the keeper wasn't told of.
    dropped: Mutex<Vec<u64>>,
    /// Those that something refers to, by number.
    known: Mutex<BTreeMap<u64, Weak<Blob>>>,
}

impl Home {
    fn new(keeper: Arc<dyn Keeper>) -> Self {
        Self { keeper, dropped: Mutex::default(), known: Mutex::default() }
    }

    /// The blob of this number: one for all who refer to it, so that it stays until the last of
    /// them lets go of it.
    pub(super) fn blob(self: &Arc<Self>, id: u64) -> Arc<Blob> {
        let mut known = self.known.lock();
        if let Some(blob) = known.get(&id).and_then(Weak::upgrade) {
            return blob;
        }
        let blob = Arc::new(Blob::new(id, self.clone()));
        known.insert(id, Arc::downgrade(&blob));
        blob
    }

    /// Nothing refers to a blob any more.
    pub(super) fn dropped(&self, blob: u64) {
        let mut known = self.known.lock();
        if known.get(&blob).is_some_and(|known| known.strong_count() == 0) {
            known.remove(&blob);
        }
        drop(known);
        self.dropped.lock().push(blob);
    }

    pub(super) fn take_dropped(&self) -> Vec<u64> {
        std::mem::take(&mut *self.dropped.lock())
    }

    pub(super) fn set_dropped(&self, blobs: Vec<u64>) {
        *self.dropped.lock() = blobs;
    }

    /// Lets blobs go that nothing refers to. Called under the store's lock, after the change that
    /// has let go of them was kept.
    pub(super) fn sweep(&self) {
        let dropped = self.take_dropped();
        if !dropped.is_empty() {
            self.keeper.forget(dropped);
        }
    }

    /// Receives a body into a blob.
    ///
    /// # Errors
    /// `IncompleteBody` where it breaks off; `InternalError` where it can't be kept.
    pub(super) async fn receive(self: &Arc<Self>, body: Option<StreamingBlob>) -> S3Result<Data> {
        let (mut writer, mut length) = (None, 0);
        let mut body = body;
        while let Some(chunk) = match &mut body {
            Some(body) => body.next().await,
            None => None,
        } {
            let chunk = chunk.map_err(|source| {
                let mut error = refuse(S3ErrorCode::IncompleteBody);
                error.set_source(source);
                error
            })?;
            if chunk.is_empty() {
                continue;
            }
            if writer.is_none() {
                writer = Some(self.keeper.begin().map_err(unreadable)?);
            }
            if let Some(writer) = &mut writer {
                writer.write(&chunk).map_err(unreadable)?;
            }
            length += chunk.len() as u64;
        }
        let Some(writer) = writer else { return Ok(Data::Kept(Vec::new())) };
        let finished = tokio::task::spawn_blocking(move || writer.finish()).await;
        let id = finished.map_err(io::Error::other).and_then(|id| id).map_err(unreadable)?;
        Ok(self.whole(id, length))
    }

    /// Keeps bytes that are there already.
    ///
    /// # Errors
    /// When there is no room for them.
    pub(super) fn store(self: &Arc<Self>, bytes: &[u8]) -> io::Result<Data> {
        if bytes.is_empty() {
            return Ok(Data::Kept(Vec::new()));
        }
        let mut writer = self.keeper.begin()?;
        writer.write(bytes)?;
        Ok(self.whole(writer.finish()?, bytes.len() as u64))
    }

    fn whole(self: &Arc<Self>, id: u64, length: u64) -> Data {
        Data::Kept(vec![Piece { blob: self.blob(id), from: 0, length }])
    }
}

impl Store {
    /// From now on this keeper keeps what the store holds. Has to be said before it holds anything;
    /// a keeper that is there stays.
    pub fn keep_with(&self, keeper: Arc<dyn Keeper>) {
        let _ = self.shared.home.set(Arc::new(Home::new(keeper)));
    }

    /// Tells the keeper, if there is one, what has become of places that were looked at before.
    pub(super) fn tell(&self, state: &State, before: Option<Before>) {
        let (Some(home), Some(before)) = (self.home(), before) else { return };
        let changes = before.changes(state);
        if !changes.is_empty() {
            home.keeper.keep(document(state.sequence(), changes));
        }
        home.sweep();
    }

    /// Where blobs are kept, if they are.
    pub(super) fn home(&self) -> Option<&Arc<Home>> {
        self.shared.home.get()
    }
}
