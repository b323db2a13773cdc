//! The ends of fault-free runs, as references for the ends of other runs (D1, D2).

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use stowage_world::effects::{GatewayPlan, Plan};

use super::play::play_apart;
use super::scenario::Scenario;
use super::schedule::Schedule;
use crate::oracles::Canonical;

/// Ends by scenario and seed. They are deterministic, so a process computes each only once.
static ENDS: Mutex<BTreeMap<(&str, u64), Arc<Canonical>>> = Mutex::new(BTreeMap::new());

/// Returns the end of a scenario with this seed and without faults.
pub(super) fn undisturbed_end(scenario: &'static Scenario, seed: u64) -> Arc<Canonical> {
    let key = (scenario.name, seed);
    if let Some(end) = ENDS.lock().get(&key) {
        return end.clone();
    }
    // Played without the lock, so that other threads can play other scenarios.
    let outcome = play_apart(&Schedule { scenario, seed, plan: Plan::default(), gateway: GatewayPlan::default() });
    let end = Arc::new(crate::oracles::canonical(&outcome.end));
    ENDS.lock().insert(key, end.clone());
    end
}
