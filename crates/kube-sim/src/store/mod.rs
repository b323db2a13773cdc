//! The store: objects, one version counter for all of them, and the change history of each kind.
//!
//! It works like etcd under an API server: every write gets the next version, a watch reads the
//! history from a version on, and old history is discarded. Objects are immutable values behind
//! `Arc`, shared by lists, histories and watches.

mod compact;
mod object;
mod replaced;
mod table;
mod tables;

use std::ops::Deref;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::Notify;

use self::compact::Compact;
use self::table::{HISTORY, Table};
use crate::admission::Admission;
use crate::change_log::{ChangeLog, Entry};
use crate::kind::{Kind, SharedKind};
use crate::meta;
use crate::observer::Author;

pub(crate) use self::object::Change;
pub use self::object::{Place, Shared};
pub use self::tables::Tables;

/// Source of the server's time, for `creationTimestamp` and similar fields. Watches wait by tokio's
/// clock instead.
pub type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The complete state of the simulated API server.
pub(crate) struct Store {
    tables: Tables,
    version: u64,
    clock: WallClock,
    seed: u64,
    drawn: u64,
    /// Maximum number of changes to remember for each kind.
    remembers: usize,
    /// `None` if every object has its tree.
    compact: Option<Compact>,
    /// Listener for changes.
    pub(crate) log: Option<Arc<dyn ChangeLog>>,
    /// Admission for checks beyond the rules of this crate.
    pub(crate) admission: Option<Arc<dyn Admission>>,
    /// Author of the current changes.
    pub(crate) author: Option<Author>,
    /// Notifies waiters of any write.
    written: Arc<Notify>,
}

impl Deref for Store {
    type Target = Tables;

    fn deref(&self) -> &Tables {
        &self.tables
    }
}

impl Store {
    pub(crate) fn new(clock: WallClock, seed: u64) -> Self {
        Self {
            tables: Tables::default(),
            version: 1,
            clock,
            seed,
            drawn: 0,
            remembers: HISTORY,
            compact: None,
            log: None,
            admission: None,
            author: None,
            written: Arc::default(),
        }
    }

    /// Returns an independent store with the same state, without watches and observers. Objects are
    /// shared.
    pub(crate) fn copy(&self, clock: WallClock) -> Self {
        let all = self.tables.all.iter().map(Table::copy).collect();
        Self {
            tables: Tables { all, revision: self.tables.revision },
            version: self.version,
            drawn: self.drawn,
            remembers: self.remembers,
            admission: self.admission.clone(),
            ..Self::new(clock, self.seed)
        }
    }

    /// Serves `kind` from now on. A second call for the same resource replaces its definition and
    /// keeps its objects.
    pub(crate) fn serve(&mut self, kind: SharedKind) {
        let (forgotten, remembers) = (self.version, self.remembers);
        self.tables.revision += 1;
        match self.tables.place_of(kind.key()) {
            Ok(place) => (self.tables.all[place].kind, self.tables.all[place].served) = (kind, true),
            Err(place) => self.tables.all.insert(place, Table::new(kind, forgotten, remembers)),
        }
    }

    /// Stops serving a resource. Its watches end, and its remaining objects are removed, because no
    /// client could read or delete them.
    pub(crate) fn withdraw(&mut self, kind: &Kind) {
        self.tables.revision += 1;
        let forgotten = self.version;
        let table = self.tables.table_mut(kind);
        (table.served, table.forgotten) = (false, forgotten);
        table.history.clear();
        table.completed_on_read.clear();
        let left = std::mem::take(&mut table.objects);
        table.news.notify_waiters();
        left.iter().for_each(|(place, old)| self.note(kind, place, Some(old), None));
    }

    /// Sets the `apiVersion` of all objects of a kind, after its definition changed the storage
    /// version. Watches are not notified, because their view of the objects does not change.
    pub(crate) fn restamp(&mut self, kind: &Kind) {
        let api_version = Value::from(kind.api_version());
        let mut stamped = Vec::new();
        for (place, object) in &mut self.tables.table_mut(kind).objects {
            if object["apiVersion"] == api_version {
                continue;
            }
            let mut value = Value::clone(object);
            value["apiVersion"] = api_version.clone();
            let old = std::mem::replace(object, Shared::new(value));
            stamped.push((place.clone(), old, object.clone()));
        }
        for (place, old, object) in &stamped {
            self.note(kind, place, Some(old), Some(object));
        }
    }

    /// Sets the number of changes to remember for each kind.
    pub(crate) fn remember(&mut self, changes: usize) {
        self.remembers = changes;
        for table in &mut self.tables.all {
            table.remembers = changes;
            table.forget();
        }
    }

    /// Returns the time by the cluster's clock.
    pub(crate) fn time(&self) -> Timestamp {
        (self.clock)()
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Advances the version by `versions`.
    pub(crate) fn pass_over(&mut self, versions: u64) {
        self.version += versions;
    }

    /// Returns the current time as RFC 3339. A server's timestamps have a resolution of one second.
    pub(crate) fn now(&self) -> String {
        let whole = Timestamp::from_second((self.clock)().as_second()).unwrap_or(Timestamp::UNIX_EPOCH);
        whole.to_string()
    }

    /// Returns the last version before the last `changes` changes of a kind, or the oldest version
    /// in the history if there were fewer.
    pub(crate) fn version_before(&self, kind: &Kind, changes: u64) -> u64 {
        let table = self.table(kind);
        let Some(back) = usize::try_from(changes).ok().and_then(|back| back.checked_sub(1)) else {
            return if changes == 0 { self.version } else { table.forgotten };
        };
        table.history.iter().rev().nth(back).map_or(table.forgotten, |change| change.version - 1)
    }

    /// Writes an object at the next version, sets its resourceVersion, and notifies watches.
    pub(crate) fn put(&mut self, kind: &Kind, mut object: Value) -> Shared {
        self.version += 1;
        let version = self.version;
        meta::set(&mut object, "resourceVersion", version.to_string().into());
        let place = Place::of(&object);
        let object = Shared::new(object);
        let table = self.tables.table_mut(kind);
        table.completed_on_read.remove(&place);
        let old = table.objects.insert(place.clone(), object.clone());
        let change = Change { version, place: place.clone(), old: old.clone(), new: object.clone(), removed: false };
        self.record(kind, change);
        self.freeze_older(kind, &place);
        self.tell(kind, &place, old.as_ref(), Some(&object));
        object
    }

    /// Records that the object was just stored without all the defaults shown by reads.
    pub(crate) fn complete_on_read(&mut self, kind: &Kind, place: Place) {
        self.tables.table_mut(kind).completed_on_read.insert(place.clone());
        let object = self.get(kind, &place);
        self.note(kind, &place, object, object);
    }

    /// Removes an object and notifies watches. Its last state gets the next version.
    pub(crate) fn remove(&mut self, kind: &Kind, place: &Place) -> Option<Shared> {
        let table = self.tables.table_mut(kind);
        let old = table.objects.remove(place)?;
        table.completed_on_read.remove(place);
        self.version += 1;
        let version = self.version;
        let mut last = Value::clone(&old);
        meta::set(&mut last, "resourceVersion", version.to_string().into());
        let new = Shared::new(last);
        let change = Change { version, place: place.clone(), old: Some(old.clone()), new: new.clone(), removed: true };
        self.record(kind, change);
        self.tell(kind, place, Some(&old), None);
        Some(new)
    }

    /// Returns a notification about any write.
    pub(crate) fn written(&self) -> Arc<Notify> {
        self.written.clone()
    }

    /// Notifies waiters and the listener of a write.
    fn tell(&self, kind: &Kind, place: &Place, old: Option<&Shared>, new: Option<&Shared>) {
        self.written.notify_waiters();
        self.log(kind, place, (old, new), true);
    }

    /// Notifies the listener of a change that is not a write.
    fn note(&self, kind: &Kind, place: &Place, old: Option<&Shared>, new: Option<&Shared>) {
        self.log(kind, place, (old, new), false);
    }

    fn log(&self, kind: &Kind, place: &Place, (old, new): (Option<&Shared>, Option<&Shared>), is_write: bool) {
        let Some(log) = &self.log else { return };
        let completed_on_read = new.is_some() && self.is_completed_on_read(kind, place);
        let (version, author) = (self.version, self.author);
        log.changed(&Entry { kind, place, version, old, new, completed_on_read, author, is_write });
    }

    /// Notifies the listener that the whole state was replaced.
    fn tell_all(&self) {
        let Some(log) = &self.log else { return };
        log.cleared();
        self.everything().for_each(|(kind, place, object)| self.note(kind, place, None, Some(object)));
    }

    /// Keeps at most this number of objects as trees from now on.
    pub(crate) fn keep_compact(&mut self, most: usize) {
        let mut compact = Compact::new(most);
        compact.freeze_all(&mut self.tables.all);
        self.compact = Some(compact);
    }

    /// Adds a change to the history, with its objects in compact form.
    fn record(&mut self, kind: &Kind, change: Change) {
        let change = match &self.compact {
            None => change,
            Some(compact) => {
                let [old, new] = [change.old.as_ref(), Some(&change.new)].map(|it| it.map(|it| compact.frozen(it)));
                Change { old, new: new.unwrap_or_else(|| change.new.clone()), ..change }
            }
        };
        self.tables.table_mut(kind).record(change);
    }

    /// Freezes the object written least recently, after a write.
    fn freeze_older(&mut self, kind: &Kind, place: &Place) {
        let written = self.table(kind).kind.clone();
        let Some(compact) = &mut self.compact else { return };
        if compact.is_due() {
            compact.refreeze(&mut self.tables.all);
        }
        let Some((kind, place)) = compact.wrote(written, place.clone()) else { return };
        let Ok(at) = self.tables.place_of(kind.key()) else { return };
        if let Some(object) = self.tables.all[at].objects.get_mut(&place) {
            *object = compact.frozen(object);
        }
    }

    /// Continues from this version, and discards the history before it.
    pub(crate) fn settle_at(&mut self, version: u64) {
        self.version = version;
        self.compact();
    }

    /// Discards the history. Earlier watches and continued lists get 410.
    pub(crate) fn compact(&mut self) {
        let version = self.version;
        for table in &mut self.tables.all {
            table.history.clear();
            table.forgotten = version;
        }
    }

    /// Returns the next value of the seeded sequence from which names are generated.
    fn draw(&mut self, purpose: &str) -> [u8; 32] {
        self.drawn += 1;
        let mut hash = Sha256::new();
        hash.update(purpose.as_bytes());
        hash.update(self.seed.to_be_bytes());
        hash.update(self.drawn.to_be_bytes());
        hash.finalize().into()
    }

    /// Returns a new UID in the form of a random UUID.
    pub(crate) fn new_uid(&mut self) -> String {
        let mut bytes = self.draw("uid");
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let hex = hex::encode(&bytes[..16]);
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// Returns the five-character suffix of a generated name, from the server's alphabet.
    pub(crate) fn new_suffix(&mut self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let bytes = self.draw("suffix");
        bytes[..5].iter().map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect()
    }
}
