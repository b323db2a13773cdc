//! How cluster and stores tell the journal of changes.

use std::io;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube_sim::Kept;
use s3_sim::{BlobReader, BlobWriter};

use super::blobs::Blobs;
use super::journal::Journal;
use super::record::Record;

/// Keeps the cluster.
pub(super) struct ClusterKeeper(pub(super) Journal);

impl kube_sim::Keeper for ClusterKeeper {
    fn keep(&self, kept: Kept) {
        self.0.add(&Record::Object(kept));
    }

    fn cleared(&self) {
        self.0.add(&Record::Nothing);
    }
}

/// Keeps one store.
pub(super) struct StoreKeeper {
    pub(super) name: String,
    pub(super) journal: Journal,
    pub(super) blobs: Blobs,
}

impl s3_sim::Keeper for StoreKeeper {
    fn keep(&self, document: Vec<u8>) {
        self.journal.add(&Record::Change { store: self.name.clone(), document });
    }

    fn kept(&self) -> BoxFuture<'static, ()> {
        self.journal.settled().boxed()
    }

    fn begin(&self) -> io::Result<Box<dyn BlobWriter>> {
        Ok(Box::new(self.blobs.begin()?))
    }

    fn open(&self, id: u64) -> io::Result<Arc<dyn BlobReader>> {
        Ok(Arc::new(self.blobs.read(id)?))
    }

    fn forget(&self, blobs: Vec<u64>) {
        self.journal.forget(&blobs);
    }
}
