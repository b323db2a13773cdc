//! A plan while it is played: which of its entries meets the next call.

use super::call::Call;
use super::fault::Fault;
use super::plan::{EffectPattern, Entry, Plan};
use super::row::Vocabulary;

/// A plan's entry and what it has met so far.
#[derive(Debug)]
pub(super) struct Armed<V> {
    pub(super) entry: Entry<V>,
    /// Calls that its pattern has matched.
    matched: u64,
    pub(super) fired: bool,
}

impl<V: Vocabulary> Armed<V> {
    /// What is about the whole run has happened when it is planned.
    pub(super) fn new(entry: Entry<V>) -> Self {
        let fired = entry.fault.is_of_run();
        Self { entry, matched: 0, fired }
    }

    /// Counts the call, and says whether it is the one that is meant.
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

/// The faults of a plan that are about the whole run.
pub(super) fn of_run<V: Vocabulary>(plan: &Plan<V>) -> Vec<Fault<V>> {
    plan.entries.iter().map(|entry| entry.fault).filter(|fault| fault.is_of_run()).collect()
}
