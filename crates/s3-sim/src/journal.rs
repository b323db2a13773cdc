//! Tells the keeper of a store of every change, and reads what it was told.

use std::sync::Arc;

use super::blob::Home;
use super::keeper::Keeper;
use super::record::{all, entries};
use super::restore::restore;
use super::state::State;
use super::touched::Before;

/// What stands between a store and its keeper.
pub(super) struct Journal {
    home: Arc<Home>,
}

impl Journal {
    pub(super) fn new(keeper: Arc<dyn Keeper>) -> Self {
        Self { home: Arc::new(Home::new(keeper)) }
    }

    /// Where blobs are kept.
    pub(super) fn home(&self) -> &Arc<Home> {
        &self.home
    }

    /// Tells what has become of places that were looked at before.
    pub(super) fn tell(&self, state: &State, before: &Before) {
        let (gone, changes) = before.changes(state);
        if !gone.is_empty() || !changes.is_empty() {
            self.home.keeper.keep(entries(state.sequence(), gone, changes));
        }
        self.home.sweep();
    }

    /// Tells of everything that a store holds, and of places where nothing is left.
    pub(super) fn tell_all(&self, state: &State, gone: Vec<Vec<u8>>) {
        self.home.keeper.keep(entries(state.sequence(), gone, all(state)));
        self.home.sweep();
    }

    /// Makes of documents that the keeper was told what they tell of, on top of a state.
    ///
    /// # Errors
    /// In one sentence, for what is no such document; the state then holds a part of it.
    pub(super) fn restore<'d>(
        &self,
        state: &mut State,
        documents: impl IntoIterator<Item = &'d [u8]>,
    ) -> Result<(), String> {
        restore(state, documents, &self.home)
    }
}
