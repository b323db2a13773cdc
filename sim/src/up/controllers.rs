//! The controllers that every cluster runs, as steps that are taken whenever something was written:
//! garbage collection and the end of namespaces.

use std::time::Duration;

use kube_sim::Cluster;
use tokio::time::Instant;

use crate::world::ControllersRest;

/// How long writes are gathered at least.
const GATHERED: Duration = Duration::from_millis(20);
/// A round looks at every object there is. How many times as long as it took they then rest, so
/// that many objects make them slow and nobody else.
const RESTS: u32 = 10;
/// How often is looked whether a fault still has them rest.
const GLANCE: Duration = Duration::from_secs(1);

/// Runs them for ever.
pub(super) async fn run(cluster: Cluster, rest: ControllersRest) {
    loop {
        while rest.is_on() {
            tokio::time::sleep(GLANCE).await;
        }
        let version = cluster.resource_version();
        let began = Instant::now();
        // What goes may be what something else waited for.
        while cluster.collect_garbage() + cluster.finalize_namespaces() > 0 {
            tokio::task::yield_now().await;
        }
        let took = began.elapsed();
        if cluster.resource_version() == version {
            cluster.written_after(version).await;
        }
        tokio::time::sleep(GATHERED.max(took * RESTS)).await;
    }
}
