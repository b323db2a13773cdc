//! Objects that nobody works on are held as their text: trees of JSON are six times as large.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use super::object::{Place, Shared, Thawed};
use super::table::Table;
use crate::kind::SharedKind;

/// How many objects have trees, and which were written last.
#[derive(Debug)]
pub(super) struct Compact {
    /// Most objects that have one.
    most: usize,
    /// Those written last, oldest first. One that was written again stands there again.
    written: VecDeque<(SharedKind, Place)>,
    thawed: Thawed,
}

impl Compact {
    pub(super) fn new(most: usize) -> Self {
        Self { most, written: VecDeque::new(), thawed: Thawed::default() }
    }

    /// The same for another state, which holds nothing yet.
    pub(super) fn anew(&self) -> Self {
        Self::new(self.most)
    }

    /// An object as it is held where nobody works on it.
    pub(super) fn frozen(&self, object: &Shared) -> Shared {
        object.frozen(&self.thawed)
    }

    /// Notes a write; returns the place of an object that is to be frozen by now.
    pub(super) fn wrote(&mut self, kind: SharedKind, place: Place) -> Option<(SharedKind, Place)> {
        self.written.push_back((kind, place));
        if self.written.len() > self.most { self.written.pop_front() } else { None }
    }

    /// Whether so many were read since that it is worth a look at all of them.
    pub(super) fn is_due(&self) -> bool {
        self.thawed.load(Ordering::Relaxed) > self.most
    }

    /// Freezes again what was frozen before.
    pub(super) fn refreeze(&mut self, tables: &mut [Table]) {
        self.thawed.store(0, Ordering::Relaxed);
        for object in all(tables).filter(|object| object.is_thawed()) {
            *object = object.frozen(&self.thawed);
        }
    }

    /// Freezes everything.
    pub(super) fn freeze_all(&mut self, tables: &mut [Table]) {
        self.written.clear();
        for object in all(tables) {
            *object = object.frozen(&self.thawed);
        }
    }
}

/// Every object that is held: as it is, and as the changes that are remembered have it.
fn all(tables: &mut [Table]) -> impl Iterator<Item = &mut Shared> {
    tables.iter_mut().flat_map(|table| {
        let changes = table.history.iter_mut().flat_map(|change| change.old.iter_mut().chain([&mut change.new]));
        table.objects.values_mut().chain(changes)
    })
}
