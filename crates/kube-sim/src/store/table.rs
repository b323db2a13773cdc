//! What the store holds of one kind: its objects, and what became of them lately.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tokio::sync::Notify;

use super::object::{Change, Place, Shared};
use crate::kind::SharedKind;

/// How many changes of one kind are remembered, unless somebody says otherwise.
pub(super) const HISTORY: usize = 10_000;

/// All objects of one kind with their history.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) kind: SharedKind,
    /// Not of a kind whose definition is gone: running watches know it still.
    pub(super) served: bool,
    pub(super) objects: BTreeMap<Place, Shared>,
    pub(super) history: VecDeque<Change>,
    /// Most of them that are remembered.
    pub(super) remembers: usize,
    /// Changes up to this version can't be told any more.
    pub(super) forgotten: u64,
    /// Objects of which defaults are not stored but filled in by every read: those of a status that
    /// a create dropped. The next write stores them, so it is one even if it changes nothing.
    pub(super) completed_on_read: BTreeSet<Place>,
    /// Tells watches of this kind that there is news, in the order in which they wait: tokio's
    /// `watch` wakes in an order that it draws, and from what no seed of ours decides.
    pub(super) news: Arc<Notify>,
}

impl Table {
    /// An empty table, of which nothing up to this version can be told, and that remembers so many
    /// changes.
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

    /// Every object, by where it stands.
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

    /// Forgets what is older than is to be remembered.
    pub(super) fn forget(&mut self) {
        while self.history.len() > self.remembers {
            let Some(oldest) = self.history.pop_front() else { return };
            self.forgotten = oldest.version;
        }
    }
}
