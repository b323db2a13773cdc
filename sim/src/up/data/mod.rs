//! What outlives the process, of a simulator that is given a directory for it: the cluster, the
//! stores, tokens, and by how far the clock was moved.
//!
//! Changes are written to a database in the order in which they happen, those that come at the same
//! time at once; so whatever is read back is a state that there was. Nobody is answered before what
//! they are told is safe there: answers are held back for it, those to reads and the events of
//! watches too ([`held`]), but for those that stay in the process.
//!
//! - `frame`, `record`: what stands in the files; pure;
//! - `directory`, `form`, `blobs`: which files there are;
//! - `database`, `load`, `changes`: what is read, and written;
//! - `keepers`: how cluster and stores tell of changes;
//! - `held`: answers that wait;
//! - `portable`: everything in one file, to be taken elsewhere.

mod blobs;
mod changes;
mod database;
mod directory;
mod form;
mod frame;
mod held;
mod keepers;
mod load;
mod portable;
mod record;

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
use self::changes::{Changes, Place, Together};
use self::database::Database;
use self::directory::Directory;
use self::keepers::{ClusterKeeper, StoreKeeper};
use self::record::Record;

/// Where a simulator keeps what it holds. Clones are the same.
#[derive(Clone)]
pub(super) struct Data {
    directory: Arc<Directory>,
    blobs: Blobs,
    changes: Changes,
    _end: Arc<End>,
}

/// Ends the thread that writes with the last handle.
struct End(Changes);

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
        let database = Database::open(&form::formed(&directory)?)?;
        let blobs = Blobs::open(directory.file("blobs"))?;
        let data = Self::new(directory, blobs);
        let kept = |name: &str, region: &str| {
            let store = make(region);
            data.keep_store(name, &store);
            store
        };
        let stored = load::load(&database, &data.blobs, &kept)?;
        data.directory.remove_unfinished()?;
        data.run(database)?;
        Ok((data, stored))
    }

    /// Gathers what is to be kept in a directory.
    fn new(directory: Directory, blobs: Blobs) -> Self {
        let changes = Changes::new();
        let end = Arc::new(End(changes.clone()));
        Self { directory: Arc::new(directory), blobs, changes, _end: end }
    }

    /// Starts to write to a database.
    fn run(&self, database: Database) -> Result<(), String> {
        let place = Place { _directory: self.directory.clone(), blobs: self.blobs.clone(), database };
        self.changes.run(place).map_err(|error| format!("can't start a thread: {error}"))
    }

    fn add(&self, record: &Record) {
        self.changes.add([record.row()]);
    }

    /// Keeps a cluster from now on; all that it holds if nothing of it is kept yet.
    pub(super) fn keep_cluster(&self, cluster: &Cluster, is_new: bool) {
        let version = cluster.resource_version().into();
        cluster.keep_with(Arc::new(ClusterKeeper { changes: self.changes.clone(), version }), is_new);
    }

    /// Keeps that there are no such objects any more: nothing defines their kinds.
    pub(super) fn leave_out(&self, objects: &[Kept]) {
        self.changes.add(objects.iter().map(record::gone));
    }

    /// Keeps that there is a store of this name.
    pub(super) fn add_store(&self, name: &str, region: &str) {
        self.add(&Record::Store { name: name.to_owned(), region: region.to_owned() });
    }

    /// Keeps what a store of this name holds from now on.
    pub(super) fn keep_store(&self, name: &str, store: &Store) {
        store.keep_with(Arc::new(StoreKeeper {
            name: name.to_owned(),
            changes: self.changes.clone(),
            blobs: self.blobs.clone(),
        }));
    }

    /// Keeps a host and port that backends know the served store by.
    pub(super) fn keep_host(&self, host: &str) {
        self.add(&Record::Main(host.to_owned()));
    }

    /// Keeps how far the clock is ahead.
    pub(super) fn keep_clock(&self, ahead: i64) {
        self.add(&Record::Clock(ahead));
    }

    /// Keeps a token.
    pub(super) fn keep_token(&self, issued: &Issued) {
        self.add(&Record::Token(issued.clone()));
    }

    /// Keeps that there is what a simulator begins with.
    pub(super) fn keep_furnished(&self) {
        self.add(&Record::Furnished(true));
    }

    /// From now on until it is dropped, what is kept is kept together or not at all.
    pub(super) fn together(&self) -> Together {
        self.changes.together()
    }

    /// Comes to an end once everything so far is safe.
    pub(super) fn settled(&self) -> impl Future<Output = ()> + Send + 'static {
        self.changes.settled()
    }

    /// Waits until everything so far is safe.
    ///
    /// # Errors
    /// Why it can't be.
    pub(super) async fn safe(&self) -> Result<(), String> {
        self.changes.safe().await
    }

    /// Ends once everything is written, or nothing can be any more; the directory is free then.
    pub(super) async fn close(&self) {
        if let Err(error) = self.changes.safe().await {
            tracing::warn!(error, "not everything is kept");
        }
        self.changes.end();
        self.changes.over().await;
        self.directory.release();
    }

    /// Waits for the sentence that says why nothing can be kept any more.
    pub(super) async fn failure(&self) -> String {
        self.changes.failure().await
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

/// Everything that a simulator keeps, for a snapshot.
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
    use std::time::Duration;

    use jiff::Timestamp;
    use s3_sim::Dialect;
    use tempfile::TempDir;
    use tokio::time::timeout;

    use super::*;

    async fn within<T>(work: impl Future<Output = T>) -> T {
        timeout(Duration::from_secs(20), work).await.expect("it comes to an end")
    }

    #[tokio::test]
    async fn what_cannot_be_kept_is_told_and_waited_for_by_nobody() {
        let folder = TempDir::new().expect("there is room");
        let directory = Directory::open(folder.path()).expect("it is free");
        let blobs = Blobs::open(directory.file("blobs")).expect("there is room");
        let data = Data::new(directory, blobs);
        let (file, database) = database::tests::empty();
        // It can't be written to.
        file.allow(0);
        data.run(database).expect("there can be a thread");
        data.keep_clock(1);
        let why = within(data.safe()).await.expect_err("it can't be written");
        assert!(why.contains("records.redb"), "{why}");
        within(data.close()).await;
        assert!(Directory::open(folder.path()).is_ok(), "it is free again");
    }

    #[tokio::test]
    async fn a_directory_is_free_only_once_all_that_belongs_together_is_written() {
        let folder = TempDir::new().expect("there is room");
        let make = |_: &str| Store::new(Arc::new(Timestamp::now), Dialect::default());
        let (data, _) = Data::open(folder.path(), make).expect("it is free");
        let together = data.together();
        data.keep_clock(1);
        let closes = data.clone();
        let closed = tokio::spawn(async move { closes.close().await });
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!closed.is_finished() && Directory::open(folder.path()).is_err());
        drop(together);
        within(closed).await.expect("it can be closed");
        let (_, stored) = Data::open(folder.path(), make).expect("it is free");
        assert_eq!(stored.ahead, 1);
    }
}
