//! The format version of a data directory. A directory with another version is not changed.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use super::database;
use super::directory::{Directory, failed};
use super::frame::{self, Flaw};

/// The current format version. Version 1 had journals and snapshots of its own.
const FORM: u32 = 2;
/// The file with the version.
const MARK: &str = "journal-0";
/// Number of bytes of a file in which the version has to be.
const LONGEST_MARK: u64 = 64;

/// Checks the version of the directory, and initializes an empty one. Returns the path of its
/// database.
///
/// # Errors
/// Returns an error message if the directory has another version or no database; it is unchanged
/// then.
pub(super) fn formed(directory: &Directory) -> Result<PathBuf, String> {
    let (mark, database) = (directory.file(MARK), directory.file("records.redb"));
    for path in directory.files(|name| is_numbered(name, "journal-") || is_numbered(name, "snapshot-"))? {
        let mut begun = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(LONGEST_MARK).read_to_end(&mut begun));
        read.map_err(|error| failed("read", &path, &error))?;
        frame::first(&begun, FORM).map_err(|flaw| of(&flaw, &path))?;
    }
    match (mark.exists(), database.exists()) {
        (true, true) => return Ok(database),
        (true, false) => return Err(format!("{} is missing; nothing was changed", database.display())),
        (false, true) => {}
        (false, false) => {
            database::make(directory, &database).map_err(|error| failed("write", &database, &error))?;
        }
    }
    let marked = directory.write(&mark, |file| file.write_all(&frame::opening(FORM)));
    marked.map_err(|error| failed("write", &mark, &error))?;
    Ok(database)
}

fn is_numbered(name: &str, sort: &str) -> bool {
    name.strip_prefix(sort).is_some_and(|number| number.parse::<u64>().is_ok())
}

/// Returns the message about a directory that can't be used, because of this file.
fn of(flaw: &Flaw, path: &Path) -> String {
    let path = path.display();
    match flaw {
        Flaw::Other(form) if *form > FORM => format!(
            "{path} was written by a newer stowage-sim, in form {form} of data; this one reads form {FORM}; nothing was \
             changed"
        ),
        Flaw::Other(form) => format!(
            "{path} was written by an older stowage-sim, in form {form} of data; this one reads form {FORM}; nothing was \
             changed: have the older one save a snapshot, and load it into another --data"
        ),
        Flaw::Foreign | Flaw::Broken(_) => format!("{path} isn't data of a simulator; nothing was changed"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_directory_of_another_form_or_without_its_database_is_refused_and_stays() {
        for (name, text, expected) in [
            ("journal-0", "stowage-sim data 3\n", "newer stowage-sim, in form 3"),
            ("journal-0", "stowage-sim data 1\n...", "older stowage-sim, in form 1"),
            ("snapshot-7", "stowage-sim data 1\n...", "have the older one save a snapshot"),
            ("journal-0", "mine", "isn't data of a simulator"),
            ("journal-0", "stowage-sim data 2\n", "records.redb is missing"),
        ] {
            let folder = tempfile::TempDir::new().expect("there is room");
            let directory = Directory::open(folder.path()).expect("it is free");
            fs::write(directory.file(name), text).expect("there is room");
            let why = formed(&directory).expect_err("it is refused");
            assert!(why.contains(expected), "{why}");
            assert_eq!(fs::read_to_string(directory.file(name)).expect("it is there"), text);
            assert_eq!(fs::read_dir(folder.path()).expect("it can be read").count(), 2, "beside its lock");
        }
    }

    #[test]
    fn a_directory_that_was_hardly_made_is_taken() {
        let folder = tempfile::TempDir::new().expect("there is room");
        let directory = Directory::open(folder.path()).expect("it is free");
        let database = formed(&directory).expect("it is made");
        assert_eq!(formed(&directory), Ok(database.clone()));
        fs::remove_file(directory.file(MARK)).expect("it is there");
        assert_eq!(formed(&directory), Ok(database));
        assert!(directory.file(MARK).exists());
    }
}
