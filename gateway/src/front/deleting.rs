//! A cache of the buckets known to keep versions, and locks on the objects being deleted in them:
//! one deletion of an object at a time.

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

/// Maximum number of buckets in the cache. Once it is full, an unknown bucket is assumed to keep
/// versions.
const MOST_BUCKETS: usize = 64 << 10;
/// Maximum age at which a store's answer that a bucket keeps no versions is still trusted.
const SAID: Duration = Duration::from_secs(60);
/// Maximum wait for another deletion of the same object.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time after which a store no longer carries out a deletion that it has not answered.
const IN_DOUBT: Duration = Duration::from_secs(60);
/// Maximum number of objects being deleted at once.
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

/// The cached versioning state of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Versions {
    /// The bucket keeps versions, or did: its old versions still exist.
    Kept,
    /// The bucket kept no versions at this time.
    None(Instant),
}

/// The buckets that keep versions, and the objects being deleted in them.
#[derive(Default)]
pub(super) struct Deletions {
    buckets: Mutex<HashMap<Place, Versions>>,
    /// Hashes of the objects. Two objects with the same hash wait for each other.
    busy: Mutex<HashSet<u64>>,
    freed: Notify,
    hashes: RandomState,
}

impl Deletions {
    /// Returns true if a bucket may keep versions: it is known to, or it is unknown and the cache
    /// is full.
    pub(super) fn keeps(&self, place: &Place) -> bool {
        let buckets = self.buckets.lock();
        match buckets.get(place) {
            Some(versions) => *versions == Versions::Kept,
            None => buckets.len() >= MOST_BUCKETS,
        }
    }

    /// Returns whether a bucket keeps versions, or `None` if the store has to be asked.
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

    /// Learns from a response that a bucket keeps versions. A bucket with suspended versioning
    /// returns the version id `null`.
    pub(super) fn learn(&self, place: Place, headers: &HeaderMap) {
        let has_version = headers.get(VERSION).is_some_and(|id| !id.is_empty() && id != "null");
        if has_version || headers.contains_key(MARKER) {
            self.note(place, Versions::Kept);
        }
    }

    /// Waits until no other request deletes one of these objects, then locks them.
    ///
    /// # Errors
    /// `SlowDown` if that takes too long.
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

/// A lock on objects. Until it is dropped, no other request through this gateway deletes them.
pub(super) struct Turn {
    keys: Vec<u64>,
    /// True while the store has a deletion that it has not answered.
    pub(super) is_open: bool,
    deletions: Arc<Deletions>,
}

impl Turn {
    /// Records the outcome of a deletion. After a server error or no response the store may still
    /// delete.
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
