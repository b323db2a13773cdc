//! The quick selection: every fault once in every phase, and some plans of every scenario.

use std::collections::{BTreeMap, BTreeSet};

use stowage_world::effects::Plan;

use super::scenario::ScenarioPhase;

/// Number of plans that each scenario gets in addition, even if their faults were tried before.
const BESIDES: usize = 5;

/// The state of the selection.
#[derive(Debug)]
pub(super) struct Quick {
    random: fastrand::Rng,
    /// Faults that were tried already, by phase.
    tried: BTreeSet<(String, ScenarioPhase)>,
}

impl Quick {
    /// Creates an empty selection; all choices follow from the seed.
    pub(super) fn new(seed: u64) -> Self {
        Self { random: fastrand::Rng::with_seed(seed), tried: BTreeSet::new() }
    }

    /// Selects from a scenario's plans: one for every fault, or pair of faults, not yet tried in
    /// this phase, at any call; and a few more.
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
