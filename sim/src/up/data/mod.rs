//! What outlives the process, of a simulator that is given a directory for it: the cluster, the
//! stores, tokens, and by how far the clock was moved.
//!
//! Every change is a record in one journal, in the order in which it happened; so whatever of it is
//! read back is a state that there was. Nobody is answered before what they are told is safe there:
//! answers are held back for it, those to reads and the events of watches too ([`held`]), but for
//! those that stay in the process. When the journal has become long, everything is written to a
//! snapshot, and a new journal goes on from there.
//!
//! - `frame`, `record`: what stands in the files; pure;
//! - `directory`, `blobs`: which files there are;
//! - `load`, `journal`, `snapshot`: what is read, and written;
//! - `keepers`: how cluster and stores tell of changes;
//! - `held`: answers that wait;
//! - `portable`: everything in one file, to be taken elsewhere.

mod blobs;
mod directory;
mod frame;
mod held;
mod journal;
mod keepers;
mod load;
mod portable;
mod record;
mod snapshot;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use kube_sim::{Cluster, Issued, Kept};
use s3_sim::Store;

pub(super) use self::held::Held;
pub(super) use self::load::{Stored, StoredStore};
pub(super) use self::portable::{Portable, Reading};

use self::blobs::Blobs;
use self::directory::Directory;
use self::journal::{Journal, Together};
use self::keepers::{ClusterKeeper, StoreKeeper};
use self::record::Record;

/// Where a simulator keeps what it holds. Clones are the same.
#[derive(Clone)]
pub(super) struct Data {
    directory: Arc<Directory>,
    blobs: Blobs,
    journal: Journal,
    _end: Arc<End>,
}

/// Ends the journal's thread with the last handle.
struct End(Journal);

impl Drop for End {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Data {
    /// Takes a directory, and reads what it holds; stores are made by this, for a region.
    ///
    /// # Errors
    /// In one sentence; what the directory holds is as it was, then.
    pub(super) fn open(path: &Path, make: impl Fn(&str) -> Store) -> Result<(Self, Stored), String> {
        let directory = Arc::new(Directory::open(path)?);
        let blobs = Blobs::open(directory.file("blobs"))?;
        let journal = Journal::new();
        let end = Arc::new(End(journal.clone()));
        let data = Self { directory: directory.clone(), blobs: blobs.clone(), journal, _end: end };
        let kept = |name: &str, region: &str| {
            let store = make(region);
            data.keep_store(name, &store);
            store
        };
        let (stored, place) = load::load(&directory, &blobs, &kept)?;
        data.journal.run(place).map_err(|error| format!("can't start a thread: {error}"))?;
        Ok((data, stored))
    }

    /// Keeps a cluster from now on; all that it holds if nothing of it is kept yet.
    pub(super) fn keep_cluster(&self, cluster: &Cluster, is_new: bool) {
        cluster.keep_with(Arc::new(ClusterKeeper(self.journal.clone())), is_new);
    }

    /// Keeps that there are no such objects any more: nothing defines their kinds.
    pub(super) fn leave_out(&self, objects: Vec<Kept>) {
        if !objects.is_empty() {
            tracing::warn!(objects = objects.len(), "objects of kinds that nothing defines any more are left out");
        }
        for kept in objects {
            self.journal.add(&Record::Object(Kept { object: None, completed_on_read: false, ..kept }));
        }
    }

    /// Keeps a store of this name that is new.
    pub(super) fn add_store(&self, name: &str, region: &str, store: &Store) {
        self.keep_store(name, store);
        self.journal.add(&Record::Store { name: name.to_owned(), region: region.to_owned() });
    }

    fn keep_store(&self, name: &str, store: &Store) {
        store.keep_with(Arc::new(StoreKeeper {
            name: name.to_owned(),
            journal: self.journal.clone(),
            blobs: self.blobs.clone(),
        }));
    }

    /// Keeps a host and port that backends know the served store by.
    pub(super) fn keep_host(&self, host: &str) {
        self.journal.add(&Record::Main(host.to_owned()));
    }

    /// Keeps how far the clock is ahead.
    pub(super) fn keep_clock(&self, ahead: i64) {
        self.journal.add(&Record::Clock(ahead));
    }

    /// Keeps a token.
    pub(super) fn keep_token(&self, issued: &Issued) {
        self.journal.add(&Record::Token(issued.clone()));
    }

    /// Keeps that there is what a simulator begins with.
    pub(super) fn keep_furnished(&self) {
        self.journal.add(&Record::Furnished(true));
    }

    /// From now on until it is dropped, what is kept is kept together or not at all.
    pub(super) fn together(&self) -> Together {
        self.journal.together()
    }

    /// Comes to an end once everything so far is safe.
    pub(super) fn settled(&self) -> impl Future<Output = ()> + Send + 'static {
        self.journal.settled()
    }

    /// Ends once everything is written; the directory is free then.
    pub(super) async fn close(&self) {
        self.journal.settled().await;
        self.journal.end();
        self.directory.release();
    }

    /// Waits for the sentence that says why nothing can be kept any more.
    pub(super) async fn failure(&self) -> String {
        self.journal.failure().await
    }

    /// A small file of its own, which outlives the process once it is written; made by this unless
    /// it is there.
    ///
    /// # Errors
    /// In one sentence, when it can't be read, written, or made.
    pub(super) fn file(&self, name: &str, make: impl FnOnce() -> Result<Vec<u8>, String>) -> Result<Vec<u8>, String> {
        use std::io::Write;
        let path = self.directory.file(name);
        if path.exists() {
            return std::fs::read(&path).map_err(|error| directory::failed("read", &path, &error));
        }
        let text = make()?;
        let written = self.directory.write(&path, |file| file.write_all(&text));
        written.map_err(|error| directory::failed("write", &path, &error))?;
        Ok(text)
    }
}

/// Name of the store that is served; no host is called so.
pub(super) const SERVED: &str = "(served)";

/// Everything that is kept of a simulator, for a snapshot.
pub(super) struct All<'a> {
    pub(super) cluster: &'a Cluster,
    /// Region and store by name.
    pub(super) stores: BTreeMap<String, StoredStore>,
    pub(super) tokens: Vec<Issued>,
    pub(super) ahead: i64,
    /// By which hosts backends know the store that is served.
    pub(super) hosts: BTreeSet<String>,
    pub(super) furnished: bool,
}
