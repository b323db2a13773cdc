//! A state that takes the place of another: a cluster is restored, or begins anew.

use super::Store;
use super::compact::Compact;
use super::object::{Place, Shared};
use super::table::Table;
use super::tables::Tables;
use crate::kind::Kind;

impl Store {
    /// A state that serves and holds nothing, and goes on from this one's version and draws.
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

    /// Holds and serves what another state does, which has gone on from this one. Whoever watches
    /// finds that what they know is forgotten.
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

    /// Puts an object where it stood, as it was; nobody is told.
    pub(crate) fn restore(&mut self, kind: &Kind, place: Place, object: Shared, completed_on_read: bool) {
        let object = self.compact.as_ref().map_or_else(|| object.clone(), |compact| compact.frozen(&object));
        let table = self.tables.table_mut(kind);
        if completed_on_read {
            table.completed_on_read.insert(place.clone());
        }
        table.objects.insert(place, object);
    }
}
