//! What all handles to a store, and all its faces, have in common.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};

use super::blob::Home;
use super::dialect::Dialect;
use super::journal::Journal;
use super::keeper::Keeper;
use super::past::Past;
use super::state::State;
use super::touched::{Before, Touched};

/// Where a store reads the time from.
pub type WallClock = Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>;

/// A store, without who may ask it for what.
pub(super) struct Shared {
    pub(super) clock: WallClock,
    pub(super) dialect: Dialect,
    requests: AtomicU64,
    state: Mutex<State>,
    /// The state before the last write, if that is to be remembered.
    past: Mutex<Past>,
    /// Tells its keeper, if it outlives the process.
    journal: OnceLock<Journal>,
}

impl Shared {
    pub(super) fn new(clock: WallClock, dialect: Dialect) -> Self {
        let (state, past) = (Mutex::default(), Mutex::default());
        Self { clock, dialect, requests: AtomicU64::new(0), state, past, journal: OnceLock::new() }
    }

    /// The state, also after a panic in an earlier operation: no operation leaves it half-changed
    /// before its last fallible step.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn past(&self) -> MutexGuard<'_, Past> {
        self.past.lock()
    }

    pub(super) fn next_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// From now on this keeper is told of changes, unless there is one.
    pub(super) fn keep_with(&self, keeper: Arc<dyn Keeper>) {
        let _ = self.journal.set(Journal::new(keeper));
    }

    pub(super) fn journal(&self) -> Option<&Journal> {
        self.journal.get()
    }

    /// Where blobs are kept, if they are.
    pub(super) fn home(&self) -> Option<&Arc<Home>> {
        self.journal().map(Journal::home)
    }

    /// Looks at places before they are touched, if a keeper has to be told of them.
    pub(super) fn before(&self, state: &State, touched: impl FnOnce() -> Vec<Touched>) -> Option<Before> {
        self.journal().map(|_| Before::new(state, touched()))
    }

    /// Tells the keeper, if there is one, what has become of places that were looked at before.
    pub(super) fn tell(&self, state: &State, before: Option<Before>) {
        if let (Some(journal), Some(before)) = (self.journal(), before) {
            journal.tell(state, &before);
        }
    }
}
