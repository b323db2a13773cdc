//! The world that a process is played in: a cluster, a store, and true time.

use kube_sim::Cluster;
use s3_sim::{Dialect, Store};
use seeded::VirtualClock;

/// The account of the store that the process's buckets belong to.
pub const OWNER: &str = "owner";
/// The access key id of that account.
pub const KEY: &str = "AKIAOWNER";
/// Its secret key.
pub const SECRET: &str = "secret";

/// A cluster and a store as they stand, for users, for conditions to wait for, and for oracles.
/// Clones are the same world.
#[derive(Clone, Debug)]
pub struct SimulatedWorld {
    /// The Kubernetes API.
    pub cluster: Cluster,
    /// The store, whose account [`OWNER`](crate::OWNER) is the process's.
    pub store: Store,
    /// True time.
    pub clock: VirtualClock,
}

impl SimulatedWorld {
    /// A world that begins now, whose UIDs and generated names follow from the seed.
    pub(crate) fn new(seed: u64) -> Self {
        let clock = VirtualClock::new();
        let store = Store::new(clock.clock(), Dialect::default());
        store.add_account(OWNER, KEY, SECRET);
        Self { cluster: Cluster::new(clock.clock(), seed), store, clock }
    }

    /// A client for the cluster that no fault meets: a user's.
    pub fn client(&self) -> kube::Client {
        self.cluster.client("default")
    }

    /// Lets the garbage collector and the namespace controller do what there is to do.
    pub(crate) fn run_controllers(&self) {
        while self.cluster.collect_garbage() + self.cluster.finalize_namespaces() > 0 {}
    }
}
