//! A state that takes the place of another: a cluster is restored, or begins anew.

use super::compact::Compact;
use super::kept;
use super::kind::Kind;
use super::store::{Place, Shared, State};
use super::table::Table;

impl State {
    /// A state that serves and holds nothing, and goes on from this one's version and draws.
    pub(crate) fn emptied(&self) -> Self {
        let (revision, version, drawn) = (self.revision + 1, self.version, self.drawn);
        let compact = self.compact.as_ref().map(Compact::anew);
        Self {
            revision,
            version,
            drawn,
            remembers: self.remembers,
            compact,
            ..Self::new(self.clock.clone(), self.seed)
        }
    }

    /// Holds and serves what another state does, which has gone on from this one. Whoever watches
    /// finds that what they know is forgotten.
    pub(crate) fn become_another(&mut self, other: Self) {
        self.compact = other.compact;
        let before = std::mem::take(&mut self.tables);
        (self.tables, self.version, self.drawn) = (other.tables, other.version, other.drawn);
        self.revision = other.revision.max(self.revision) + 1;
        let forgotten = self.version;
        for table in before {
            let news = table.news.clone();
            match self.place_of(table.kind.key()) {
                Ok(place) => self.tables[place].news = table.news,
                Err(place) => {
                    let nothing =
                        Table { served: false, news: table.news, ..Table::new(table.kind, forgotten, table.remembers) };
                    self.tables.insert(place, nothing);
                }
            }
            news.notify_waiters();
        }
        kept::told_all(self);
        self.written.notify_waiters();
    }

    /// Puts an object where it stood, as it was; nobody is told.
    pub(crate) fn restore(&mut self, kind: &Kind, place: Place, object: Shared, completed_on_read: bool) {
        let object = self.compact.as_ref().map_or_else(|| object.clone(), |compact| compact.frozen(&object));
        let table = self.table_mut(kind);
        if completed_on_read {
            table.completed_on_read.insert(place.clone());
        }
        table.objects.insert(place, object);
    }
}
