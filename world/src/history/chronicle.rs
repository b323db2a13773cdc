//! Gathers a history while a world runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_sim::{Asked, Author, Observer, Stored};
use parking_lot::{Mutex, MutexGuard};
use s3_sim::BucketSnapshot;
use seeded::VirtualClock;

use super::{Called, Event, What};

/// A history being written. Clones write the same one.
#[derive(Clone, Debug)]
pub struct Chronicle {
    clock: VirtualClock,
    book: Arc<Mutex<Book>>,
}

#[derive(Debug, Default)]
struct Book {
    events: Vec<Event>,
    /// What was seen of a call when it arrived, by its number.
    arrived: BTreeMap<u64, Arrived>,
}

/// A call that has arrived at a store.
#[derive(Debug)]
pub struct Arrived {
    /// Its bucket as it was.
    pub bucket: Option<BucketSnapshot>,
    /// The key id that it was signed with.
    pub key_id: Option<String>,
}

impl Chronicle {
    /// An empty one.
    pub fn new(clock: VirtualClock) -> Self {
        Self::beginning_with(Vec::new(), clock)
    }

    /// One that goes on from what has happened before.
    pub fn beginning_with(events: Vec<Event>, clock: VirtualClock) -> Self {
        Self { clock, book: Arc::new(Mutex::new(Book { events, ..Book::default() })) }
    }

    /// Notes what was no call of the operator.
    pub fn note(&self, what: What) {
        self.push(None, what);
    }

    /// A call arrives.
    pub fn arrives(&self, effect: u64, arrived: Arrived) {
        self.book().arrived.insert(effect, arrived);
    }

    /// A call at a store is over; what was seen when it arrived is added to `called`.
    pub fn called(&self, effect: u64, mut called: Called) {
        if let Some(arrived) = self.book().arrived.remove(&effect) {
            (called.before, called.key_id) = (arrived.bucket, arrived.key_id);
        }
        self.push(Some(effect), What::Called(called));
    }

    /// All that was noted until now.
    pub fn events(&self) -> Vec<Event> {
        self.book().events.clone()
    }

    /// All that was noted until now; it is not kept.
    pub fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut self.book().events)
    }

    fn push(&self, effect: Option<u64>, what: What) {
        let at = self.clock.now();
        self.book().events.push(Event { at, effect, what });
    }

    /// Every change of the book is one call, so a panic elsewhere leaves it whole.
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock()
    }
}

impl Observer for Chronicle {
    fn asked(&self, author: Option<Author>, write: Asked) {
        self.push(author.map(|author| author.0), What::Asked(write));
    }

    fn stored(&self, author: Option<Author>, change: Stored) {
        self.push(author.map(|author| author.0), What::Stored(change));
    }
}
