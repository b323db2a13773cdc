//! Pairs of faults: the outcome of each first fault decides the second ones to try.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::explorer::outcome::Outcome;
use crate::explorer::plans::{pairs, preemptions, singles};
use crate::explorer::run::run;
use crate::explorer::schedule::Schedule;
use crate::oracles::{Canonical, canonical};
use explore::workers::at_once;

use super::{Progress, Undisturbed, Work, is_one_numbered};

/// One in this many pairs that are left out as independent is run nevertheless.
const SAMPLED: usize = 50;
/// Number of first faults whose pairs are run before those of the next scenario. It bounds memory,
/// and gives every scenario some pairs if time is short.
const FIRSTS: usize = 8;

impl<P: FnMut(Progress<'_>) -> ControlFlow<()>> Work<'_, P> {
    /// Runs pairs: a few first faults of each scenario in turn, each with all its second faults.
    /// The first faults are distributed evenly among shards.
    pub(super) fn pairs(&mut self, undisturbed: &[Undisturbed]) -> bool {
        let ends: Vec<Canonical> = undisturbed.iter().map(|(_, outcome)| canonical(&outcome.end)).collect();
        let firsts: Vec<Vec<Schedule>> = undisturbed.iter().map(|it| self.firsts(it)).collect();
        let turns = firsts.iter().map(|firsts| firsts.len().div_ceil(FIRSTS)).max().unwrap_or_default();
        for turn in 0..turns {
            for (((_, outcome), end), firsts) in undisturbed.iter().zip(&ends).zip(&firsts) {
                let few = firsts.chunks(FIRSTS).nth(turn).unwrap_or_default();
                let Some(pairs) = self.pairs_of(few, outcome, end) else { return false };
                if !self.run_all(pairs) {
                    return false;
                }
            }
        }
        true
    }

    /// Returns this shard's part of the first faults of a scenario.
    fn firsts(&self, (scenario, outcome): &Undisturbed) -> Vec<Schedule> {
        let all = singles(outcome).plans.into_iter().chain(preemptions(outcome)).filter(is_one_numbered);
        let mine = all.enumerate().filter(|(index, _)| self.campaign.shard.has(*index));
        mine.map(|(_, plan)| self.schedule(scenario, plan)).collect()
    }

    /// Returns all pairs with these first faults, which are played once more because their outcomes
    /// aren't kept; `None` if the time is over.
    fn pairs_of(&self, firsts: &[Schedule], undisturbed: &Outcome, end: &Canonical) -> Option<Vec<Schedule>> {
        let play = |first: &Schedule| seconds_of(first, &run(first), undisturbed, end);
        let mut pairs = BTreeMap::new();
        let complete = at_once(self.campaign.jobs, firsts, self.deadline, play, |done| {
            pairs.insert(done.index, done.result);
            true
        });
        complete.then(|| pairs.into_values().flatten().collect())
    }
}

/// Returns the schedules of two faults to try after the outcome of one: those that are not
/// independent, and a sample of the others.
fn seconds_of(first: &Schedule, outcome: &Outcome, undisturbed: &Outcome, end: &Canonical) -> Vec<Schedule> {
    if !outcome.violations.is_empty() {
        // No faults are added to a schedule that breaks a promise on its own.
        return Vec::new();
    }
    let alike = outcome.reached && end.difference(&canonical(&outcome.end)).is_none();
    let (kept, left_out) = pairs(undisturbed, &first.plan, outcome, alike);
    let plans = kept.into_iter().chain(left_out.into_iter().step_by(SAMPLED));
    plans.map(|plan| Schedule { plan, ..first.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::campaign;
    use super::super::{Campaign, Profile, explore};
    use super::*;
    use crate::explorer::Detail;
    use crate::explorer::scenarios;
    use explore::Shard;

    /// A run that is cut short therefore has the single faults of all scenarios, and some pairs of
    /// each.
    #[test]
    fn pairs_come_after_the_single_faults_of_all_scenarios() {
        let scenarios = ["create", "quota"].map(|name| scenarios::named(name).expect("there is one")).to_vec();
        let shard = Shard { index: 3, of: 200 };
        let campaign = Campaign { profile: Profile::Deep, shard, hashes: Some(Detail::All), ..campaign(scenarios) };
        let report = explore(&campaign, |now| match now.done {
            60.. => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        let schedule = |line: &String| line.split_once(' ').and_then(|(_, line)| line.parse::<Schedule>().ok());
        let played: Vec<Schedule> = report.hashes.values().filter_map(schedule).collect();
        assert!(played.len() >= 60 && !report.complete && report.failures.is_empty());
        let single = |it: &Schedule| it.plan.entries.len() == 1;
        let last = played.iter().rposition(single).expect("there are single faults");
        assert_eq!(played[last].scenario.name, "quota");
        assert!(played[..last].iter().any(|it| it.scenario.name == "create" && single(it)));
        assert!(played[last..].iter().any(|it| it.scenario.name == "create" && it.plan.entries.len() == 2));
    }
}
