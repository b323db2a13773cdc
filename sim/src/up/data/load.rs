//! Loading of a data directory.

use std::collections::{BTreeMap, BTreeSet};

use kube_front::Issued;
use kube_sim::Kept;
use s3_sim::Store;

use super::blobs::Blobs;
use super::database::Database;
use super::record::Record;

/// A store and its region.
#[derive(Clone, Debug)]
pub(in crate::up) struct StoredStore {
    pub(in crate::up) region: String,
    pub(in crate::up) store: Store,
}

/// The saved state.
#[derive(Debug, Default)]
pub(in crate::up) struct Stored {
    /// The objects of the cluster.
    pub(in crate::up) objects: Vec<Kept>,
    /// The version of the last change, including changes of deleted objects.
    pub(in crate::up) version: u64,
    /// Stores by name.
    pub(in crate::up) stores: BTreeMap<String, StoredStore>,
    /// The issued tokens.
    pub(in crate::up) tokens: Vec<Issued>,
    /// The clock's offset from the machine's time, in seconds.
    pub(in crate::up) ahead: i64,
    /// The hosts by which backends know the served store.
    pub(in crate::up) hosts: BTreeSet<String>,
    /// True if the initial manifests were applied.
    pub(in crate::up) furnished: bool,
}

impl Stored {
    /// Adds a record. `make` creates a store by its name and region.
    ///
    /// # Errors
    /// Returns an error message if the record is invalid.
    fn take(&mut self, record: Record, make: &dyn Fn(&str, &str) -> Store) -> Result<(), String> {
        match record {
            Record::Object(kept) => {
                self.version = self.version.max(kept.version);
                self.objects.push(kept);
            }
            Record::Store { name, region } => {
                let store = make(&name, &region);
                self.stores.insert(name, StoredStore { region, store });
            }
            Record::Change { store, document } => {
                let found = self.stores.get(&store).ok_or_else(|| format!("there is no store {store}"))?;
                found.store.restore([&document[..]])?;
            }
            Record::Token(issued) => self.tokens.push(issued),
            Record::Clock(ahead) => self.ahead = ahead,
            Record::Main(host) => drop(self.hosts.insert(host)),
            Record::Furnished(is) => self.furnished = is,
            Record::Version(version) => self.version = self.version.max(version),
            Record::End => return Err("a snapshot ends in it".to_owned()),
        }
        Ok(())
    }
}

/// Loads the saved state. `make` creates a store by its name and region.
///
/// # Errors
/// Returns an error message if a record can't be read. The bytes of objects are unchanged then.
pub(super) fn load(database: &Database, blobs: &Blobs, make: &dyn Fn(&str, &str) -> Store) -> Result<Stored, String> {
    let mut stored = Stored::default();
    database.read(|line| {
        let taken = Record::read(line).and_then(|record| stored.take(record, make));
        taken.map_err(|why| format!("{} can't be read: {why}", database.path().display()))
    })?;
    let wanted = stored.stores.values().flat_map(|stored| stored.store.blobs()).collect();
    blobs.check(&wanted)?;
    blobs.keep(&wanted)?;
    Ok(stored)
}
