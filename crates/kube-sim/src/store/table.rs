//! The stored objects of a kind, and its recent changes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tokio::sync::Notify;

use super::object::{Change, Place, Shared};
use crate::kind::SharedKind;

/// Default number of changes to remember for each kind.
pub(super) const HISTORY: usize = 10_000;

/// The objects of a kind with their history.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) kind: SharedKind,
    /// False if the definition of the kind was removed. Running watches still refer to it.
    pub(super) served: bool,
    pub(super) objects: BTreeMap<Place, Shared>,
    pub(super) history: VecDeque<Change>,
    /// Maximum number of changes in the history.
    pub(super) remembers: usize,
    /// Version up to which changes are no longer in the history.
    pub(super) forgotten: u64,
    /// Objects with defaults that are not stored but added by every read: those of a status that a
    /// create dropped. The next write stores them, so it counts as a change even if nothing else
    /// differs.
    pub(super) completed_on_read: BTreeSet<Place>,
    /// Notifies the watches of this kind of changes, in the order in which they wait. Tokio's
    /// `watch` channel wakes receivers in a random order that a seed cannot control.
    pub(super) news: Arc<Notify>,
}

impl Table {
    /// Creates an empty table whose history begins after `forgotten`, and that remembers
    /// `remembers` changes.
    pub(super) fn new(kind: SharedKind, forgotten: u64, remembers: usize) -> Self {
        Self {
            kind,
            served: true,
            objects: BTreeMap::new(),
            history: VecDeque::new(),
            remembers,
            forgotten,
            completed_on_read: BTreeSet::new(),
            news: Arc::default(),
        }
    }

    /// Iterates over every object, ordered by place.
    pub(super) fn everything(&self) -> impl Iterator<Item = (&SharedKind, &Place, &Shared)> {
        self.objects.iter().map(|(place, object)| (&self.kind, place, object))
    }

    pub(super) fn copy(&self) -> Self {
        Self {
            kind: self.kind.clone(),
            served: self.served,
            objects: self.objects.clone(),
            history: self.history.clone(),
            remembers: self.remembers,
            forgotten: self.forgotten,
            completed_on_read: self.completed_on_read.clone(),
            news: Arc::default(),
        }
    }

    pub(super) fn record(&mut self, change: Change) {
        self.history.push_back(change);
        self.forget();
        self.news.notify_waiters();
    }

    /// Removes the oldest changes in excess of the limit.
    pub(super) fn forget(&mut self) {
        while self.history.len() > self.remembers {
            let Some(oldest) = self.history.pop_front() else { return };
            self.forgotten = oldest.version;
        }
    }
}
