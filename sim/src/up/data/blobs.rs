//! The bytes of objects: an immutable file for each upload.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use s3_sim::{BlobReader, BlobWriter};

use super::directory::failed;

/// Number of directories that the files are spread over.
const SPREAD: u64 = 256;

/// All blobs of a data directory. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Blobs(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    last: AtomicU64,
    /// Directories with new names that are not synced yet. They are kept open, so that `sync` needs
    /// no file descriptor: a lack of descriptors is then reported to the writer of a blob.
    news: Mutex<BTreeMap<u64, File>>,
}

impl Blobs {
    /// Opens the blobs below this path.
    ///
    /// # Errors
    /// Returns a message if directories can't be created.
    pub(super) fn open(path: PathBuf) -> Result<Self, String> {
        for part in 0..SPREAD {
            let part = path.join(format!("{part:02x}"));
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&part);
            made.map_err(|error| failed("make", &part, &error))?;
        }
        // The names of the directories have to survive a power failure, too.
        let safe = File::open(&path).and_then(|directory| directory.sync_all());
        safe.map_err(|error| failed("write", &path, &error))?;
        Ok(Self(Arc::new(Shared { path, last: AtomicU64::new(0), news: Mutex::default() })))
    }

    fn directory(&self, part: u64) -> PathBuf {
        self.0.path.join(format!("{part:02x}"))
    }

    fn file(&self, id: u64) -> PathBuf {
        self.directory(id % SPREAD).join(format!("{id:016x}"))
    }

    /// Reserves this number and all lower ones: new blobs get higher numbers.
    pub(super) fn pass(&self, id: u64) {
        self.0.last.fetch_max(id, Ordering::Relaxed);
    }

    /// Checks that these blobs exist and have at least these lengths in bytes.
    ///
    /// # Errors
    /// Returns an error message if a blob is missing or too short.
    pub(super) fn check(&self, wanted: &BTreeMap<u64, u64>) -> Result<(), String> {
        for (id, least) in wanted {
            let path = self.file(*id);
            let length = fs::metadata(&path).map_err(|error| failed("read", &path, &error))?.len();
            if length < *least {
                return Err(format!("{} is broken: {length} bytes of {least} are there", path.display()));
            }
        }
        Ok(())
    }

    /// Removes all blobs but these. The records that no longer refer to the others have to be
    /// durable.
    ///
    /// # Errors
    /// Returns an error message if a directory can't be read or a blob can't be removed.
    pub(super) fn keep(&self, wanted: &BTreeMap<u64, u64>) -> Result<(), String> {
        for part in 0..SPREAD {
            let directory = self.directory(part);
            let unreadable = |error: io::Error| failed("read", &directory, &error);
            for entry in fs::read_dir(&directory).map_err(unreadable)? {
                let entry = entry.map_err(unreadable)?;
                let id = entry.file_name().to_str().and_then(|name| u64::from_str_radix(name, 16).ok());
                let Some(id) = id else { continue };
                self.pass(id);
                if !wanted.contains_key(&id) {
                    fs::remove_file(entry.path()).map_err(|error| failed("remove", &entry.path(), &error))?;
                }
            }
        }
        Ok(())
    }

    /// Begins a new blob.
    ///
    /// # Errors
    /// Returns an error if the file can't be created.
    pub(super) fn begin(&self) -> io::Result<Writer> {
        let id = self.0.last.fetch_add(1, Ordering::Relaxed) + 1;
        let path = self.file(id);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Writer { blobs: self.clone(), id, path, file: Some(file) })
    }

    /// Opens a blob.
    ///
    /// # Errors
    /// Returns an error if it doesn't exist.
    pub(super) fn read(&self, id: u64) -> io::Result<Reader> {
        File::open(self.file(id)).map(Reader)
    }

    /// Opens a blob and returns its length.
    ///
    /// # Errors
    /// Returns an error if it doesn't exist.
    pub(super) fn measure(&self, id: u64) -> io::Result<(Reader, u64)> {
        let reader = self.read(id)?;
        let length = reader.0.metadata()?.len();
        Ok((reader, length))
    }

    /// Makes the names of finished blobs durable.
    ///
    /// # Errors
    /// Returns an error if a directory can't be synced.
    pub(super) fn sync(&self) -> io::Result<()> {
        let news = std::mem::take(&mut *self.0.news.lock());
        news.into_values().try_for_each(|directory| directory.sync_all())
    }

    /// Removes blobs. One that can't be removed stays until the next start.
    pub(super) fn remove(&self, ids: &[u64]) {
        for id in ids {
            remove(&self.file(*id));
        }
    }
}

fn remove(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, path = %path.display(), "a blob can't be removed");
        }
        _ => {}
    }
}

/// A blob that is being written. Dropping it unfinished removes the file.
#[derive(Debug)]
pub(super) struct Writer {
    blobs: Blobs,
    id: u64,
    path: PathBuf,
    /// `None` once the blob is finished.
    file: Option<File>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            remove(&self.path);
        }
    }
}

impl BlobWriter for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), |file| file.write_all(bytes))
    }

    fn finish(mut self: Box<Self>) -> io::Result<u64> {
        if let Some(file) = &self.file {
            file.sync_all()?;
        }
        let part = self.id % SPREAD;
        let directory = File::open(self.blobs.directory(part))?;
        self.blobs.0.news.lock().insert(part, directory);
        self.file = None;
        Ok(self.id)
    }
}

/// An open blob.
#[derive(Debug)]
pub(super) struct Reader(File);

impl BlobReader for Reader {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(buffer, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(blobs: &Blobs, bytes: &[u8]) -> u64 {
        let mut writer = blobs.begin().expect("there is room");
        writer.write(bytes).expect("there is room");
        Box::new(writer).finish().expect("there is room")
    }

    #[test]
    fn blobs_are_read_as_written_and_those_that_nobody_wants_are_gone() {
        let folder = tempfile::TempDir::new().expect("there is room");
        let blobs = Blobs::open(folder.path().join("blobs")).expect("there is room");
        let (one, two) = (write(&blobs, b"one and more"), write(&blobs, b"two"));
        blobs.begin().expect("there is room").write(b"never finished").expect("there is room");
        let mut part = [0; 4];
        let open = blobs.read(one).expect("it is there");
        blobs.keep(&[(two, 3)].into()).expect("it is there");
        open.read_at(4, &mut part).expect("it is open");
        assert_eq!(&part, b"and ");
        assert!(blobs.read(one).is_err() && blobs.read(two).is_ok());
        assert!(blobs.check(&[(two, 4)].into()).expect_err("it is short").contains("3 bytes of 4"));
        assert!(blobs.check(&[(one, 1)].into()).is_err() && blobs.check(&[(two, 3)].into()).is_ok());
        let again = Blobs::open(folder.path().join("blobs")).expect("there is room");
        again.keep(&[(two, 3)].into()).expect("it is there");
        assert!(write(&again, b"new") > two, "no number is given twice");
    }

    #[test]
    fn names_are_made_safe_without_opening_anything() {
        let folder = tempfile::TempDir::new().expect("there is room");
        let blobs = Blobs::open(folder.path().join("blobs")).expect("there is room");
        write(&blobs, b"one");
        fs::rename(folder.path().join("blobs"), folder.path().join("elsewhere")).expect("there is room");
        assert!(blobs.sync().is_ok());
        assert!(blobs.begin().is_err(), "who brings another one is told");
    }
}
