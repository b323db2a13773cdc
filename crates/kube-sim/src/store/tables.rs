//! What is stored, kind by kind, to be read.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Notify;

use super::object::{Change, Place, Shared};
use super::table::Table;
use crate::kind::{Kind, SharedKind};

/// All served kinds with their objects and what became of those lately.
#[derive(Debug, Default)]
pub struct Tables {
    /// In order of their kinds' keys.
    pub(super) all: Vec<Table>,
    /// Counts the changes of what is served.
    pub(super) revision: u64,
}

impl Tables {
    /// Whether a resource is served still.
    pub fn serves(&self, kind: &Kind) -> bool {
        self.table(kind).served
    }

    /// Another number whenever other resources are served.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Where the table of this group and plural is, or where it belongs.
    pub(super) fn place_of(&self, key: (&str, &str)) -> Result<usize, usize> {
        self.all.binary_search_by(|table| table.kind.key().cmp(&key))
    }

    /// The served kind at this group, version and plural.
    pub fn kind(&self, group: &str, version: &str, plural: &str) -> Option<SharedKind> {
        let place = self.place_of((group, plural)).ok()?;
        let table = Some(&self.all[place]).filter(|table| table.served && table.kind.version == version);
        table.map(|table| table.kind.clone())
    }

    /// The served kind of this `apiVersion` and `kind`.
    pub fn kind_named(&self, api_version: &str, name: &str) -> Option<SharedKind> {
        self.kinds().find(|kind| kind.kind == name && kind.api_version() == api_version)
    }

    /// Every served kind, in order of group and plural.
    pub fn kinds(&self) -> impl Iterator<Item = SharedKind> + '_ {
        self.all.iter().filter(|table| table.served).map(|table| table.kind.clone())
    }

    /// The table of a kind.
    pub(super) fn table(&self, kind: &Kind) -> &Table {
        &self.all[self.place_of(kind.key()).expect("a kind is only got from its table, and tables stay")]
    }

    /// The same, to be changed.
    pub(super) fn table_mut(&mut self, kind: &Kind) -> &mut Table {
        let place = self.place_of(kind.key()).expect("a kind is only got from its table, and tables stay");
        &mut self.all[place]
    }

    /// A stored object.
    pub fn get(&self, kind: &Kind, place: &Place) -> Option<&Shared> {
        self.table(kind).objects.get(place)
    }

    /// Objects of a kind in order of namespace and name.
    pub fn objects(&self, kind: &Kind) -> impl Iterator<Item = (&Place, &Shared)> {
        self.table(kind).objects.iter()
    }

    /// Every object, in order of group, plural, namespace and name.
    pub(crate) fn everything(&self) -> impl Iterator<Item = (&SharedKind, &Place, &Shared)> {
        self.all.iter().flat_map(Table::everything)
    }

    /// Every object of a resource, in the same order.
    pub(crate) fn everything_of(&self, plural: &str) -> impl Iterator<Item = (&SharedKind, &Place, &Shared)> {
        self.all.iter().filter(move |table| table.kind.plural == plural).flat_map(Table::everything)
    }

    /// The objects of a kind as they stood at `version`; `None` if that is forgotten.
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

    /// The changes of a kind after `version`, oldest first; an error names the oldest version that
    /// could still be asked for.
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

    /// How many changes of a kind are remembered.
    pub(crate) fn remembered(&self, kind: &Kind) -> u64 {
        self.table(kind).history.len() as u64
    }

    /// Wakes when a kind changes.
    pub(crate) fn subscribe(&self, kind: &Kind) -> Arc<Notify> {
        self.table(kind).news.clone()
    }

    /// Whether reads of the object show defaults that are not stored.
    pub(crate) fn is_completed_on_read(&self, kind: &Kind, place: &Place) -> bool {
        self.table(kind).completed_on_read.contains(place)
    }

    /// What the history of a resource still holds, oldest first.
    pub(crate) fn past(&self, plural: &str) -> impl Iterator<Item = &Shared> {
        let tables = self.all.iter().filter(move |table| table.kind.plural == plural);
        tables.flat_map(|table| table.history.iter().map(|change| &change.new))
    }
}
