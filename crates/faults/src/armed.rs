//! Entries of a plan during a run, which decide if the next call meets a fault.

use super::call::Call;
use super::fault::Fault;
use super::plan::{EffectPattern, Entry, Plan};
use super::row::Vocabulary;

/// An entry of a plan with its counters.
#[derive(Debug)]
pub(super) struct Armed<V> {
    pub(super) entry: Entry<V>,
    /// Number of calls that its pattern has matched.
    matched: u64,
    pub(super) fired: bool,
}

impl<V: Vocabulary> Armed<V> {
    /// Arms an entry. A fault of the whole run counts as fired from the start.
    pub(super) fn new(entry: Entry<V>) -> Self {
        let fired = entry.fault.is_of_run();
        Self { entry, matched: 0, fired }
    }

    /// Counts the call. Returns true if the entry is meant for it.
    pub(super) fn meets(&mut self, number: u64, call: &Call) -> bool {
        match &self.entry.effect {
            EffectPattern::Number(wanted) => wanted.get() == number,
            EffectPattern::Call { call: pattern, .. } if !pattern.matches(call) => false,
            EffectPattern::Call { occurrence, .. } => {
                self.matched += 1;
                occurrence.is_none_or(|k| k.get() == self.matched)
            }
        }
    }
}

/// Returns the plan's faults of the whole run.
pub(super) fn of_run<V: Vocabulary>(plan: &Plan<V>) -> Vec<Fault<V>> {
    plan.entries.iter().map(|entry| entry.fault).filter(|fault| fault.is_of_run()).collect()
}
