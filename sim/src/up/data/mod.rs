//! State that outlives the process, if a simulator has a data directory: the cluster, the stores,
//! tokens, and the offset of the clock.
//!
//! Changes are written to a database in the order in which they happen, concurrent ones in one
//! transaction. So any state that is read back existed at some moment. No client gets an answer
//! before the data in it is durable. Answers are held back for that, including those to reads and
//! the events of watches ([`held`]). Answers to callers within the process are not held back.
//!
//! - `frame`, `record`: the content of files; pure functions;
//! - `directory`, `form`, `blobs`: the files;
//! - `database`, `load`, `changes`: reading and writing;
//! - `keepers`: receivers of the changes of cluster and stores;
//! - `held`: answers that are held back;
//! - `portable`: snapshots, with the whole state in one file.

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

/// The data directory of a simulator. Clones share it.
#[derive(Clone)]
pub(super) struct Data {
    directory: Arc<Directory>,
    blobs: Blobs,
    changes: Changes,
    _end: Arc<End>,
}

/// Ends the writing thread when the last handle is dropped.
struct End(Changes);

impl Drop for End {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Data {
    /// Opens a directory and reads its state. `make` creates a store for a region.
    ///
    /// # Errors
    /// Returns an error message if the state can't be read. The content of the directory is
    /// unchanged then.
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

    /// Queues changes for a directory, without writing them yet.
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

    /// Saves the changes of a cluster from now on. If `is_new`, also saves its current objects.
    pub(super) fn keep_cluster(&self, cluster: &Cluster, is_new: bool) {
        let version = cluster.resource_version().into();
        cluster.keep_with(Arc::new(ClusterKeeper { changes: self.changes.clone(), version }), is_new);
    }

    /// Deletes the records of these objects, because their kinds are not defined any more.
    pub(super) fn leave_out(&self, objects: &[Kept]) {
        self.changes.add(objects.iter().map(record::gone));
    }

    /// Saves that a store of this name exists.
    pub(super) fn add_store(&self, name: &str, region: &str) {
        self.add(&Record::Store { name: name.to_owned(), region: region.to_owned() });
    }

    /// Saves the changes of a store of this name from now on.
    pub(super) fn keep_store(&self, name: &str, store: &Store) {
        store.keep_with(Arc::new(StoreKeeper {
            name: name.to_owned(),
            changes: self.changes.clone(),
            blobs: self.blobs.clone(),
        }));
    }

    /// Saves a host and port by which backends know the served store.
    pub(super) fn keep_host(&self, host: &str) {
        self.add(&Record::Main(host.to_owned()));
    }

    /// Saves the offset of the clock.
    pub(super) fn keep_clock(&self, ahead: i64) {
        self.add(&Record::Clock(ahead));
    }

    /// Saves a token.
    pub(super) fn keep_token(&self, issued: &Issued) {
        self.add(&Record::Token(issued.clone()));
    }

    /// Saves that the initial manifests were applied.
    pub(super) fn keep_furnished(&self) {
        self.add(&Record::Furnished(true));
    }

    /// Makes changes atomic: until the guard is dropped, all of them are held back for one
    /// transaction.
    pub(super) fn together(&self) -> Together {
        self.changes.together()
    }

    /// Resolves once all changes so far are durable.
    pub(super) fn settled(&self) -> impl Future<Output = ()> + Send + 'static {
        self.changes.settled()
    }

    /// Waits until all changes so far are durable.
    ///
    /// # Errors
    /// Returns the reason why they can't be written.
    pub(super) async fn safe(&self) -> Result<(), String> {
        self.changes.safe().await
    }

    /// Waits until everything is written, or nothing can be written any more, then releases the
    /// directory.
    pub(super) async fn close(&self) {
        if let Err(error) = self.changes.safe().await {
            tracing::warn!(error, "not everything is kept");
        }
        self.changes.end();
        self.changes.over().await;
        self.directory.release();
    }

    /// Waits until nothing can be saved any more. Returns an error message with the reason.
    pub(super) async fn failure(&self) -> String {
        self.changes.failure().await
    }

    /// Reads a small separate file, or creates it durably with the content that `make` returns.
    ///
    /// # Errors
    /// Returns an error message if the file can't be read or written, or `make` fails.
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

/// Name of the served store. No host has this name.
pub(super) const SERVED: &str = "(served)";

/// The whole state of a simulator, for a snapshot.
pub(super) struct All<'a> {
    pub(super) cluster: &'a Cluster,
    /// Stores and their regions by name.
    pub(super) stores: BTreeMap<String, StoredStore>,
    pub(super) tokens: Vec<Issued>,
    pub(super) ahead: i64,
    /// The hosts by which backends know the served store.
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
        // No write to it succeeds.
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
