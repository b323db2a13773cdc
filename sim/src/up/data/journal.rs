//! The journal while it is written: records are gathered, and a thread writes all that have come
//! since the last time as one frame and makes it safe. Whoever answers somebody waits for that.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::{oneshot, watch};

use super::blobs::Blobs;
use super::directory::Directory;
use super::frame;
use super::record::Record;

/// How often, and how long apart, is tried to write where there is no room: a snapshot that finds
/// none lets go of what it has taken.
const TRIES: usize = 50;
const APART: Duration = Duration::from_millis(100);

/// The journal of a data directory. Clones are the same.
#[derive(Clone)]
pub(super) struct Journal(Arc<Shared>);

struct Shared {
    pending: Mutex<Pending>,
    news: Condvar,
    /// How many records are safe.
    safe: watch::Sender<u64>,
    /// Bytes of the file that is written to.
    length: watch::Sender<u64>,
    /// Why nothing is written any more.
    failed: watch::Sender<Option<String>>,
    /// Whether the thread has come to its end.
    over: watch::Sender<bool>,
}

/// What is to be done.
#[derive(Default)]
struct Pending {
    /// Lines that aren't written yet.
    lines: Vec<u8>,
    /// How many records there were.
    count: u64,
    /// Who has said that what they do belongs together.
    holds: usize,
    /// Blobs that can go once these lines are safe.
    garbage: Vec<u64>,
    /// Who waits for a new file, and its number.
    turn: Option<oneshot::Sender<io::Result<u64>>>,
    ended: bool,
}

/// While there is one nothing is written: what comes meanwhile is one frame.
pub(in crate::up) struct Together(Journal);

impl Drop for Together {
    fn drop(&mut self) {
        self.0.0.pending.lock().holds -= 1;
        self.0.0.news.notify_one();
    }
}

/// Where the thread writes.
pub(super) struct Place {
    pub(super) directory: Arc<Directory>,
    pub(super) blobs: Blobs,
    /// The number of the file.
    pub(super) number: u64,
    /// At its end.
    pub(super) file: File,
    pub(super) length: u64,
}

impl Journal {
    /// One that gathers records. They are written once it is [`Journal::run`].
    pub(super) fn new() -> Self {
        let (safe, length) = (watch::Sender::new(0), watch::Sender::new(0));
        let (failed, over) = (watch::Sender::new(None), watch::Sender::new(false));
        Self(Arc::new(Shared { pending: Mutex::default(), news: Condvar::new(), safe, length, failed, over }))
    }

    /// Starts to write.
    ///
    /// # Errors
    /// When there can be no thread.
    pub(super) fn run(&self, mut place: Place) -> io::Result<()> {
        let shared = self.0.clone();
        self.0.length.send_replace(place.length);
        thread::Builder::new().name("journal".to_owned()).spawn(move || {
            if let Err(error) = shared.write_for_ever(&mut place) {
                let path = place.directory.journal(place.number);
                shared.failed.send_replace(Some(format!("can't write {}: {error}", path.display())));
            }
            drop(place);
            shared.over.send_replace(true);
        })?;
        Ok(())
    }

    /// Adds a record.
    pub(super) fn add(&self, record: &Record) {
        let line = record.line();
        let mut pending = self.0.pending.lock();
        pending.lines.extend_from_slice(&line);
        pending.lines.push(b'\n');
        pending.count += 1;
        self.0.news.notify_one();
    }

    /// These blobs can go once the records so far are safe.
    pub(super) fn forget(&self, blobs: &[u64]) {
        self.0.pending.lock().garbage.extend_from_slice(blobs);
        self.0.news.notify_one();
    }

    /// From now on until it is dropped, records are kept back, to be written as one.
    pub(super) fn together(&self) -> Together {
        self.0.pending.lock().holds += 1;
        Together(self.clone())
    }

    /// Comes to an end once all records so far are safe; never, if they can't be written.
    pub(super) fn settled(&self) -> impl Future<Output = ()> + Send + 'static {
        let count = self.0.pending.lock().count;
        let mut safe = self.0.safe.subscribe();
        async move {
            if *safe.borrow() < count && safe.wait_for(|safe| *safe >= count).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until all records so far are safe.
    ///
    /// # Errors
    /// Why they can't be written.
    pub(super) async fn safe(&self) -> Result<(), String> {
        tokio::select! {
            biased;
            () = self.settled() => Ok(()),
            why = self.failure() => Err(why),
        }
    }

    /// Whether all records so far are safe.
    pub(super) fn is_settled(&self) -> bool {
        *self.0.safe.borrow() >= self.0.pending.lock().count
    }

    /// Waits until the file has more bytes than this.
    pub(super) async fn longer_than(&self, bytes: u64) {
        if self.0.length.subscribe().wait_for(|length| *length > bytes).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits for the sentence that says why nothing can be written any more.
    pub(super) async fn failure(&self) -> String {
        let mut failed = self.0.failed.subscribe();
        match failed.wait_for(Option::is_some).await.map(|why| why.clone()) {
            Ok(Some(why)) => why,
            _ => std::future::pending().await,
        }
    }

    /// Has what comes from now on written to a new file; says its number.
    ///
    /// # Errors
    /// When there can be none.
    pub(super) async fn turn(&self) -> io::Result<u64> {
        let (told, number) = oneshot::channel();
        self.0.pending.lock().turn = Some(told);
        self.0.news.notify_one();
        tokio::select! {
            number = number => number.map_err(io::Error::other)?,
            why = self.failure() => Err(io::Error::other(why)),
        }
    }

    /// Ends the thread once all is written.
    pub(super) fn end(&self) {
        self.0.pending.lock().ended = true;
        self.0.news.notify_one();
    }

    /// Waits until the thread, which runs, writes nothing any more.
    pub(super) async fn over(&self) {
        // There is a sender as long as there is this.
        let _ = self.0.over.subscribe().wait_for(|over| *over).await;
    }
}

impl Shared {
    /// Waits for something to do, and takes it.
    fn next(&self) -> Option<Pending> {
        let mut pending = self.pending.lock();
        loop {
            let idle = pending.lines.is_empty() && pending.garbage.is_empty() && pending.turn.is_none();
            match (idle, pending.ended) {
                (true, true) => return None,
                (false, _) if pending.holds == 0 => break,
                _ => self.news.wait(&mut pending),
            }
        }
        let (lines, garbage) = (std::mem::take(&mut pending.lines), std::mem::take(&mut pending.garbage));
        Some(Pending { lines, garbage, count: pending.count, turn: pending.turn.take(), ..Pending::default() })
    }

    fn write_for_ever(&self, place: &mut Place) -> io::Result<()> {
        while let Some(work) = self.next() {
            if !work.lines.is_empty() {
                if u32::try_from(work.lines.len()).is_err() {
                    return Err(io::Error::other("more than 4 GiB came at once"));
                }
                place.blobs.sync()?;
                let frame = frame::frame(&work.lines);
                place.append(&frame)?;
                self.length.send_replace(place.length);
                self.safe.send_replace(work.count);
            }
            place.blobs.remove(&work.garbage);
            if let Some(told) = work.turn {
                let number = place.turn();
                let _ = told.send(number);
                self.length.send_replace(place.length);
            }
        }
        Ok(())
    }
}

impl Place {
    /// Adds a frame, which is safe then.
    fn append(&mut self, frame: &[u8]) -> io::Result<()> {
        let mut tries = 0;
        while let Err(error) = self.file.write_all(frame) {
            tries += 1;
            if error.kind() != io::ErrorKind::StorageFull || tries == TRIES {
                return Err(error);
            }
            // What of it was written is no frame.
            self.file.set_len(self.length)?;
            self.file.seek(SeekFrom::Start(self.length))?;
            thread::sleep(APART);
        }
        self.file.sync_data()?;
        self.length += frame.len() as u64;
        Ok(())
    }

    /// Goes on in a new file. If there can be none, the one before goes on.
    fn turn(&mut self) -> io::Result<u64> {
        let number = self.number + 1;
        let path = self.directory.journal(number);
        let begun = begin(&self.directory, &path);
        if begun.is_err() {
            // The one that goes on has to be the last.
            let _ = std::fs::remove_file(&path);
        }
        let file = begun?;
        (self.file, self.number, self.length) = (file, number, frame::opening().len() as u64);
        Ok(number)
    }
}

/// Begins an empty file of records.
pub(super) fn begin(directory: &Directory, path: &Path) -> io::Result<File> {
    let mut file = directory.begin(path)?;
    file.write_all(&frame::opening())?;
    file.sync_all()?;
    directory.sync()?;
    Ok(file)
}
