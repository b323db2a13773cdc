//! The quick choice: every fault once in every phase, and something of every scenario.

use std::collections::{BTreeMap, BTreeSet};

use stowage_world::effects::Plan;

use super::scenario::ScenarioPhase;

/// Plans that each scenario gets besides, whatever was tried before.
const BESIDES: usize = 5;

/// What was chosen so far.
#[derive(Debug)]
pub(super) struct Quick {
    random: fastrand::Rng,
    /// Faults that were tried in a phase.
    tried: BTreeSet<(String, ScenarioPhase)>,
}

impl Quick {
    /// Nothing yet; what is chosen follows from the seed.
    pub(super) fn new(seed: u64) -> Self {
        Self { random: fastrand::Rng::with_seed(seed), tried: BTreeSet::new() }
    }

    /// Of a scenario's plans: one for every fault, or pair of faults, that was not tried in this
    /// phase, at any effect, and some others.
    pub(super) fn choose(&mut self, plans: Vec<Plan>, phase: ScenarioPhase) -> Vec<Plan> {
        let mut by_fault: BTreeMap<String, Vec<Plan>> = BTreeMap::new();
        for plan in plans {
            let faults: Vec<String> = plan.entries.iter().map(|entry| entry.fault.to_string()).collect();
            by_fault.entry(faults.join("; ")).or_default().push(plan);
        }
        let (mut chosen, mut rest) = (Vec::new(), Vec::new());
        for (fault, mut plans) in by_fault {
            if self.tried.insert((fault, phase)) {
                chosen.push(plans.swap_remove(self.random.usize(..plans.len())));
            }
            rest.append(&mut plans);
        }
        self.random.shuffle(&mut rest);
        chosen.extend(rest.into_iter().take(BESIDES));
        chosen
    }
}
