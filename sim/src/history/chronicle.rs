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
    /// Buckets as they were when a call for them arrived, by the call's number.
    before: BTreeMap<u64, Option<BucketSnapshot>>,
}

impl Chronicle {
    /// An empty one.
    pub fn new(clock: VirtualClock) -> Self {
        Self::beginning_with(Vec::new(), clock)
    }

    /// One that goes on from what has happened before.
    pub(crate) fn beginning_with(events: Vec<Event>, clock: VirtualClock) -> Self {
        Self { clock, book: Arc::new(Mutex::new(Book { events, ..Book::default() })) }
    }

    /// Notes what was no call of the operator.
    pub fn note(&self, what: What) {
        self.push(None, what);
    }

    /// A call for a bucket arrives.
    pub(crate) fn arrives(&self, effect: u64, before: Option<BucketSnapshot>) {
        self.book().before.insert(effect, before);
    }

    /// A call at a store is over; what stands in `called.before` is replaced by what was seen when
    /// it arrived.
    pub(crate) fn called(&self, effect: u64, mut called: Called) {
        called.before = self.book().before.remove(&effect).flatten();
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
