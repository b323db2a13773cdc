//! The store: objects, one version counter for all of them, and each kind's history.
//!
//! Like etcd under an API server: every write takes the next version, a watch reads the history
//! from a version on, and old history is forgotten. Objects are immutable values behind `Arc`, so
//! that lists, histories and watches share them.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::Notify;

use super::WallClock;
use super::compact::Compact;
use super::kept::{self, Keeper};
use super::kind::{Kind, SharedKind};
use super::meta;
use super::observer::{Author, Observer, Stored};
use super::table::{HISTORY, Table};

pub(crate) use super::shared::{Change, Place, Shared};

/// Everything that the simulated API server keeps.
pub(crate) struct State {
    /// In order of their kinds' keys.
    pub(super) tables: Vec<Table>,
    /// Counts the changes of what is served.
    pub(super) revision: u64,
    pub(super) version: u64,
    pub(super) clock: WallClock,
    pub(super) seed: u64,
    pub(super) drawn: u64,
    /// Most changes of each kind that are remembered.
    pub(super) remembers: usize,
    /// `None` = every object has its tree.
    pub(super) compact: Option<Compact>,
    /// Told of every change.
    pub(crate) observer: Option<Arc<dyn Observer>>,
    /// Told of what outlives the process.
    pub(crate) keeper: Option<Arc<dyn Keeper>>,
    /// Who makes the changes now.
    pub(crate) author: Option<Author>,
    /// Tells who waits for any change.
    pub(super) written: Arc<Notify>,
}

impl State {
    pub(crate) fn new(clock: WallClock, seed: u64) -> Self {
        let (tables, written) = (Vec::new(), Arc::default());
        Self {
            tables,
            revision: 0,
            version: 1,
            clock,
            seed,
            drawn: 0,
            remembers: HISTORY,
            compact: None,
            observer: None,
            keeper: None,
            author: None,
            written,
        }
    }

    /// A state of its own that stands as this one does: nobody watches or observes it yet. Objects
    /// are shared.
    pub(crate) fn copy(&self, clock: WallClock) -> Self {
        let tables = self.tables.iter().map(Table::copy).collect();
        Self {
            tables,
            revision: self.revision,
            version: self.version,
            drawn: self.drawn,
            remembers: self.remembers,
            ..Self::new(clock, self.seed)
        }
    }

    /// Serves `kind` from now on; a second call for the same resource replaces its definition and
    /// keeps its objects.
    pub(crate) fn serve(&mut self, kind: SharedKind) {
        let (forgotten, remembers) = (self.version, self.remembers);
        self.revision += 1;
        match self.place_of(kind.key()) {
            Ok(place) => (self.tables[place].kind, self.tables[place].served) = (kind, true),
            Err(place) => self.tables.insert(place, Table::new(kind, forgotten, remembers)),
        }
    }

    /// Serves a resource no more. Its watches end, and what is left of its objects is gone: nobody
    /// could read or delete it.
    pub(crate) fn withdraw(&mut self, kind: &Kind) {
        self.revision += 1;
        let forgotten = self.version;
        let table = self.table_mut(kind);
        (table.served, table.forgotten) = (false, forgotten);
        table.history.clear();
        table.completed_on_read.clear();
        let left = std::mem::take(&mut table.objects);
        table.news.notify_waiters();
        left.keys().for_each(|place| kept::told(self, kind, place, None));
    }

    /// Gives all objects of a kind its `apiVersion`: their definition has another storage version.
    /// No watch is told, as nothing that it shows changes.
    pub(crate) fn restamp(&mut self, kind: &Kind) {
        let api_version = Value::from(kind.api_version());
        let mut stamped = Vec::new();
        for (place, object) in &mut self.table_mut(kind).objects {
            if object["apiVersion"] == api_version {
                continue;
            }
            let mut value = Value::clone(object);
            value["apiVersion"] = api_version.clone();
            *object = Shared::new(value);
            stamped.push((place.clone(), object.clone()));
        }
        for (place, object) in &stamped {
            kept::told(self, kind, place, Some(object));
        }
    }

    /// Remembers so many changes of each kind from now on.
    pub(crate) fn remember(&mut self, changes: usize) {
        self.remembers = changes;
        for table in &mut self.tables {
            table.remembers = changes;
            table.forget();
        }
    }

    /// Whether a resource is served still.
    pub(crate) fn serves(&self, kind: &Kind) -> bool {
        self.table(kind).served
    }

    /// Another number whenever other resources are served.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// The time by the cluster's clock.
    pub(crate) fn time(&self) -> Timestamp {
        (self.clock)()
    }

    /// Where the table of this group and plural is, or where it belongs.
    pub(super) fn place_of(&self, key: (&str, &str)) -> Result<usize, usize> {
        self.tables.binary_search_by(|table| table.kind.key().cmp(&key))
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Passes over so many versions.
    pub(crate) fn pass_over(&mut self, versions: u64) {
        self.version += versions;
    }

    /// The current second as RFC 3339; a server's stamps have steps of one second.
    pub(crate) fn now(&self) -> String {
        let whole = Timestamp::from_second((self.clock)().as_second()).unwrap_or(Timestamp::UNIX_EPOCH);
        whole.to_string()
    }

    /// The served kind at this group, version and plural.
    pub(crate) fn kind(&self, group: &str, version: &str, plural: &str) -> Option<SharedKind> {
        let place = self.place_of((group, plural)).ok()?;
        let table = Some(&self.tables[place]).filter(|table| table.served && table.kind.version == version);
        table.map(|table| table.kind.clone())
    }

    /// The served kind of this `apiVersion` and `kind`.
    pub(crate) fn kind_named(&self, api_version: &str, name: &str) -> Option<SharedKind> {
        self.kinds().find(|kind| kind.kind == name && kind.api_version() == api_version)
    }

    pub(crate) fn kinds(&self) -> impl Iterator<Item = SharedKind> + '_ {
        self.tables.iter().filter(|table| table.served).map(|table| table.kind.clone())
    }

    pub(super) fn table(&self, kind: &Kind) -> &Table {
        &self.tables[self.place_of(kind.key()).expect("a kind is only got from its table, and tables stay")]
    }

    pub(super) fn table_mut(&mut self, kind: &Kind) -> &mut Table {
        let place = self.place_of(kind.key()).expect("a kind is only got from its table, and tables stay");
        &mut self.tables[place]
    }

    pub(crate) fn get(&self, kind: &Kind, place: &Place) -> Option<&Shared> {
        self.table(kind).objects.get(place)
    }

    /// Objects of a kind in order of namespace and name.
    pub(crate) fn objects(&self, kind: &Kind) -> impl Iterator<Item = (&Place, &Shared)> {
        self.table(kind).objects.iter()
    }

    /// Every object, in order of group, plural, namespace and name.
    pub(crate) fn everything(&self) -> impl Iterator<Item = (&SharedKind, &Place, &Shared)> {
        self.tables.iter().flat_map(Table::everything)
    }

    /// Every object of a resource, in the same order.
    pub(crate) fn everything_of(&self, plural: &str) -> impl Iterator<Item = (&SharedKind, &Place, &Shared)> {
        self.tables.iter().filter(move |table| table.kind.plural == plural).flat_map(Table::everything)
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

    /// The last version before the last `changes` changes of a kind; the oldest that is remembered
    /// if there were fewer.
    pub(crate) fn version_before(&self, kind: &Kind, changes: u64) -> u64 {
        let table = self.table(kind);
        let Some(back) = usize::try_from(changes).ok().and_then(|back| back.checked_sub(1)) else {
            return if changes == 0 { self.version } else { table.forgotten };
        };
        table.history.iter().rev().nth(back).map_or(table.forgotten, |change| change.version - 1)
    }

    /// Wakes when a kind changes.
    pub(crate) fn subscribe(&self, kind: &Kind) -> Arc<Notify> {
        self.table(kind).news.clone()
    }

    /// Writes an object under the next version, which it gets, and tells watches.
    pub(crate) fn put(&mut self, kind: &Kind, mut object: Value) -> Shared {
        self.version += 1;
        let version = self.version;
        meta::set(&mut object, "resourceVersion", version.to_string().into());
        let place = Place::of(&object);
        let object = Shared::new(object);
        let table = self.table_mut(kind);
        table.completed_on_read.remove(&place);
        let old = table.objects.insert(place.clone(), object.clone());
        self.record(
            kind,
            Change { version, place: place.clone(), old: old.clone(), new: object.clone(), removed: false },
        );
        self.freeze_older(kind, &place);
        kept::told(self, kind, &place, Some(&object));
        self.tell(kind, place, old, Some(object.clone()));
        object
    }

    /// Notes that the object was just stored without all the defaults that reads show.
    pub(crate) fn complete_on_read(&mut self, kind: &Kind, place: Place) {
        self.table_mut(kind).completed_on_read.insert(place.clone());
        kept::told(self, kind, &place, self.get(kind, &place));
    }

    /// Whether reads of the object show defaults that are not stored.
    pub(crate) fn is_completed_on_read(&self, kind: &Kind, place: &Place) -> bool {
        self.table(kind).completed_on_read.contains(place)
    }

    /// Removes an object and tells watches; its last state gets the next version.
    pub(crate) fn remove(&mut self, kind: &Kind, place: &Place) -> Option<Shared> {
        let table = self.table_mut(kind);
        let old = table.objects.remove(place)?;
        table.completed_on_read.remove(place);
        self.version += 1;
        let version = self.version;
        let mut last = Value::clone(&old);
        meta::set(&mut last, "resourceVersion", version.to_string().into());
        let new = Shared::new(last);
        let change = Change { version, place: place.clone(), old: Some(old.clone()), new: new.clone(), removed: true };
        self.record(kind, change);
        kept::told(self, kind, place, None);
        self.tell(kind, place.clone(), Some(old), None);
        Some(new)
    }

    /// Wakes at any change.
    pub(crate) fn written(&self) -> Arc<Notify> {
        self.written.clone()
    }

    fn tell(&self, kind: &Kind, place: Place, old: Option<Shared>, new: Option<Shared>) {
        self.written.notify_waiters();
        if let Some(observer) = &self.observer {
            let Place { namespace, name } = place;
            let [old, new] = [old, new].map(|object| object.map(|object| object.tree()));
            observer.stored(self.author, Stored { plural: kind.plural.clone(), namespace, name, old, new });
        }
    }

    /// What the history of a resource still holds, oldest first.
    pub(crate) fn past(&self, plural: &str) -> impl Iterator<Item = &Shared> {
        let tables = self.tables.iter().filter(move |table| table.kind.plural == plural);
        tables.flat_map(|table| table.history.iter().map(|change| &change.new))
    }

    /// Goes on from this version, before which nothing can be told of.
    pub(crate) fn settle_at(&mut self, version: u64) {
        self.version = version;
        self.compact();
    }

    /// Forgets all history: a watch or a continued list from before gets 410.
    pub(crate) fn compact(&mut self) {
        let version = self.version;
        for table in &mut self.tables {
            table.history.clear();
            table.forgotten = version;
        }
    }

    /// The next value of the seeded sequence that names are drawn from.
    fn draw(&mut self, purpose: &str) -> [u8; 32] {
        self.drawn += 1;
        let mut hash = Sha256::new();
        hash.update(purpose.as_bytes());
        hash.update(self.seed.to_be_bytes());
        hash.update(self.drawn.to_be_bytes());
        hash.finalize().into()
    }

    /// A fresh UID in the form of a random UUID.
    pub(crate) fn new_uid(&mut self) -> String {
        let mut bytes = self.draw("uid");
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let hex = hex::encode(&bytes[..16]);
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// Five characters for the end of a generated name, of the letters that a server uses.
    pub(crate) fn new_suffix(&mut self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let bytes = self.draw("suffix");
        bytes[..5].iter().map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect()
    }
}
