//! A store that outlives the process: its keeper, and what it is made again of.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Store;
use crate::keeper::Keeper;
use crate::record::{Whole, place, whole};
use crate::restore::{Contents, Sources};

impl Store {
    /// From now on this keeper keeps what the store holds. Has to be said before it holds anything;
    /// a keeper that is there stays.
    pub fn keep_with(&self, keeper: Arc<dyn Keeper>) {
        self.shared.keep_with(keeper);
    }

    /// Makes of documents that its keeper was told what they tell of, on top of what the store
    /// holds.
    ///
    /// # Errors
    /// In one sentence, for what is no such document; the store then holds a part of it.
    pub fn restore<'d>(&self, documents: impl IntoIterator<Item = &'d [u8]>) -> Result<(), String> {
        let journal = self.shared.journal().ok_or("nobody keeps this store")?;
        journal.restore(&mut self.shared.state(), documents)
    }

    /// Reads everything that another store has told of, see [`Whole`]. A store with a keeper takes
    /// blobs of that alone, one without none.
    ///
    /// # Errors
    /// In one sentence, for what is no such document, and for bytes that aren't there.
    pub fn read<'d>(
        &self,
        documents: impl IntoIterator<Item = &'d [u8]>,
        sources: Sources<'_>,
    ) -> Result<Contents, String> {
        Contents::read(self.shared.home(), documents, sources)
    }

    /// Holds this in place of all that it holds, accounts apart.
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

    /// Takes everything out of the store, accounts apart.
    pub fn clear(&self) {
        self.replace(Contents::default());
    }

    /// The blobs of its keeper that it refers to, with how many bytes each has at least.
    pub fn blobs(&self) -> BTreeMap<u64, u64> {
        let mut all = BTreeMap::new();
        for piece in self.shared.state().pieces() {
            let least: &mut u64 = all.entry(piece.blob.id).or_default();
            *least = piece.from.saturating_add(piece.length).max(*least);
        }
        all
    }

    /// Everything that the store holds, its accounts apart. Bytes that only memory holds are given
    /// numbers from this one on.
    pub fn whole(&self, first: u64) -> Whole {
        whole(&self.shared.state(), first)
    }
}
