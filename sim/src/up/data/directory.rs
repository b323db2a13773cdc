//! The files of a data directory.
//!
//! | file | content |
//! |---|---|
//! | `lock` | empty; locked by the process that uses the directory |
//! | `identity` | the server's authority and the administrator's token |
//! | `journal-0` | the format version |
//! | `records.redb` | everything but the bytes of objects |
//! | `blobs/XX/ID` | the bytes of an object or of a part |
//!
//! An older stowage-sim reads `journal-0` first, and so reports that it is too old for the data.

use std::fs::{self, DirEntry, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A data directory, locked against other processes.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// Locked until [`Self::release`].
    lock: File,
}

/// Returns an error message about a file.
pub(super) fn failed(what: &str, path: &Path, error: &dyn std::error::Error) -> String {
    format!("can't {what} {}: {error}", path.display())
}

/// Creates a directory and its parents. Their names have to survive a power failure, too.
fn make(path: &Path) -> io::Result<()> {
    let new: Vec<&Path> = path.ancestors().take_while(|it| !it.as_os_str().is_empty() && !it.exists()).collect();
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    fs::write(path.join(".gitignore"), "*\n")?;
    for made in new {
        let above = made.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(above)?.sync_all()?;
    }
    Ok(())
}

/// Suffix of a file's name until the file is complete.
const UNFINISHED: &str = ".new";

impl Directory {
    /// Opens and locks a directory. It is created if it doesn't exist.
    ///
    /// # Errors
    /// Returns an error message, for example if another simulator uses the directory.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        if !path.exists() {
            make(path).map_err(|error| failed("make", path, &error))?;
        }
        let file = path.join("lock");
        let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&file);
        let lock = lock.map_err(|error| failed("open", &file, &error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), lock }),
            Err(TryLockError::WouldBlock) => {
                Err(format!("another simulator uses {}; end it, or give another --data", path.display()))
            }
            Err(TryLockError::Error(error)) => Err(failed("lock", &file, &error)),
        }
    }

    /// Unlocks the directory. Nothing may be written to it any more.
    pub(super) fn release(&self) {
        // If this fails, the lock ends with the process.
        let _ = self.lock.unlock();
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns the files whose names match.
    ///
    /// # Errors
    /// Returns a message if the directory can't be read.
    pub(super) fn files(&self, is_such: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, String> {
        let entries = fs::read_dir(&self.path).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
        let entries = entries.map_err(|error| failed("read", &self.path, &error))?;
        let such = entries.iter().filter(|entry| entry.file_name().to_str().is_some_and(&is_such));
        Ok(such.map(DirEntry::path).collect())
    }

    /// Makes the names in the directory durable.
    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    /// Creates a file with access for its owner only; an existing one is replaced.
    fn begin(&self, path: &Path) -> io::Result<File> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
    }

    /// Writes a file atomically and durably.
    ///
    /// # Errors
    /// Returns an error if it can't be written.
    pub(super) fn write(&self, path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(UNFINISHED);
        let unfinished = PathBuf::from(unfinished);
        let mut file = self.begin(&unfinished)?;
        let written = write(&mut file)
            .and_then(|()| file.flush())
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&unfinished, path));
        if written.is_err() {
            // An incomplete file may take up the last space. The write error is returned, not this
            // one.
            let _ = fs::remove_file(&unfinished);
        }
        written?;
        self.sync()
    }

    /// Removes unfinished files of processes that ended while writing them.
    ///
    /// # Errors
    /// Returns a message if the directory can't be read, or a file can't be removed.
    pub(super) fn remove_unfinished(&self) -> Result<(), String> {
        for path in self.files(|name| name.ends_with(UNFINISHED))? {
            fs::remove_file(&path).map_err(|error| failed("remove", &path, &error))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_used_by_one() {
        let folder = tempfile::TempDir::new().expect("there is room");
        let path = folder.path().join("deep/data");
        let first = Directory::open(&path).expect("it is free");
        let Err(refusal) = Directory::open(&path) else { panic!("it is open twice") };
        assert!(refusal.contains("another simulator uses"), "{refusal}");
        drop(first);
        assert!(Directory::open(&path).is_ok());
    }

    #[test]
    fn what_cannot_be_finished_leaves_no_file() {
        let folder = tempfile::TempDir::new().expect("there is room");
        let directory = Directory::open(folder.path()).expect("it is free");
        let full = |file: &mut File| -> io::Result<()> {
            file.write_all(b"half of it")?;
            Err(io::ErrorKind::StorageFull.into())
        };
        assert!(directory.write(&directory.file("one"), full).is_err());
        assert_eq!(names(folder.path()), ["lock"]);
        assert!(directory.write(&directory.file("two"), |file| file.write_all(b"all of it")).is_ok());
        fs::write(folder.path().join("three.new"), "half of it").expect("there is room");
        directory.remove_unfinished().expect("it can be removed");
        assert_eq!(names(folder.path()), ["lock", "two"]);
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("it can be read");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}
