//! The controllers that every cluster runs, as steps that are taken whenever something was written:
//! garbage collection, the end of namespaces and what is in each of them, definitions that come and
//! go; the end of Events; and, where that is asked for, workloads that are told to be ready.

use std::time::Duration;

use jiff::SignedDuration;
use kube_sim::Cluster;
use seeded::WallClock;
use stowage_world::ControllersRest;
use tokio::time::Instant;

use super::workloads;

/// How long writes are gathered at least.
const GATHERED: Duration = Duration::from_millis(20);
/// A round looks at every object there is. How many times as long as it took they then rest, so
/// that many objects make them slow and nobody else.
const RESTS: u32 = 10;
/// How often is looked whether a fault still has them rest.
const GLANCE: Duration = Duration::from_secs(1);

/// How long an Event is kept.
const EVENTS_LIVE: SignedDuration = SignedDuration::from_hours(1);
/// How often is looked for Events that are old.
const EXPIRED_EVERY: Duration = Duration::from_secs(60);

/// How many objects one round of all has changed.
fn round(cluster: &Cluster, authority: &str, ready: Option<&WallClock>) -> usize {
    let told = ready.map_or(0, |clock| workloads::make_ready(cluster, clock()));
    told + cluster.collect_garbage()
        + cluster.finalize_namespaces()
        + cluster.settle_definitions()
        + cluster.furnish_namespaces(authority)
}

/// Runs them for ever. Workloads are told to be ready by this clock, if there is one.
pub(super) async fn run(cluster: Cluster, rest: ControllersRest, authority: &str, ready: Option<WallClock>) {
    tokio::join!(react(&cluster, &rest, authority, ready.as_ref()), expire(&cluster));
}

/// Deletes Events that are old, as every server does.
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
        // What goes may be what something else waited for.
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
