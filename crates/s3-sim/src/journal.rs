//! Reports every change of a store to its keeper, and restores the store from these reports.

use std::sync::Arc;

use super::blob::Home;
use super::keeper::Keeper;
use super::record::{all, entries};
use super::restore::restore;
use super::state::State;
use super::touched::Before;

/// The connection between a store and its keeper.
pub(super) struct Journal {
    home: Arc<Home>,
}

impl Journal {
    pub(super) fn new(keeper: Arc<dyn Keeper>) -> Self {
        Self { home: Arc::new(Home::new(keeper)) }
    }

    /// Returns the blobs of the store.
    pub(super) fn home(&self) -> &Arc<Home> {
        &self.home
    }

    /// Reports the changes at places whose previous state is known.
    pub(super) fn tell(&self, state: &State, before: &Before) {
        let (gone, changes) = before.changes(state);
        if !gone.is_empty() || !changes.is_empty() {
            self.home.keeper.keep(entries(state.sequence(), gone, changes));
        }
        self.home.sweep();
    }

    /// Reports the complete state of a store, and the places that no longer exist.
    pub(super) fn tell_all(&self, state: &State, gone: Vec<Vec<u8>>) {
        self.home.keeper.keep(entries(state.sequence(), gone, all(state)));
        self.home.sweep();
    }

    /// Restores documents of the keeper into a state.
    ///
    /// # Errors
    /// An error message about an invalid document. The state then contains a part of them.
    pub(super) fn restore<'d>(
        &self,
        state: &mut State,
        documents: impl IntoIterator<Item = &'d [u8]>,
    ) -> Result<(), String> {
        restore(state, documents, &self.home)
    }
}
