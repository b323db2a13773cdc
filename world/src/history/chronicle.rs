//! Recording of a history while a world runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_sim::{Asked, Author, Observer, Stored};
use parking_lot::{Mutex, MutexGuard};
use s3_sim::BucketSnapshot;
use seeded::VirtualClock;

use super::{Called, Event, What};

/// A history that is being recorded. Clones write to the same history.
#[derive(Clone, Debug)]
pub struct Chronicle {
    clock: VirtualClock,
    book: Arc<Mutex<Book>>,
}

#[derive(Debug, Default)]
struct Book {
    events: Vec<Event>,
    /// State of the bucket when a call arrived, by the number of the call.
    arrived: BTreeMap<u64, Arrived>,
}

/// A call that has arrived at a store.
#[derive(Debug)]
pub struct Arrived {
    /// State of its bucket on arrival.
    pub bucket: Option<BucketSnapshot>,
    /// Access key id that signed the call.
    pub key_id: Option<String>,
}

impl Chronicle {
    /// Creates an empty history.
    pub fn new(clock: VirtualClock) -> Self {
        Self::beginning_with(Vec::new(), clock)
    }

    /// Creates a history that continues from earlier events.
    pub fn beginning_with(events: Vec<Event>, clock: VirtualClock) -> Self {
        Self { clock, book: Arc::new(Mutex::new(Book { events, ..Book::default() })) }
    }

    /// Records an event that is not a call of the operator.
    pub fn note(&self, what: What) {
        self.push(None, what);
    }

    /// Records that a call arrived.
    pub fn arrives(&self, effect: u64, arrived: Arrived) {
        self.book().arrived.insert(effect, arrived);
    }

    /// Records a completed call at a store, and adds the state on arrival to `called`.
    pub fn called(&self, effect: u64, mut called: Called) {
        if let Some(arrived) = self.book().arrived.remove(&effect) {
            (called.before, called.key_id) = (arrived.bucket, arrived.key_id);
        }
        self.push(Some(effect), What::Called(called));
    }

    /// Returns all events so far.
    pub fn events(&self) -> Vec<Event> {
        self.book().events.clone()
    }

    /// Returns all events so far and removes them.
    pub fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut self.book().events)
    }

    fn push(&self, effect: Option<u64>, what: What) {
        let at = self.clock.now();
        self.book().events.push(Event { at, effect, what });
    }

    /// Locks the book. Each change is a single call, so a panic elsewhere leaves it consistent.
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
