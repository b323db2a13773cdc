//! The buckets that keep versions, as far as is known, and the objects in them that are being
//! deleted, each by one request at a time.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use parking_lot::Mutex;
use stowage_api::BucketName;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

use super::versions::{MARKER, VERSION};
use crate::answer::Unhappy;
use crate::head::Ask;
use crate::refusal::{Code, Refusal};
use crate::registry::Backend;

/// Most buckets of which it is remembered whether they keep versions. Beyond, all are taken for
/// such that do.
const MOST_BUCKETS: usize = 64 << 10;
/// Longest time for which a bucket counts as one that keeps no versions because its store said so.
const SAID: Duration = Duration::from_secs(60);
/// Longest wait for another deletion of the same object.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time for which a deletion without an answer may still be carried out by the store.
const IN_DOUBT: Duration = Duration::from_secs(60);
/// Most objects that are being deleted at once.
const MOST_BUSY: usize = 1 << 20;

/// A bucket of a store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    endpoint: String,
    pub(super) bucket: BucketName,
}

impl Place {
    pub(super) fn of(backend: &Backend, ask: &Ask) -> Option<Self> {
        let bucket = ask.target.bucket()?.clone();
        Some(Self { endpoint: backend.endpoint.as_str().to_owned(), bucket })
    }
}

/// Knowledge of whether a bucket keeps versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Versions {
    /// It does, or did: what it kept is there.
    Kept,
    /// It did not at this time.
    None(Instant),
}

/// The buckets that keep versions, and the objects in them that are being deleted.
#[derive(Default)]
pub(super) struct Deletions {
    buckets: Mutex<HashMap<Place, Versions>>,
    /// Hashes of the objects: of two with the same hash one waits for the other.
    busy: Mutex<HashSet<u64>>,
    freed: Notify,
    hashes: RandomState,
}

impl Deletions {
    /// True where a bucket keeps versions, false where nothing says so.
    pub(super) fn keeps(&self, place: &Place) -> bool {
        let buckets = self.buckets.lock();
        match buckets.get(place) {
            Some(versions) => *versions == Versions::Kept,
            None => buckets.len() >= MOST_BUCKETS,
        }
    }

    /// The same, `None` where a store would have to be asked.
    pub(super) fn known(&self, place: &Place, now: Instant) -> Option<bool> {
        match self.buckets.lock().get(place) {
            Some(Versions::Kept) => Some(true),
            Some(Versions::None(at)) if now.duration_since(*at) < SAID => Some(false),
            Some(Versions::None(_)) | None => None,
        }
    }

    pub(super) fn note(&self, place: Place, versions: Versions) {
        let mut buckets = self.buckets.lock();
        if buckets.get(&place) == Some(&Versions::Kept) {
            return;
        }
        if buckets.len() >= MOST_BUCKETS && !buckets.contains_key(&place) {
            buckets.retain(|_, versions| *versions == Versions::Kept);
        }
        if buckets.len() < MOST_BUCKETS || buckets.contains_key(&place) {
            buckets.insert(place, versions);
        }
    }

    /// Learns from an answer. A bucket whose versioning is suspended gives the id `null`.
    pub(super) fn learn(&self, place: Place, headers: &HeaderMap) {
        let has_version = headers.get(VERSION).is_some_and(|id| !id.is_empty() && id != "null");
        if has_version || headers.contains_key(MARKER) {
            self.note(place, Versions::Kept);
        }
    }

    /// The turn to delete these objects, once nobody else deletes one of them.
    ///
    /// # Errors
    /// `SlowDown` where that takes too long.
    pub(super) async fn turn(self: &Arc<Self>, place: &Place, keys: &[&str]) -> Result<Turn, Refusal> {
        let keys: Vec<u64> = keys.iter().map(|key| self.hashes.hash_one((place, key))).collect();
        let until = Instant::now() + PATIENCE;
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if self.take(&keys) {
                return Ok(Turn { keys, is_open: false, deletions: self.clone() });
            }
            if timeout_at(until, freed).await.is_err() {
                let message = "This object is being deleted. Please try again.";
                return Err(Refusal::new(Code::SlowDown, message));
            }
        }
    }

    fn take(&self, keys: &[u64]) -> bool {
        let mut busy = self.busy.lock();
        let is_free = busy.len() + keys.len() <= MOST_BUSY && !keys.iter().any(|key| busy.contains(key));
        if is_free {
            busy.extend(keys);
        }
        is_free
    }

    fn free(&self, keys: &[u64]) {
        let mut busy = self.busy.lock();
        for key in keys {
            busy.remove(key);
        }
        drop(busy);
        self.freed.notify_waiters();
    }
}

/// Objects that nobody else deletes through this gateway, until this is dropped.
pub(super) struct Turn {
    keys: Vec<u64>,
    /// The store was asked to delete, and has not answered.
    pub(super) is_open: bool,
    deletions: Arc<Deletions>,
}

impl Turn {
    /// Notes an outcome: after an error of the store or none at all it may still delete.
    pub(super) fn ends<T>(&mut self, outcome: &Result<T, Unhappy>) {
        self.is_open = outcome.as_ref().is_err_and(|unhappy| unhappy.status.is_server_error());
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let (deletions, keys) = (self.deletions.clone(), std::mem::take(&mut self.keys));
        match Handle::try_current() {
            Ok(runtime) if self.is_open => {
                runtime.spawn(async move {
                    sleep(IN_DOUBT).await;
                    deletions.free(&keys);
                });
            }
            _ => deletions.free(&keys),
        }
    }
}

#[cfg(test)]
#[path = "deleting_tests.rs"]
mod tests;
