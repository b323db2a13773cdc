//! The ends of runs without faults, which the ends of others are compared with (D1, D2).

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use stowage_world::effects::{GatewayPlan, Plan};

use super::play::play_apart;
use super::scenario::Scenario;
use super::schedule::Schedule;
use crate::oracles::Canonical;

/// Ends by scenario and seed: they are the same in every run, so a process needs each but once.
static ENDS: Mutex<BTreeMap<(&str, u64), Arc<Canonical>>> = Mutex::new(BTreeMap::new());

/// The end of a scenario with this seed and without faults.
pub(super) fn undisturbed_end(scenario: &'static Scenario, seed: u64) -> Arc<Canonical> {
    let key = (scenario.name, seed);
    if let Some(end) = ENDS.lock().get(&key) {
        return end.clone();
    }
    // Not under the lock: others have ends of their own to find.
    let outcome = play_apart(&Schedule { scenario, seed, plan: Plan::default(), gateway: GatewayPlan::default() });
    let end = Arc::new(crate::oracles::canonical(&outcome.end));
    ENDS.lock().insert(key, end.clone());
    end
}
