//! Clusters in which nothing has happened yet but that the CRDs were installed. All of that follows from seed, time and
//! version, and takes longer than a short schedule's first calls: it is done once for all worlds that begin alike.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use jiff::Timestamp;

use crate::determinism::VirtualClock;
use crate::kubernetes::Cluster;

use super::definitions;

/// What a beginning follows from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Origin {
    seed: u64,
    writes_before: u64,
    at: Timestamp,
}

/// Most beginnings that are kept; then they are made anew.
const KEPT: usize = 64;

/// A cluster with the CRDs installed, in which so many writes have been before.
pub(super) fn cluster(clock: &VirtualClock, seed: u64, writes_before: u64) -> Cluster {
    static BEGINNINGS: LazyLock<Mutex<BTreeMap<Origin, Cluster>>> = LazyLock::new(Mutex::default);
    // An entry is whole or not there, whatever happened to a thread that made one.
    let mut beginnings = BEGINNINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let origin = Origin { seed, writes_before, at: clock.now() };
    if beginnings.len() >= KEPT && !beginnings.contains_key(&origin) {
        beginnings.clear();
    }
    beginnings.entry(origin).or_insert_with(|| made_apart(origin)).copy(clock.clock())
}

/// Made on a thread of its own: what is drawn on the way must not be missing in the runs that find it made.
fn made_apart(origin: Origin) -> Cluster {
    std::thread::scope(|scope| scope.spawn(|| make(origin)).join()).unwrap_or_else(|panic| resume_unwind(panic))
}

fn make(Origin { seed, writes_before, at }: Origin) -> Cluster {
    let cluster = Cluster::new(Arc::new(move || at), seed);
    cluster.pass_over_versions(writes_before);
    for definition in definitions() {
        cluster.serve(definition).expect("the project's own CRDs are valid");
    }
    cluster
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_begins_alike_is_alike_and_goes_its_own_way() {
        let clock = VirtualClock::new();
        let [one, other] = [(); 2].map(|()| cluster(&clock, 7, 100));
        let fresh = make(Origin { seed: 7, writes_before: 100, at: clock.now() });
        assert_eq!((one.objects(), one.resource_version()), (fresh.objects(), fresh.resource_version()));
        assert!(one.change("namespaces", "", "default", |it| it["metadata"]["labels"]["a"] = "b".into()));
        assert_ne!(one.objects(), other.objects());
        assert_eq!(other.objects(), fresh.objects(), "nobody else's is touched");
        let uid = |it: &Cluster| it.object("namespaces", "", "default").map(|it| it["metadata"]["uid"].clone());
        assert_ne!(uid(&other), uid(&cluster(&clock, 8, 100)), "another seed begins otherwise");
    }
}
