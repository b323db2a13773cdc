//! One mutant after the other: applied, built, explored, and its death confirmed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::oracles::Promise;

use super::catalogue::Mutant;
use super::explore::{Kill, Limits, explore, replay};
use super::scratch::Scratch;

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A promise was broken under a line under which the unmutated operator keeps all.
    Killed(Kill),
    /// Every promise was kept.
    Survived,
    /// It could not be tried; says why.
    Failed(String),
}

/// A mutant and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct MutantOutcome {
    /// The mutant.
    pub mutant: Mutant,
    /// What became of it.
    pub verdict: Verdict,
    /// How long it was explored.
    pub seconds: f64,
    /// How many schedules that were.
    pub schedules: u64,
    /// How long its build took.
    pub build: Duration,
}

impl MutantOutcome {
    /// What it was killed by, if it was.
    pub fn kill(&self) -> Option<&Kill> {
        match &self.verdict {
            Verdict::Killed(kill) => Some(kill),
            Verdict::Survived | Verdict::Failed(_) => None,
        }
    }
}

/// What became of all.
#[derive(Clone, Debug, PartialEq)]
pub struct MutationReport {
    /// By name.
    pub outcomes: Vec<MutantOutcome>,
}

impl MutationReport {
    /// Those that were killed.
    pub fn killed(&self) -> impl Iterator<Item = &MutantOutcome> {
        self.outcomes.iter().filter(|outcome| matches!(outcome.verdict, Verdict::Killed(_)))
    }

    /// Those that were not, for whatever reason.
    pub fn alive(&self) -> impl Iterator<Item = &MutantOutcome> {
        self.outcomes.iter().filter(|outcome| !matches!(outcome.verdict, Verdict::Killed(_)))
    }

    /// Promises that no mutant broke, by name: nothing shows here that their oracles see anything.
    pub fn unbroken(&self) -> Vec<&'static str> {
        let broken: BTreeSet<&str> = self.kills().flat_map(|kill| &kill.promises).map(String::as_str).collect();
        Promise::ALL.into_iter().map(Promise::name).filter(|name| !broken.contains(name)).collect()
    }

    /// Those that break none of the promises that their headers name, under the line that killed
    /// them.
    pub fn mistaken(&self) -> impl Iterator<Item = &MutantOutcome> {
        let breaks = |outcome: &MutantOutcome, kill: &Kill| {
            outcome.mutant.promises.iter().any(|promise| kill.promises.iter().any(|name| name == promise.name()))
        };
        self.killed().filter(move |outcome| !outcome.kill().is_some_and(|kill| breaks(outcome, kill)))
    }

    fn kills(&self) -> impl Iterator<Item = &Kill> {
        self.outcomes.iter().filter_map(MutantOutcome::kill)
    }

    /// The median of the times that it took to kill those that were killed.
    pub fn median(&self) -> Option<f64> {
        let mut seconds: Vec<f64> = self.killed().map(|outcome| outcome.seconds).collect();
        seconds.sort_by(f64::total_cmp);
        seconds.get(seconds.len() / 2).copied()
    }
}

/// Tries mutants. `begun` is told of each before it is built, `ended` when it is done with.
pub struct Trial<'a> {
    /// The project's sources, which are only read.
    pub workspace: &'a Path,
    /// Where copy and target folder are.
    pub place: &'a Path,
    /// How long each is tried.
    pub limits: &'a Limits,
}

impl Trial<'_> {
    /// Tries each in turn.
    ///
    /// # Errors
    /// When there is nothing to compare with: the unmutated workspace can't be copied or built.
    pub fn run(
        &self,
        mutants: &[Mutant],
        mut begun: impl FnMut(&str),
        mut ended: impl FnMut(&MutantOutcome),
    ) -> Result<MutationReport, String> {
        let scratch = Scratch::prepare(self.workspace, self.place)?;
        begun("the operator as it is");
        let sane = self.place.join("stowage-sim-unmutated");
        let (binary, _) =
            scratch.build(&BTreeMap::new()).map_err(|why| format!("the workspace does not build: {why}"))?;
        fs::copy(&binary, &sane).map_err(|error| format!("can't keep the unmutated build: {error}"))?;
        let mut outcomes = Vec::new();
        for mutant in mutants {
            begun(&mutant.name);
            let outcome = self.attempt(&scratch, &sane, mutant);
            ended(&outcome);
            outcomes.push(outcome);
        }
        Ok(MutationReport { outcomes })
    }

    fn attempt(&self, scratch: &Scratch, sane: &Path, mutant: &Mutant) -> MutantOutcome {
        let mut outcome = MutantOutcome {
            mutant: mutant.clone(),
            verdict: Verdict::Survived,
            seconds: 0.0,
            schedules: 0,
            build: Duration::ZERO,
        };
        let built = mutant.apply(self.workspace).and_then(|files| scratch.build(&files));
        let result = built.and_then(|(binary, build): (PathBuf, Duration)| {
            outcome.build = build;
            self.hunt(&binary, sane, &mut outcome)
        });
        match result {
            Ok(Some(kill)) => outcome.verdict = Verdict::Killed(kill),
            Ok(None) => {}
            Err(why) => outcome.verdict = Verdict::Failed(why),
        }
        outcome
    }

    /// Looks where the header says, then everywhere.
    fn hunt(&self, binary: &Path, sane: &Path, outcome: &mut MutantOutcome) -> Result<Option<Kill>, String> {
        for scenarios in [outcome.mutant.scenarios.as_slice(), &[]] {
            let explored = explore(binary, scenarios, self.limits)?;
            outcome.seconds += explored.seconds;
            outcome.schedules += explored.schedules;
            let Some(kill) = explored.failures.into_iter().next() else { continue };
            let replayed = replay(sane, kill.fault())?;
            if !replayed.violations.is_empty() {
                return Err(format!("a promise is broken without the mutant too: {}", kill.fault()));
            }
            let promises = replay(binary, kill.fault())?.promises();
            if promises.is_empty() {
                return Err(format!("played again it breaks no promise: {}", kill.fault()));
            }
            return Ok(Some(Kill { met: replayed.unmet.is_empty(), promises, ..kill }));
        }
        Ok(None)
    }
}
