//! The simulated world of a process: a cluster, a store, and the true time.

use kube_sim::Cluster;
use s3_sim::{Dialect, Store};
use seeded::VirtualClock;

/// The account of the store that owns the process's buckets.
pub const OWNER: &str = "owner";
/// The access key id of that account.
pub const KEY: &str = "AKIAOWNER";
/// The secret key of that account.
pub const SECRET: &str = "secret";

/// The current state of a cluster and a store, for users, for conditions to wait for, and for
/// oracles. Clones share one world.
#[derive(Clone, Debug)]
pub struct SimulatedWorld {
    /// The Kubernetes API.
    pub cluster: Cluster,
    /// The store, where [`OWNER`](crate::OWNER) is the process's account.
    pub store: Store,
    /// The true time.
    pub clock: VirtualClock,
}

impl SimulatedWorld {
    /// Creates a world that begins now and whose UIDs and generated names follow from the seed.
    pub(crate) fn new(seed: u64) -> Self {
        let clock = VirtualClock::new();
        let store = Store::new(clock.clock(), Dialect::default());
        store.add_account(OWNER, KEY, SECRET);
        Self { cluster: Cluster::new(clock.clock(), seed), store, clock }
    }

    /// Returns a client for the cluster that meets no faults, for a user.
    pub fn client(&self) -> kube::Client {
        self.cluster.client("default")
    }

    /// Runs the garbage collector and the namespace controller until they have nothing to do.
    pub(crate) fn run_controllers(&self) {
        while self.cluster.collect_garbage() + self.cluster.finalize_namespaces() > 0 {}
    }
}
