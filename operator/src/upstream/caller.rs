//! The caller on whose behalf a store is called.

use std::collections::BTreeSet;

use parking_lot::Mutex;

use crate::turns::{Rank, Share};

/// A pass over a claim, with what is needed to share stores fairly: its namespace and its order.
#[derive(Debug, Default)]
pub struct Caller {
    namespace: String,
    claim: String,
    /// Number of passes that began before this one.
    place: u64,
    /// Backends that the pass has called, and the share it used.
    called: Mutex<BTreeSet<(String, Share)>>,
}

impl Caller {
    /// Creates the caller for a pass over the claim with this UID; `place` passes began before it.
    pub fn new(namespace: &str, claim: &str, place: u64) -> Self {
        Self { namespace: namespace.to_owned(), claim: claim.to_owned(), place, called: Mutex::default() }
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(super) fn claim(&self) -> &str {
        &self.claim
    }

    /// Returns the rank of the pass in a backend's queue.
    ///
    /// The pass counts as new at each backend and for each share. Otherwise thousands of passes
    /// that had a turn elsewhere, or for another share, would go ahead of other namespaces here.
    pub(super) fn rank(&self, backend: &str, share: Share) -> Rank {
        let begun = self.called.lock().contains(&(backend.to_owned(), share));
        if begun { Rank::Begun(self.place) } else { Rank::New { namespace: self.namespace.clone(), place: self.place } }
    }

    /// Records that the pass had a turn at a backend.
    pub(super) fn calls(&self, backend: &str, share: Share) {
        self.called.lock().insert((backend.to_owned(), share));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_begins_at_each_backend_and_for_each_thing_anew() {
        let caller = Caller::new("team-a", "uid", 7);
        let new = Rank::New { namespace: "team-a".to_owned(), place: 7 };
        assert_eq!(caller.rank("main", Share::Single), new);
        caller.calls("main", Share::Single);
        assert_eq!(caller.rank("main", Share::Single), Rank::Begun(7));
        assert_eq!(caller.rank("main", Share::Bulk), new);
        assert_eq!(caller.rank("other", Share::Single), new);
    }
}
