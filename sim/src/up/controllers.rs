//! The controllers of every cluster, as steps that run after each write: garbage collection,
//! deletion of namespaces, the default objects of namespaces, and CustomResourceDefinitions. Also
//! the expiry of Events and, if enabled, the marking of workloads as ready.

use std::time::Duration;

use jiff::SignedDuration;
use kube_sim::Cluster;
use seeded::WallClock;
use stowage_world::ControllersRest;
use tokio::time::Instant;

use super::workloads;

/// Minimum time to collect writes before a round.
const GATHERED: Duration = Duration::from_millis(20);
/// Pause after a round, as a multiple of its duration. A round looks at every object, so with many
/// objects the controllers become slow but leave the CPU to others.
const RESTS: u32 = 10;
/// Interval between checks while a fault stops the controllers.
const GLANCE: Duration = Duration::from_secs(1);

/// Lifetime of an Event.
const EVENTS_LIVE: SignedDuration = SignedDuration::from_hours(1);
/// Interval between checks for expired Events.
const EXPIRED_EVERY: Duration = Duration::from_secs(60);

/// Runs one round of all controllers. Returns the number of changed objects.
fn round(cluster: &Cluster, authority: &str, ready: Option<&WallClock>) -> usize {
    let told = ready.map_or(0, |clock| workloads::make_ready(cluster, clock()));
    told + cluster.collect_garbage()
        + cluster.finalize_namespaces()
        + cluster.settle_definitions()
        + cluster.furnish_namespaces(authority)
}

/// Runs the controllers forever. Workloads are marked as ready at the time of this clock, if there
/// is one.
pub(super) async fn run(cluster: Cluster, rest: ControllersRest, authority: &str, ready: Option<WallClock>) {
    tokio::join!(react(&cluster, &rest, authority, ready.as_ref()), expire(&cluster));
}

/// Deletes expired Events, as every API server does.
async fn expire(cluster: &Cluster) {
    loop {
        tokio::time::sleep(EXPIRED_EVERY).await;
        cluster.expire_events(EVENTS_LIVE);
    }
}

async fn react(cluster: &Cluster, rest: &ControllersRest, authority: &str, ready: Option<&WallClock>) {
    loop {
        while rest.is_on() {
            tokio::time::sleep(GLANCE).await;
        }
        let version = cluster.resource_version();
        let began = Instant::now();
        // A deletion may enable further ones.
        while round(cluster, authority, ready) > 0 {
            tokio::task::yield_now().await;
        }
        let took = began.elapsed();
        if cluster.resource_version() == version {
            cluster.written_after(version).await;
        }
        tokio::time::sleep(GATHERED.max(took * RESTS)).await;
    }
}
