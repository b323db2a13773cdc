//! The database of a data directory: one table of records by place, in a redb file.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use redb::backends::FileBackend;
use redb::{Builder, DatabaseError, ReadableDatabase, ReadableTable, StorageError, TableDefinition};
use s3_sim::Entry;

use super::directory::{Directory, failed};

const RECORDS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("records");
/// Cache size in bytes. The file is read only at the start.
const CACHE: usize = 16 << 20;
/// Size in bytes of the page with the file's header.
const FIRST_PAGE: u64 = 4096;

/// An open database, locked against other processes.
pub(super) struct Database {
    path: PathBuf,
    file: redb::Database,
}

/// Creates an empty database atomically.
///
/// # Errors
/// Returns an error if it can't be written.
pub(super) fn make(directory: &Directory, path: &Path) -> io::Result<()> {
    directory.write(path, |file| {
        let made = || -> Result<(), redb::Error> {
            let database = Builder::new().create_with_backend(FileBackend::new(file.try_clone()?)?)?;
            let transaction = database.begin_write()?;
            transaction.open_table(RECORDS)?;
            Ok(transaction.commit()?)
        };
        made().map_err(io::Error::other)
    })
}

impl Database {
    /// Opens a database after checking the integrity of every page.
    ///
    /// # Errors
    /// Returns an error message if the file can't be read or is damaged. The file is unchanged
    /// then.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let mut builder = Builder::new();
        let unreadable = |error: io::Error| failed("read", path, &error);
        let mut first = Vec::new();
        File::open(path).and_then(|file| file.take(FIRST_PAGE).read_to_end(&mut first)).map_err(unreadable)?;
        let file = builder.set_cache_size(CACHE).set_check_integrity_on_open(true).open(path);
        if matches!(file, Err(DatabaseError::Storage(StorageError::Corrupted(_)))) {
            // redb corrects the length of the file in the first page before it checks the rest.
            let put_back = OpenOptions::new().write(true).open(path).and_then(|file| file.write_all_at(&first, 0));
            put_back.map_err(|error| failed("write", path, &error))?;
        }
        Ok(Self { path: path.to_owned(), file: file.map_err(|error| refused(path, &error))? })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Calls `take` with all records in the order of their places, until it returns an error.
    ///
    /// # Errors
    /// Returns an error message if the file can't be read, or the error of `take`.
    pub(super) fn read(&self, mut take: impl FnMut(&[u8]) -> Result<(), String>) -> Result<(), String> {
        let unreadable = |error: redb::Error| failed("read", &self.path, &error);
        let table = || -> Result<_, redb::Error> { Ok(self.file.begin_read()?.open_table(RECORDS)?) };
        let table = table().map_err(unreadable)?;
        for row in table.iter().map_err(|error| unreadable(error.into()))? {
            let (_, line) = row.map_err(|error| unreadable(error.into()))?;
            take(line.value())?;
        }
        Ok(())
    }

    /// Writes rows in order, atomically and durably.
    ///
    /// # Errors
    /// Returns an error if that fails. No further write is possible then.
    pub(super) fn write(&self, rows: &[Entry]) -> Result<(), redb::Error> {
        let mut transaction = self.file.begin_write()?;
        // With two-phase commit, later damage can be told apart from an unfinished write.
        transaction.set_two_phase_commit(true);
        let mut table = transaction.open_table(RECORDS)?;
        for Entry { place, document } in rows {
            match document {
                Some(document) => drop(table.insert(&place[..], &document[..])?),
                None => table.retain_in(&place[..]..&after(place)[..], |_, _| false)?,
            }
        }
        drop(table);
        Ok(transaction.commit()?)
    }
}

/// Returns the message about a database that can't be opened.
fn refused(path: &Path, error: &DatabaseError) -> String {
    let path = path.display();
    match error {
        DatabaseError::Storage(StorageError::Corrupted(what)) => format!(
            "{path} is damaged: {what}; nothing was changed: bring back a copy of the directory, or begin another one"
        ),
        other => format!("{path} can't be opened: {other}; nothing was changed"),
    }
}

/// Returns the first place after all places with this prefix, which must contain a byte below 0xff.
fn after(place: &[u8]) -> Vec<u8> {
    let mut after = place.to_vec();
    while after.pop_if(|last| *last == u8::MAX).is_some() {}
    if let Some(last) = after.last_mut() {
        *last += 1;
    }
    after
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use parking_lot::Mutex;
    use redb::StorageBackend;

    use super::*;

    /// A file in memory that allows a limited number of writes. Clones share it.
    #[derive(Clone, Debug)]
    pub(in crate::up::data) struct Memory(Arc<Mutex<(Vec<u8>, u64)>>);

    impl Memory {
        fn of(bytes: Vec<u8>) -> Self {
            Self(Arc::new(Mutex::new((bytes, u64::MAX))))
        }

        fn bytes(&self) -> Vec<u8> {
            self.0.lock().0.clone()
        }

        pub(in crate::up::data) fn allow(&self, writes: u64) {
            self.0.lock().1 = writes;
        }

        fn open(&self) -> Result<Database, DatabaseError> {
            let mut builder = Builder::new();
            let file = builder.set_check_integrity_on_open(true).create_with_backend(self.clone())?;
            Ok(Database { path: PathBuf::from("records.redb"), file })
        }
    }

    impl StorageBackend for Memory {
        fn len(&self) -> io::Result<u64> {
            Ok(self.0.lock().0.len() as u64)
        }

        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            let at = usize::try_from(offset).map_err(io::Error::other)?;
            let bytes = &self.0.lock().0;
            out.copy_from_slice(bytes.get(at..at + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        }

        fn set_len(&self, len: u64) -> io::Result<()> {
            self.0.lock().0.resize(usize::try_from(len).map_err(io::Error::other)?, 0);
            Ok(())
        }

        fn sync_data(&self) -> io::Result<()> {
            Ok(())
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            let at = usize::try_from(offset).map_err(io::Error::other)?;
            let (bytes, left) = &mut *self.0.lock();
            *left = left.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
            bytes.get_mut(at..at + data.len()).ok_or(io::ErrorKind::UnexpectedEof)?.copy_from_slice(data);
            Ok(())
        }
    }

    type Records = BTreeMap<String, String>;

    /// Creates an empty database in memory.
    pub(in crate::up::data) fn empty() -> (Memory, Database) {
        let memory = Memory::of(Vec::new());
        let database = memory.open().expect("it is made");
        (memory, database)
    }

    /// Returns a row whose line contains its key.
    fn row(key: &str, line: &str) -> Entry {
        Entry { place: key.into(), document: Some(format!("{key}={line}").into()) }
    }

    fn gone(key: &str) -> Entry {
        Entry { place: key.into(), document: None }
    }

    fn records(database: &Database) -> Records {
        let mut records = Records::new();
        let read = database.read(|line| {
            let line = String::from_utf8_lossy(line).into_owned();
            let (key, line) = line.split_once('=').expect("it was written so");
            records.insert(key.to_owned(), line.to_owned());
            Ok(())
        });
        // The table doesn't exist before the first change.
        read.map_or_else(|_| Records::new(), |()| records)
    }

    /// Writes a number of changes. Returns the records after each, until a write fails.
    fn lives(database: &Database) -> Vec<Records> {
        let mut all = vec![records(database)];
        for number in 0..6 {
            let (key, long) = (format!("o{number}"), "x".repeat(3000 * number));
            let change = [row(&key, &long), row("c", &number.to_string()), gone(&format!("o{}", number / 2))];
            if database.write(&change).is_err() {
                break;
            }
            let mut now = all.last().cloned().unwrap_or_default();
            now.insert(key, long);
            now.insert("c".to_owned(), number.to_string());
            now.remove(&format!("o{}", number / 2));
            all.push(now);
        }
        all
    }

    #[test]
    fn what_is_removed_takes_along_what_begins_with_it_alone() {
        let (_, database) = empty();
        database.write(&["a", "b", "b\u{7f}x", "bb", "c"].map(|key| row(key, ""))).expect("there is room");
        database.write(&[gone("b"), row("b", "new")]).expect("there is room");
        let expected = [("a", ""), ("b", "new"), ("c", "")].map(|(key, line)| (key.to_owned(), line.to_owned()));
        assert_eq!(records(&database), Records::from(expected));
        assert_eq!(after(&[1, 255, 255]), [2]);
    }

    #[test]
    fn a_change_is_there_whole_or_not_wherever_its_writing_ends() {
        let mut ends = 0;
        for writes in 0.. {
            let (memory, database) = empty();
            memory.allow(writes);
            let lives = lives(&database);
            // The process ends here.
            let left = Memory::of(memory.bytes());
            let found = records(&left.open().expect("it can be opened"));
            let last = lives.last().expect("there is one");
            let began = lives.len() < 7;
            ends += usize::from(began);
            let under_way = || {
                let (_, again) = empty();
                self::lives(&again).get(lives.len()).cloned()
            };
            assert!(found == *last || (began && Some(found) == under_way()), "after {writes} writes");
            if !began {
                break;
            }
        }
        assert!(ends > 10, "{ends}");
    }

    #[test]
    fn a_flipped_bit_is_told_of_or_does_no_harm() {
        let (memory, database) = empty();
        let mut states = lives(&database);
        let expected = states.pop().expect("there is one");
        let first_page = usize::try_from(FIRST_PAGE).expect("it is small");
        for file in [memory.bytes(), {
            drop(database);
            memory.bytes()
        }] {
            let used = (0..file.len()).step_by(128).filter(|at| file[*at..][..128].iter().any(|byte| *byte != 0));
            let mut told = 0;
            for at in (0..320).chain(used.flat_map(|at| [at, at + 5, at + 77])) {
                let mut damaged = file.clone();
                damaged[at] ^= 1 << (at % 8);
                let memory = Memory::of(damaged.clone());
                match memory.open() {
                    Ok(database) => {
                        let found = records(&database);
                        // One bit of the tenth byte selects which of the last two states is
                        // current.
                        let is_before = at == 9 && states.last() == Some(&found);
                        assert!(is_before || found == expected, "at {at}");
                    }
                    Err(error) => {
                        assert!(memory.bytes()[first_page..] == damaged[first_page..], "it is changed, at {at}");
                        assert!(refused(Path::new("records.redb"), &error).contains("records.redb"));
                        told += 1;
                    }
                }
            }
            assert!(told > 100, "{told}");
        }
    }

    #[test]
    fn what_is_no_database_or_damaged_is_refused_and_stays() {
        let folder = tempfile::TempDir::new().expect("there is room");
        let path = folder.path().join("records.redb");
        let (memory, database) = empty();
        lives(&database);
        for at in [0, 16, 20, memory.bytes().len() - 1] {
            let mut damaged = memory.bytes();
            damaged[at] ^= 1;
            if at == damaged.len() - 1 {
                damaged.pop();
            }
            std::fs::write(&path, &damaged).expect("there is room");
            let Err(why) = Database::open(&path) else { panic!("it is opened, at {at}") };
            assert!(why.contains("records.redb") && why.contains("nothing was changed"), "{why}");
            assert!(std::fs::read(&path).expect("it is there") == damaged, "it is changed, at {at}");
        }
        for text in ["", "x", "something else of some length"] {
            std::fs::write(&path, text).expect("there is room");
            let Err(why) = Database::open(&path) else { panic!("{text} is opened") };
            assert!(why.contains("records.redb") && why.contains("nothing was changed"), "{why}");
            assert_eq!(std::fs::read_to_string(&path).expect("it is there"), text);
        }
    }
}
