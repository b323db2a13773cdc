//! Waiting until the world is idle.

use std::time::Duration;

use stowage_world::World;

/// Interval between checks, in virtual time.
const GLANCE: Duration = Duration::from_millis(100);

/// Number of checks in a row without any change after which the world counts as idle: longer than
/// watches and requeues take.
const REST: u32 = 20;

/// Maximum number of checks. A failure that goes on is shown as it is.
const PATIENCE: u32 = 600;

/// Waits until the operator makes no calls and nothing is written, for at most a minute of virtual
/// time. The cluster's own controllers run meanwhile.
pub(super) async fn settle(world: &World) {
    let mut calm = 0;
    let mut before = state(world);
    for _ in 0..PATIENCE {
        world.pass(GLANCE).await;
        world.run_cluster_controllers();
        let now = state(world);
        calm = if now == before { calm + 1 } else { 0 };
        before = now;
        if calm == REST {
            return;
        }
    }
}

fn state(world: &World) -> (u64, u64) {
    (world.effects.trace().effects(), world.cluster.resource_version())
}
