//! The quick choice: every kind of fault once in a scenario, every crash point of some effects.

use std::collections::BTreeMap;

use crate::effects::{Fault, Plan};

/// Of plans with one fault each: one for every fault, at an effect that the seed decides.
pub fn choose(plans: Vec<Plan>, seed: u64) -> Vec<Plan> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut by_fault: BTreeMap<String, Vec<Plan>> = BTreeMap::new();
    for plan in plans {
        let fault: Option<Fault> = plan.entries.first().map(|entry| entry.fault);
        by_fault.entry(fault.map(|fault| fault.to_string()).unwrap_or_default()).or_default().push(plan);
    }
    by_fault.into_values().map(|mut plans| plans.swap_remove(random.usize(..plans.len()))).collect()
}
