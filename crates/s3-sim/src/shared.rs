//! State shared by all handles and interfaces of a store.

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

/// Source of a store's time.
pub type WallClock = Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>;

/// A store, without access control.
pub(super) struct Shared {
    pub(super) clock: WallClock,
    pub(super) dialect: Dialect,
    requests: AtomicU64,
    state: Mutex<State>,
    /// State before the last write, if it is to be kept.
    past: Mutex<Past>,
    /// Connection to the keeper, if the store is persistent.
    journal: OnceLock<Journal>,
}

impl Shared {
    pub(super) fn new(clock: WallClock, dialect: Dialect) -> Self {
        let (state, past) = (Mutex::default(), Mutex::default());
        Self { clock, dialect, requests: AtomicU64::new(0), state, past, journal: OnceLock::new() }
    }

    /// Locks the state, even after a panic in an earlier operation: no operation leaves it partly
    /// changed before its last fallible step.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn past(&self) -> MutexGuard<'_, Past> {
        self.past.lock()
    }

    pub(super) fn next_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Reports changes to this keeper from now on, unless there already is one.
    pub(super) fn keep_with(&self, keeper: Arc<dyn Keeper>) {
        let _ = self.journal.set(Journal::new(keeper));
    }

    pub(super) fn journal(&self) -> Option<&Journal> {
        self.journal.get()
    }

    /// Returns the blobs of the store, if it has a keeper.
    pub(super) fn home(&self) -> Option<&Arc<Home>> {
        self.journal().map(Journal::home)
    }

    /// Records the state of places before they are changed, if there is a keeper.
    pub(super) fn before(&self, state: &State, touched: impl FnOnce() -> Vec<Touched>) -> Option<Before> {
        self.journal().map(|_| Before::new(state, touched()))
    }

    /// Reports the changes at recorded places to the keeper, if there is one.
    pub(super) fn tell(&self, state: &State, before: Option<Before>) {
        if let (Some(journal), Some(before)) = (self.journal(), before) {
            journal.tell(state, &before);
        }
    }
}
