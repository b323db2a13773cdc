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

use kube_front::Issued;
use kube_sim::{Cluster, Kept};
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
    /// Taken while a snapshot is written.
    compacting: Arc<tokio::sync::Mutex<()>>,
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
        let directory = Directory::open(path)?;
        let blobs = Blobs::open(directory.file("blobs"))?;
        let data = Self::new(directory, blobs);
        let kept = |name: &str, region: &str| {
            let store = make(region);
            data.keep_store(name, &store);
            store
        };
        let (stored, place) = load::load(&data.directory, &data.blobs, &kept)?;
        data.journal.run(place).map_err(|error| format!("can't start a thread: {error}"))?;
        Ok((data, stored))
    }

    /// Gathers what is to be kept in a directory.
    fn new(directory: Directory, blobs: Blobs) -> Self {
        let (journal, compacting) = (Journal::new(), Arc::default());
        let end = Arc::new(End(journal.clone()));
        Self { directory: Arc::new(directory), blobs, journal, compacting, _end: end }
    }

    /// Keeps a cluster from now on; all that it holds if nothing of it is kept yet.
    pub(super) fn keep_cluster(&self, cluster: &Cluster, is_new: bool) {
        cluster.keep_with(Arc::new(ClusterKeeper(self.journal.clone())), is_new);
    }

    /// Keeps that there are no such objects any more: nothing defines their kinds.
    pub(super) fn leave_out(&self, objects: Vec<Kept>) {
        for kept in objects {
            self.journal.add(&Record::Object(Kept { object: None, completed_on_read: false, ..kept }));
        }
    }

    /// Keeps that there is a store of this name.
    pub(super) fn add_store(&self, name: &str, region: &str) {
        self.journal.add(&Record::Store { name: name.to_owned(), region: region.to_owned() });
    }

    /// Keeps what a store of this name holds from now on.
    pub(super) fn keep_store(&self, name: &str, store: &Store) {
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

    /// Waits until everything so far is safe.
    ///
    /// # Errors
    /// Why it can't be.
    pub(super) async fn safe(&self) -> Result<(), String> {
        self.journal.safe().await
    }

    /// Ends once everything is written, or nothing can be any more; the directory is free then.
    pub(super) async fn close(&self) {
        if let Err(error) = self.journal.safe().await {
            tracing::warn!(error, "not everything is kept");
        }
        // Until there is another one in the directory, nobody of this one may write to it.
        let _no_more = self.compacting.lock().await;
        self.journal.end();
        self.journal.over().await;
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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::mpsc;
    use std::time::Duration;

    use jiff::Timestamp;
    use s3_sim::Dialect;
    use tempfile::TempDir;
    use tokio::time::timeout;

    use super::journal::Place;
    use super::*;

    async fn within<T>(work: impl Future<Output = T>) -> T {
        timeout(Duration::from_secs(20), work).await.expect("it comes to an end")
    }

    #[tokio::test]
    async fn what_cannot_be_kept_is_told_and_waited_for_by_nobody() {
        let folder = TempDir::new().expect("there is room");
        let directory = Directory::open(folder.path()).expect("it is free");
        let blobs = Blobs::open(directory.file("blobs")).expect("there is room");
        let data = Data::new(directory, blobs.clone());
        let path = data.directory.journal(0);
        std::fs::write(&path, frame::opening()).expect("there is room");
        // It can't be written to.
        let file = File::open(&path).expect("it is there");
        let place = Place { directory: data.directory.clone(), blobs, number: 0, file, length: 0 };
        data.journal.run(place).expect("there can be a thread");
        data.keep_clock(1);
        let why = within(data.safe()).await.expect_err("it can't be written");
        assert!(why.contains("journal-0"), "{why}");
        assert!(within(data.compact(|_| {})).await.is_err());
        within(data.close()).await;
        assert!(Directory::open(folder.path()).is_ok(), "it is free again");
    }

    #[tokio::test]
    async fn a_directory_is_free_only_once_a_snapshot_that_is_being_written_is_there() {
        let folder = TempDir::new().expect("there is room");
        let make = |_: &str| Store::new(Arc::new(Timestamp::now), Dialect::default());
        let (data, _) = Data::open(folder.path(), make).expect("it is free");
        let (begins, begun) = mpsc::channel();
        let (lets_go, let_go) = mpsc::channel::<()>();
        let compacts = data.clone();
        let compacted = tokio::spawn(async move {
            let whole = move |_: &mut dyn FnMut(&All<'_>)| {
                begins.send(()).expect("it is waited for");
                let_go.recv().expect("it is told");
            };
            compacts.compact(whole).await
        });
        let begun = tokio::task::spawn_blocking(move || begun.recv());
        within(begun).await.expect("it can be waited for").expect("it is told");
        // As its task is, when a simulator stops: what it does beside goes on.
        compacted.abort();
        let closes = data.clone();
        let closed = tokio::spawn(async move { closes.close().await });
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!closed.is_finished() && Directory::open(folder.path()).is_err());
        lets_go.send(()).expect("it waits");
        within(closed).await.expect("it can be closed");
        assert!(data.directory.snapshot(1).exists());
        assert!(Directory::open(folder.path()).is_ok(), "it is free");
    }
}
