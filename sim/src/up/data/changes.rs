//! The queue of changes for the database. A thread writes all changes since its last write in one
//! transaction and makes them durable. Answers to clients wait for that.

use std::sync::Arc;
use std::{io, thread};

use parking_lot::{Condvar, Mutex};
use s3_sim::Entry;
use tokio::sync::watch;

use super::blobs::Blobs;
use super::database::Database;
use super::directory::Directory;

/// The changes of a data directory. Clones share them.
#[derive(Clone)]
pub(super) struct Changes(Arc<Shared>);

struct Shared {
    pending: Mutex<Pending>,
    news: Condvar,
    /// Number of rows that are durable.
    safe: watch::Sender<u64>,
    /// The reason why writing stopped.
    failed: watch::Sender<Option<String>>,
    /// True once the thread has ended.
    over: watch::Sender<bool>,
}

/// Pending work.
#[derive(Default)]
struct Pending {
    rows: Vec<Entry>,
    /// Number of all rows so far.
    count: u64,
    /// Number of [`Together`] guards.
    holds: usize,
    /// Blobs to remove once these rows are durable.
    garbage: Vec<u64>,
    ended: bool,
}

/// Holds back writes until it is dropped, so that they are in one transaction.
pub(in crate::up) struct Together(Changes);

impl Drop for Together {
    fn drop(&mut self) {
        self.0.0.pending.lock().holds -= 1;
        self.0.0.news.notify_one();
    }
}

/// The files that the thread writes to.
pub(super) struct Place {
    /// Keeps the directory locked while the thread runs.
    pub(super) _directory: Arc<Directory>,
    pub(super) blobs: Blobs,
    pub(super) database: Database,
}

impl Changes {
    /// Creates a queue. Its changes are written after [`Changes::run`].
    pub(super) fn new() -> Self {
        let (safe, failed) = (watch::Sender::new(0), watch::Sender::new(None));
        let over = watch::Sender::new(false);
        Self(Arc::new(Shared { pending: Mutex::default(), news: Condvar::new(), safe, failed, over }))
    }

    /// Starts the thread that writes.
    ///
    /// # Errors
    /// Returns an error if the thread can't be started.
    pub(super) fn run(&self, place: Place) -> io::Result<()> {
        let shared = self.0.clone();
        thread::Builder::new().name("database".to_owned()).spawn(move || {
            if let Err(why) = shared.write_for_ever(&place) {
                shared.failed.send_replace(Some(why));
            }
            drop(place);
            shared.over.send_replace(true);
        })?;
        Ok(())
    }

    /// Adds the rows of one change.
    pub(super) fn add(&self, rows: impl IntoIterator<Item = Entry>) {
        let mut pending = self.0.pending.lock();
        let before = pending.rows.len();
        pending.rows.extend(rows);
        pending.count += (pending.rows.len() - before) as u64;
        self.0.news.notify_one();
    }

    /// Removes these blobs once the changes so far are durable.
    pub(super) fn forget(&self, blobs: &[u64]) {
        self.0.pending.lock().garbage.extend_from_slice(blobs);
        self.0.news.notify_one();
    }

    /// Holds back changes until the guard is dropped, to write them in one transaction.
    pub(super) fn together(&self) -> Together {
        self.0.pending.lock().holds += 1;
        Together(self.clone())
    }

    /// Resolves once all changes so far are durable; never if they can't be written.
    pub(super) fn settled(&self) -> impl Future<Output = ()> + Send + 'static {
        let count = self.0.pending.lock().count;
        let mut safe = self.0.safe.subscribe();
        async move {
            if *safe.borrow() < count && safe.wait_for(|safe| *safe >= count).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until all changes so far are durable.
    ///
    /// # Errors
    /// Returns the reason why they can't be written.
    pub(super) async fn safe(&self) -> Result<(), String> {
        tokio::select! {
            biased;
            () = self.settled() => Ok(()),
            why = self.failure() => Err(why),
        }
    }

    /// Returns true if all changes so far are durable.
    pub(super) fn is_settled(&self) -> bool {
        *self.0.safe.borrow() >= self.0.pending.lock().count
    }

    /// Waits until nothing can be written any more. Returns an error message with the reason.
    pub(super) async fn failure(&self) -> String {
        let mut failed = self.0.failed.subscribe();
        match failed.wait_for(Option::is_some).await.map(|why| why.clone()) {
            Ok(Some(why)) => why,
            _ => std::future::pending().await,
        }
    }

    /// Ends the thread once everything is written.
    pub(super) fn end(&self) {
        self.0.pending.lock().ended = true;
        self.0.news.notify_one();
    }

    /// Waits until the thread, which has to be running, has ended.
    pub(super) async fn over(&self) {
        // `self` holds the sender, so this can't fail.
        let _ = self.0.over.subscribe().wait_for(|over| *over).await;
    }
}

impl Shared {
    /// Waits for pending work and takes it. Returns `None` at the end.
    fn next(&self) -> Option<Pending> {
        let mut pending = self.pending.lock();
        loop {
            let idle = pending.rows.is_empty() && pending.garbage.is_empty();
            match (idle, pending.ended) {
                (true, true) => return None,
                (false, _) if pending.holds == 0 => break,
                _ => self.news.wait(&mut pending),
            }
        }
        let (rows, garbage) = (std::mem::take(&mut pending.rows), std::mem::take(&mut pending.garbage));
        Some(Pending { rows, garbage, count: pending.count, ..Pending::default() })
    }

    fn write_for_ever(&self, Place { database, blobs, .. }: &Place) -> Result<(), String> {
        while let Some(work) = self.next() {
            if !work.rows.is_empty() {
                let written = blobs.sync().map_err(redb::Error::from).and_then(|()| database.write(&work.rows));
                written.map_err(|error| format!("can't write {}: {error}", database.path().display()))?;
                self.safe.send_replace(work.count);
            }
            blobs.remove(&work.garbage);
        }
        Ok(())
    }
}
