//! Initial clusters, in which only the CRDs were installed and the first namespaces were created.
//! They are determined by seed, time and version, and creating one takes longer than the first
//! calls of a short schedule, so each is created once and shared by all worlds with the same
//! beginning.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use kube_sim::Cluster;
use parking_lot::Mutex;
use seeded::VirtualClock;

use crate::determinism::run_seeded;
use crate::foreign::Foreign;
use crate::history::{Chronicle, Event};
use crate::installation::{OPERATOR_NAMESPACE, definitions};
use crate::manifests;

/// Initial state of a world.
#[derive(Clone)]
pub(super) struct Beginning {
    pub(super) cluster: Cluster,
    /// Actions of users that led to this state.
    pub(super) events: Vec<Event>,
}

/// Inputs that determine an initial state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Origin {
    seed: u64,
    writes_before: u64,
    at: Timestamp,
    /// True if the cluster has the kind BucketAccess.
    accesses: bool,
    /// Definitions of ObjectBucketClaims, if the cluster has them.
    foreign: Option<Foreign>,
}

/// Maximum number of cached initial states. When it is exceeded, the cache is cleared.
const KEPT: usize = 64;

/// Returns the initial state of a world in which this many writes have happened before. `kinds`
/// selects accesses and ObjectBucketClaims.
pub(super) fn beginning(
    clock: &VirtualClock,
    seed: u64,
    writes_before: u64,
    kinds: (bool, Option<Foreign>),
) -> Beginning {
    let (accesses, foreign) = kinds;
    static BEGINNINGS: LazyLock<Mutex<BTreeMap<Origin, Beginning>>> = LazyLock::new(Mutex::default);
    // An entry is complete or absent, even if a thread that created one panicked.
    let mut beginnings = BEGINNINGS.lock();
    let origin = Origin { seed, writes_before, at: clock.now(), accesses, foreign };
    if beginnings.len() >= KEPT && !beginnings.contains_key(&origin) {
        beginnings.clear();
    }
    let made = beginnings.entry(origin).or_insert_with(|| made_apart(origin));
    Beginning { cluster: made.cluster.copy(clock.clock()), events: made.events.clone() }
}

/// Creates an initial state on its own thread. Otherwise its random draws would be missing in runs
/// that find it in the cache.
fn made_apart(origin: Origin) -> Beginning {
    run_seeded(origin.seed, || make(origin))
}

async fn make(Origin { seed, writes_before, at, accesses, foreign }: Origin) -> Beginning {
    let clock = VirtualClock::starting_at(at);
    let cluster = Cluster::new(clock.clock(), seed);
    cluster.pass_over_versions(writes_before);
    // Without the kind, each call of a world is the same as in versions without accesses.
    let count = definitions().len() - usize::from(!accesses);
    for definition in &definitions()[..count] {
        cluster.serve(definition).expect("the project's own CRDs are valid");
    }
    for definition in foreign.map(Foreign::definitions).unwrap_or_default() {
        cluster.serve(&definition).expect("these definitions are valid");
    }
    let chronicle = Chronicle::new(clock);
    cluster.observe(Arc::new(chronicle.clone()));
    for name in ["kube-system", "default", OPERATOR_NAMESPACE] {
        let manifest = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n");
        manifests::apply_known_good(&cluster.client("default"), &manifest).await;
    }
    Beginning { cluster, events: chronicle.take_events() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::What;

    #[tokio::test(start_paused = true)]
    async fn what_begins_alike_is_alike_and_goes_its_own_way() {
        let clock = VirtualClock::new();
        let [one, other] = [(); 2].map(|()| beginning(&clock, 7, 100, (false, None)).cluster);
        let fresh =
            make(Origin { seed: 7, writes_before: 100, at: clock.now(), accesses: false, foreign: None }).await.cluster;
        assert_eq!((one.objects(), one.resource_version()), (fresh.objects(), fresh.resource_version()));
        assert!(one.change("namespaces", "", "default", |it| it["metadata"]["labels"]["a"] = "b".into()));
        assert_ne!(one.objects(), other.objects());
        assert_eq!(other.objects(), fresh.objects(), "nobody else's is touched");
        let uid = |it: &Cluster| it.object("namespaces", "", "default").map(|it| it["metadata"]["uid"].clone());
        assert_ne!(
            uid(&other),
            uid(&beginning(&clock, 8, 100, (false, None)).cluster),
            "another seed begins otherwise"
        );
    }

    /// Actions of users in the initial state are part of the world's history.
    #[tokio::test(start_paused = true)]
    async fn the_first_namespaces_are_part_of_the_history() {
        let clock = VirtualClock::new();
        let events = beginning(&clock, 7, 0, (false, None)).events;
        let made = events.iter().filter_map(|event| match &event.what {
            What::Stored(stored) => Some((event.at, stored.name.as_str(), stored.new.is_some())),
            _ => None,
        });
        assert!(made.clone().any(|it| it == (clock.now(), OPERATOR_NAMESPACE, true)), "{events:?}");
        assert!(made.clone().all(|(at, _, _)| at == clock.now()));
    }
}
