//! Keepers of the cluster and of the stores, which queue their changes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use kube_sim::Kept;
use s3_sim::{BlobReader, BlobWriter, Entry};

use super::blobs::Blobs;
use super::changes::Changes;
use super::record::{self, Record};

/// Saves the changes of the cluster.
pub(super) struct ClusterKeeper {
    pub(super) changes: Changes,
    /// The highest version so far, including those of deleted objects.
    pub(super) version: AtomicU64,
}

impl kube_sim::Keeper for ClusterKeeper {
    fn keep(&self, kept: Kept) {
        let version = self.version.fetch_max(kept.version, Ordering::Relaxed).max(kept.version);
        let row = if kept.object.is_some() { Record::Object(kept).row() } else { record::gone(&kept) };
        self.changes.add([row, Record::Version(version).row()]);
    }

    fn cleared(&self) {
        self.changes.add(record::nothing());
    }
}

/// Saves the changes of one store.
pub(super) struct StoreKeeper {
    pub(super) name: String,
    pub(super) changes: Changes,
    pub(super) blobs: Blobs,
}

impl s3_sim::Keeper for StoreKeeper {
    fn keep(&self, changes: Vec<Entry>) {
        self.changes.add(changes.into_iter().map(|entry| record::of_store(&self.name, entry)));
    }

    fn kept(&self) -> BoxFuture<'static, ()> {
        self.changes.settled().boxed()
    }

    fn begin(&self) -> io::Result<Box<dyn BlobWriter>> {
        Ok(Box::new(self.blobs.begin()?))
    }

    fn open(&self, id: u64) -> io::Result<Arc<dyn BlobReader>> {
        Ok(Arc::new(self.blobs.read(id)?))
    }

    fn forget(&self, blobs: Vec<u64>) {
        self.changes.forget(&blobs);
    }
}
