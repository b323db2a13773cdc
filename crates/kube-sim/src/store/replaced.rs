//! Replacement of a store's state, when a cluster is restored or reset.

use super::Store;
use super::compact::Compact;
use super::object::{Place, Shared};
use super::table::Table;
use super::tables::Tables;
use crate::kind::Kind;

impl Store {
    /// Returns an empty state that serves nothing, and continues the versions and generated names
    /// of this one.
    pub(crate) fn emptied(&self) -> Self {
        Self {
            tables: Tables { revision: self.tables.revision + 1, ..Tables::default() },
            version: self.version,
            drawn: self.drawn,
            remembers: self.remembers,
            compact: self.compact.as_ref().map(Compact::anew),
            ..Self::new(self.clock.clone(), self.seed)
        }
    }

    /// Replaces this state by `other`, which was derived from it. Watches find that their version
    /// is no longer in the history.
    pub(crate) fn become_another(&mut self, other: Self) {
        self.compact = other.compact;
        let revision = other.tables.revision.max(self.tables.revision) + 1;
        let before = std::mem::replace(&mut self.tables, other.tables);
        (self.version, self.drawn, self.tables.revision) = (other.version, other.drawn, revision);
        let forgotten = self.version;
        for table in before.all {
            let news = table.news.clone();
            match self.tables.place_of(table.kind.key()) {
                Ok(place) => self.tables.all[place].news = table.news,
                Err(place) => {
                    let nothing =
                        Table { served: false, news: table.news, ..Table::new(table.kind, forgotten, table.remembers) };
                    self.tables.all.insert(place, nothing);
                }
            }
            news.notify_waiters();
        }
        self.tell_all();
        self.written.notify_waiters();
    }

    /// Inserts an object at its place, unchanged and without notification.
    pub(crate) fn restore(&mut self, kind: &Kind, place: Place, object: Shared, completed_on_read: bool) {
        let object = self.compact.as_ref().map_or_else(|| object.clone(), |compact| compact.frozen(&object));
        let table = self.tables.table_mut(kind);
        if completed_on_read {
            table.completed_on_read.insert(place.clone());
        }
        table.objects.insert(place, object);
    }
}
