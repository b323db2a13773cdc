//! Persistence of a store: its keeper, and restoring.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Store;
use crate::keeper::Keeper;
use crate::record::{Whole, place, whole};
use crate::restore::{Contents, Sources};

impl Store {
    /// Sets the keeper. It must be set before the store has any content, and cannot be replaced.
    pub fn keep_with(&self, keeper: Arc<dyn Keeper>) {
        self.shared.keep_with(keeper);
    }

    /// Restores documents of the keeper into the store, in addition to its content.
    ///
    /// # Errors
    /// An error message about an invalid document. The store then contains a part of them.
    pub fn restore<'d>(&self, documents: impl IntoIterator<Item = &'d [u8]>) -> Result<(), String> {
        let journal = self.shared.journal().ok_or("nobody keeps this store")?;
        journal.restore(&mut self.shared.state(), documents)
    }

    /// Reads the complete content of another store, see [`Whole`]. A store with a keeper accepts
    /// only blobs in that keeper, and one without only bytes in memory.
    ///
    /// # Errors
    /// An error message about an invalid document, or about missing bytes.
    pub fn read<'d>(
        &self,
        documents: impl IntoIterator<Item = &'d [u8]>,
        sources: Sources<'_>,
    ) -> Result<Contents, String> {
        Contents::read(self.shared.home(), documents, sources)
    }

    /// Replaces the content of the store, except its accounts.
    pub fn replace(&self, contents: Contents) {
        let contents = contents.into_state();
        let mut state = self.shared.state();
        let gone = state.buckets.keys().map(|name| place(&[name])).collect();
        state.reach(contents.sequence());
        state.buckets = contents.buckets;
        if let Some(journal) = self.shared.journal() {
            journal.tell_all(&state, gone);
        }
    }

    /// Removes the content of the store, except its accounts.
    pub fn clear(&self) {
        self.replace(Contents::default());
    }

    /// Returns the referenced blobs of the keeper, each with its minimum length.
    pub fn blobs(&self) -> BTreeMap<u64, u64> {
        let mut all = BTreeMap::new();
        for piece in self.shared.state().pieces() {
            let least: &mut u64 = all.entry(piece.blob.id).or_default();
            *least = piece.from.saturating_add(piece.length).max(*least);
        }
        all
    }

    /// Returns the complete content of the store, except its accounts. Bytes that are only in
    /// memory are numbered from `first` on.
    pub fn whole(&self, first: u64) -> Whole {
        whole(&self.shared.state(), first)
    }
}
