//! What a data directory holds, read back.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::Arc;

use kube_front::Issued;
use kube_sim::Kept;
use s3_sim::Store;

use super::blobs::Blobs;
use super::directory::{Directory, failed};
use super::frame::{self, Flaw};
use super::journal::{Place, begin};
use super::record::Record;

/// Where an object stands: group, plural, namespace, name.
type Where = (String, String, String, String);

/// A store, and the region that it is in.
#[derive(Clone, Debug)]
pub(in crate::up) struct StoredStore {
    pub(in crate::up) region: String,
    pub(in crate::up) store: Store,
}

/// What was kept.
#[derive(Debug, Default)]
pub(in crate::up) struct Stored {
    objects: BTreeMap<Where, Kept>,
    version: u64,
    /// By name.
    pub(in crate::up) stores: BTreeMap<String, StoredStore>,
    tokens: BTreeMap<[u8; 32], Issued>,
    /// Seconds that the clock is ahead.
    pub(in crate::up) ahead: i64,
    /// By which hosts backends know the store that is served.
    pub(in crate::up) hosts: BTreeSet<String>,
    /// Whether there is what a simulator begins with.
    pub(in crate::up) furnished: bool,
    ended: bool,
}

impl Stored {
    /// The objects of the cluster.
    pub(in crate::up) fn objects(&self) -> impl Iterator<Item = Kept> + '_ {
        self.objects.values().cloned()
    }

    /// The version of the last change, of an object that is gone too.
    pub(in crate::up) fn version(&self) -> u64 {
        self.version
    }

    /// Whether nothing was ever kept.
    pub(in crate::up) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The tokens that were handed out.
    pub(in crate::up) fn tokens(&self) -> Vec<Issued> {
        self.tokens.values().cloned().collect()
    }

    /// Takes in a record; stores are made by this.
    ///
    /// # Errors
    /// In one sentence, where it makes no sense.
    pub(super) fn take(&mut self, record: Record, make: &dyn Fn(&str, &str) -> Store) -> Result<(), String> {
        match record {
            Record::Object(kept) => {
                self.version = self.version.max(kept.version);
                let place = (kept.group.clone(), kept.plural.clone(), kept.namespace.clone(), kept.name.clone());
                match kept.object {
                    Some(_) => drop(self.objects.insert(place, kept)),
                    None => drop(self.objects.remove(&place)),
                }
            }
            Record::Store { name, region } => {
                if let Entry::Vacant(place) = self.stores.entry(name) {
                    let store = make(place.key(), &region);
                    place.insert(StoredStore { region, store });
                }
            }
            Record::Change { store, document } => {
                let found = self.stores.get(&store).ok_or_else(|| format!("there is no store {store}"))?;
                found.store.restore([&document[..]])?;
            }
            Record::Token(issued) => drop(self.tokens.insert(issued.hash, issued)),
            Record::Clock(ahead) => self.ahead = ahead,
            Record::Main(host) => drop(self.hosts.insert(host)),
            Record::Furnished(is) => self.furnished = is,
            Record::Nothing => {
                self.objects.clear();
                self.tokens.clear();
                self.furnished = false;
            }
            Record::End => self.ended = true,
        }
        Ok(())
    }

    /// Reads a file; says how many bytes of it are whole.
    fn read(&mut self, path: &Path, make: &dyn Fn(&str, &str) -> Store) -> Result<Whole, String> {
        let bytes = fs::read(path).map_err(|error| failed("read", path, &error))?;
        let frames = frame::frames(&bytes).map_err(|flaw| of(&flaw, path))?;
        for content in &frames.contents {
            for line in content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let taken = Record::read(line).and_then(|record| self.take(record, make));
                taken.map_err(|why| format!("{} can't be read: {why}; nothing was changed", path.display()))?;
            }
        }
        Ok(Whole { whole: frames.whole as u64, all: bytes.len() as u64 })
    }
}

/// How much of a file is whole.
struct Whole {
    whole: u64,
    all: u64,
}

/// The sentence about a file that can't be used.
pub(in crate::up) fn of(flaw: &Flaw, path: &Path) -> String {
    let path = path.display();
    match flaw {
        Flaw::Foreign => format!("{path} isn't data of a simulator; nothing was changed"),
        Flaw::Newer(version) => format!(
            "{path} was written by a newer stowage-sim, in form {version} of data; this one reads form {}; nothing was \
             changed",
            frame::VERSION
        ),
        Flaw::Broken(at) => format!(
            "{path} is damaged at byte {at}, and whole records follow; nothing was changed: bring back a copy of the \
             directory, or begin another one"
        ),
    }
}

/// Reads all that there is, and where it goes on.
///
/// # Errors
/// In one sentence; the directory is as it was, then.
pub(super) fn load(
    directory: &Arc<Directory>,
    blobs: &Blobs,
    make: &dyn Fn(&str, &str) -> Store,
) -> Result<(Stored, Place), String> {
    let (snapshots, journals) = (directory.numbers("snapshot")?, directory.numbers("journal")?);
    let mut stored = Stored::default();
    let first = snapshots.last().copied().unwrap_or(0);
    if let Some(number) = snapshots.last() {
        let path = directory.snapshot(*number);
        let read = stored.read(&path, make)?;
        if !stored.ended || read.whole < read.all {
            return Err(format!("{} is damaged: it has no end; nothing was changed", path.display()));
        }
    }
    let journals: Vec<u64> = journals.into_iter().filter(|number| *number >= first).collect();
    let expected: Vec<u64> = (first..).take(journals.len()).collect();
    if journals != expected || (journals.is_empty() && !snapshots.is_empty()) {
        let missing = directory.journal(expected.into_iter().find(|it| !journals.contains(it)).unwrap_or(first));
        return Err(format!("{} is missing; nothing was changed", missing.display()));
    }
    let mut end = None;
    for number in &journals {
        let path = directory.journal(*number);
        let read = stored.read(&path, make)?;
        if read.whole < read.all && Some(number) != journals.last() {
            return Err(of(&Flaw::Broken(usize::try_from(read.whole).unwrap_or(usize::MAX)), &path));
        }
        end = Some((*number, read));
    }
    let wanted = stored.stores.values().flat_map(|stored| stored.store.blobs()).collect();
    blobs.check(&wanted)?;
    let place = open(directory, blobs, end)?;
    blobs.keep(&wanted)?;
    directory.remove_unfinished()?;
    Ok((stored, place))
}

/// Opens the last journal at its end, without what was never finished; or the first one. All that
/// was read of it is safe then: a process that was killed may have left it to the system to write.
fn open(directory: &Arc<Directory>, blobs: &Blobs, end: Option<(u64, Whole)>) -> Result<Place, String> {
    let (number, read) = end.unwrap_or((0, Whole { whole: 0, all: 0 }));
    let path = directory.journal(number);
    let opened = || -> io::Result<_> {
        if read.whole == 0 {
            return begin(directory, &path).map(|file| (file, frame::opening().len() as u64));
        }
        let file = OpenOptions::new().append(true).open(&path)?;
        if read.whole < read.all {
            file.set_len(read.whole)?;
        }
        file.sync_all()?;
        directory.sync()?;
        Ok((file, read.whole))
    };
    let (file, length) = opened().map_err(|error| failed("write", &path, &error))?;
    Ok(Place { directory: directory.clone(), blobs: blobs.clone(), number, file, length })
}
