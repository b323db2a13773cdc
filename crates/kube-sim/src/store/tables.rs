//! Read access to the stored objects, kind by kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Notify;

use super::object::{Change, Place, Shared};
use super::table::Table;
use crate::kind::{Kind, SharedKind};

/// All served kinds with their objects and recent changes.
#[derive(Debug, Default)]
pub struct Tables {
    /// Tables in the order of their kinds' keys.
    pub(super) all: Vec<Table>,
    /// Number of changes of the set of served resources.
    pub(super) revision: u64,
}

impl Tables {
    /// Returns true if a resource is still served.
    pub fn serves(&self, kind: &Kind) -> bool {
        self.table(kind).served
    }

    /// Returns a number that changes whenever the set of served resources does.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the index of the table for this group and plural, or the index at which to insert
    /// it.
    pub(super) fn place_of(&self, key: (&str, &str)) -> Result<usize, usize> {
        self.all.binary_search_by(|table| table.kind.key().cmp(&key))
    }

    /// Returns the served kind with this group, version and plural.
    pub fn kind(&self, group: &str, version: &str, plural: &str) -> Option<SharedKind> {
        let place = self.place_of((group, plural)).ok()?;
        let table = Some(&self.all[place]).filter(|table| table.served && table.kind.version == version);
        table.map(|table| table.kind.clone())
    }

    /// Returns the served kind with this `apiVersion` and `kind`.
    pub fn kind_named(&self, api_version: &str, name: &str) -> Option<SharedKind> {
        self.kinds().find(|kind| kind.kind == name && kind.api_version() == api_version)
    }

    /// Iterates over every served kind, in order of group and plural.
    pub fn kinds(&self) -> impl Iterator<Item = SharedKind> + '_ {
        self.all.iter().filter(|table| table.served).map(|table| table.kind.clone())
    }

    /// Returns the table of a kind.
    pub(super) fn table(&self, kind: &Kind) -> &Table {
        &self.all[self.place_of(kind.key()).expect("a kind is only got from its table, and tables stay")]
    }

    /// Returns the table of a kind, for changes.
    pub(super) fn table_mut(&mut self, kind: &Kind) -> &mut Table {
        let place = self.place_of(kind.key()).expect("a kind is only got from its table, and tables stay");
        &mut self.all[place]
    }

    /// Returns a stored object.
    pub fn get(&self, kind: &Kind, place: &Place) -> Option<&Shared> {
        self.table(kind).objects.get(place)
    }

    /// Iterates over the objects of a kind, in order of namespace and name.
    pub fn objects(&self, kind: &Kind) -> impl Iterator<Item = (&Place, &Shared)> {
        self.table(kind).objects.iter()
    }

    /// Iterates over every object, in order of group, plural, namespace and name.
    pub(crate) fn everything(&self) -> impl Iterator<Item = (&SharedKind, &Place, &Shared)> {
        self.all.iter().flat_map(Table::everything)
    }

    /// Iterates over every object of a resource, in the same order.
    pub(crate) fn everything_of(&self, plural: &str) -> impl Iterator<Item = (&SharedKind, &Place, &Shared)> {
        self.all.iter().filter(move |table| table.kind.plural == plural).flat_map(Table::everything)
    }

    /// Returns the objects of a kind at `version`; `None` if it is no longer in the history.
    pub(crate) fn objects_at(&self, kind: &Kind, version: u64) -> Option<BTreeMap<&Place, &Shared>> {
        let table = self.table(kind);
        if version < table.forgotten {
            return None;
        }
        let mut objects: BTreeMap<_, _> = table.objects.iter().collect();
        for change in table.history.iter().rev().take_while(|change| change.version > version) {
            match &change.old {
                Some(old) => objects.insert(&change.place, old),
                None => objects.remove(&change.place),
            };
        }
        Some(objects)
    }

    /// Returns the changes of a kind after `version`, oldest first. The error is the oldest version
    /// that is available.
    pub(crate) fn changes_after(
        &self,
        kind: &Kind,
        version: u64,
    ) -> Result<impl ExactSizeIterator<Item = &Change> + use<'_>, u64> {
        let table = self.table(kind);
        if version < table.forgotten {
            return Err(table.forgotten);
        }
        let index = table.history.partition_point(|change| change.version <= version);
        Ok(table.history.range(index..))
    }

    /// Returns the number of changes of a kind in the history.
    pub(crate) fn remembered(&self, kind: &Kind) -> u64 {
        self.table(kind).history.len() as u64
    }

    /// Returns a notification about changes of a kind.
    pub(crate) fn subscribe(&self, kind: &Kind) -> Arc<Notify> {
        self.table(kind).news.clone()
    }

    /// Returns true if reads of the object show defaults that are not stored.
    pub(crate) fn is_completed_on_read(&self, kind: &Kind, place: &Place) -> bool {
        self.table(kind).completed_on_read.contains(place)
    }

    /// Iterates over the states in the history of a resource, oldest first.
    pub(crate) fn past(&self, plural: &str) -> impl Iterator<Item = &Shared> {
        let tables = self.all.iter().filter(move |table| table.kind.plural == plural);
        tables.flat_map(|table| table.history.iter().map(|change| &change.new))
    }
}
