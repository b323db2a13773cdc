//! Waiting until the world is at rest.

use std::time::Duration;

use stowage_world::World;

/// How often the world is looked at, in virtual time.
const GLANCE: Duration = Duration::from_millis(100);

/// Glances in a row without any change that count as rest: longer than watches and requeues take.
const REST: u32 = 20;

/// Glances after which rest isn't waited for any longer: what goes on failing is shown as it is.
const PATIENCE: u32 = 600;

/// Waits until the operator makes no call and nothing is written, or for a minute of virtual time.
/// The cluster's own controllers run meanwhile.
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
