//! Compact storage of objects as text, because JSON trees are six times as large.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use super::object::{Place, Shared, Thawed};
use super::table::Table;
use crate::kind::SharedKind;

/// Number of objects that have trees, and the objects written last.
#[derive(Debug)]
pub(super) struct Compact {
    /// Maximum number of objects with trees.
    most: usize,
    /// Objects written last, oldest first. An object that is written again is added again.
    written: VecDeque<(SharedKind, Place)>,
    thawed: Thawed,
}

impl Compact {
    pub(super) fn new(most: usize) -> Self {
        Self { most, written: VecDeque::new(), thawed: Thawed::default() }
    }

    /// Returns the same settings for an empty state.
    pub(super) fn anew(&self) -> Self {
        Self::new(self.most)
    }

    /// Returns an object in compact form.
    pub(super) fn frozen(&self, object: &Shared) -> Shared {
        object.frozen(&self.thawed)
    }

    /// Records a write. Returns the place of an object that has to be frozen now.
    pub(super) fn wrote(&mut self, kind: SharedKind, place: Place) -> Option<(SharedKind, Place)> {
        self.written.push_back((kind, place));
        if self.written.len() > self.most { self.written.pop_front() } else { None }
    }

    /// Returns true if enough objects were read since the last time to justify a pass over all of
    /// them.
    pub(super) fn is_due(&self) -> bool {
        self.thawed.load(Ordering::Relaxed) > self.most
    }

    /// Freezes the objects that were frozen before.
    pub(super) fn refreeze(&mut self, tables: &mut [Table]) {
        self.thawed.store(0, Ordering::Relaxed);
        for object in all(tables).filter(|object| object.is_thawed()) {
            *object = object.frozen(&self.thawed);
        }
    }

    /// Freezes all objects.
    pub(super) fn freeze_all(&mut self, tables: &mut [Table]) {
        self.written.clear();
        for object in all(tables) {
            *object = object.frozen(&self.thawed);
        }
    }
}

/// Iterates over every object: the current ones, and those in the change history.
fn all(tables: &mut [Table]) -> impl Iterator<Item = &mut Shared> {
    tables.iter_mut().flat_map(|table| {
        let changes = table.history.iter_mut().flat_map(|change| change.old.iter_mut().chain([&mut change.new]));
        table.objects.values_mut().chain(changes)
    })
}
