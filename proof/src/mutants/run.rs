//! Trial of mutants one after the other: apply, build, explore, and confirm the kill.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::oracles::Promise;

use super::catalogue::{Finder, Mutant};
use super::explore::{Kill, Limits, Violated, explore, replay};
use super::named_test::{NamedTest, Outcome};
use super::scratch::Scratch;

/// Verdict on a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The mutant broke a promise, in a schedule in which the unmutated operator keeps them all.
    Killed(Kill),
    /// The test in its header failed with this message. The test passes without the mutant.
    FailedTest(String),
    /// Every promise was kept, or the test passed.
    Survived,
    /// The mutant could not be tried, for this reason.
    Failed(String),
}

/// A mutant and its verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct MutantOutcome {
    /// The mutant.
    pub mutant: Mutant,
    /// Verdict.
    pub verdict: Verdict,
    /// Duration of the exploration, or of the test.
    pub seconds: f64,
    /// Number of schedules explored.
    pub schedules: u64,
    /// Duration of the build of the mutant.
    pub build: Duration,
}

impl MutantOutcome {
    /// Returns true if the mutant was found.
    pub fn is_killed(&self) -> bool {
        matches!(self.verdict, Verdict::Killed(_) | Verdict::FailedTest(_))
    }

    /// Returns the failure that killed it, if the exploration found one.
    pub fn kill(&self) -> Option<&Kill> {
        match &self.verdict {
            Verdict::Killed(kill) => Some(kill),
            Verdict::FailedTest(_) | Verdict::Survived | Verdict::Failed(_) => None,
        }
    }
}

/// Outcomes of all mutants.
#[derive(Clone, Debug, PartialEq)]
pub struct MutationReport {
    /// Outcomes by name.
    pub outcomes: Vec<MutantOutcome>,
}

impl MutationReport {
    /// Returns the mutants that were killed.
    pub fn killed(&self) -> impl Iterator<Item = &MutantOutcome> {
        self.outcomes.iter().filter(|outcome| outcome.is_killed())
    }

    /// Returns the mutants that were not killed, for any reason.
    pub fn alive(&self) -> impl Iterator<Item = &MutantOutcome> {
        self.outcomes.iter().filter(|outcome| !outcome.is_killed())
    }

    /// Returns the names of promises that no mutant broke. Nothing here proves that their oracles
    /// detect anything.
    pub fn unbroken(&self) -> Vec<&'static str> {
        let broken: BTreeSet<&str> = self.kills().flat_map(|kill| &kill.promises).map(String::as_str).collect();
        Promise::ALL.into_iter().map(Promise::name).filter(|name| !broken.contains(name)).collect()
    }

    /// Returns the mutants that break none of the promises in their headers under the line that
    /// killed them.
    pub fn mistaken(&self) -> impl Iterator<Item = &MutantOutcome> {
        let breaks = |outcome: &MutantOutcome, kill: &Kill| {
            outcome.mutant.promises().iter().any(|promise| kill.promises.iter().any(|name| name == promise.name()))
        };
        self.outcomes.iter().filter(move |outcome| outcome.kill().is_some_and(|kill| !breaks(outcome, kill)))
    }

    fn kills(&self) -> impl Iterator<Item = &Kill> {
        self.outcomes.iter().filter_map(MutantOutcome::kill)
    }

    /// Returns the median duration of the explorations that killed a mutant.
    pub fn median(&self) -> Option<f64> {
        let explored = self.outcomes.iter().filter(|outcome| outcome.kill().is_some());
        let mut seconds: Vec<f64> = explored.map(|outcome| outcome.seconds).collect();
        seconds.sort_by(f64::total_cmp);
        seconds.get(seconds.len() / 2).copied()
    }
}

/// Tries mutants. `run` calls `begun` before a mutant is built, and `ended` when it is done.
pub struct Trial<'a> {
    /// Directory of the project's sources, which are only read.
    pub workspace: &'a Path,
    /// Directory for the copy and its target directory.
    pub place: &'a Path,
    /// Limits for each mutant.
    pub limits: &'a Limits,
}

impl Trial<'_> {
    /// Tries each mutant in turn.
    ///
    /// # Errors
    /// Returns an error if there is nothing to compare with: the unmutated workspace cannot be
    /// copied or built, or a test fails on it.
    pub fn run(
        &self,
        mutants: &[Mutant],
        mut begun: impl FnMut(&str),
        mut ended: impl FnMut(&MutantOutcome),
    ) -> Result<MutationReport, String> {
        let scratch = Scratch::prepare(self.workspace, self.place)?;
        let sane = self.place.join("stowage-proof-unmutated");
        if mutants.iter().any(|mutant| mutant.test().is_none()) {
            begun("the operator as it is");
            let (binary, _) =
                scratch.build(&BTreeMap::new()).map_err(|why| format!("the workspace does not build: {why}"))?;
            fs::copy(&binary, &sane).map_err(|error| format!("can't keep the unmutated build: {error}"))?;
        }
        let tests: BTreeSet<&NamedTest> = mutants.iter().filter_map(Mutant::test).collect();
        for test in tests {
            begun(&format!("test {test} as things are"));
            passes(&scratch, test)?;
        }
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
        let applied = mutant.apply(self.workspace);
        let verdict = applied.and_then(|files| match &mutant.finder {
            Finder::Test(test) => put_to_test(scratch, &files, test, &mut outcome),
            Finder::Exploration { scenarios, plan, .. } => {
                let (binary, build) = scratch.build(&files)?;
                outcome.build = build;
                let builds = Builds { mutated: &binary, sane };
                let again = plan.as_deref().map_or(Ok(None), |line| builds.replay(line, &mut outcome))?;
                let kill = match again {
                    Some(kill) => Some(kill),
                    None => self.hunt(&builds, scenarios, &mut outcome)?,
                };
                Ok(kill.map_or(Verdict::Survived, Verdict::Killed))
            }
        });
        outcome.verdict = verdict.unwrap_or_else(Verdict::Failed);
        outcome
    }

    /// Explores the scenarios in the header, then all scenarios.
    fn hunt(
        &self,
        builds: &Builds<'_>,
        scenarios: &[String],
        outcome: &mut MutantOutcome,
    ) -> Result<Option<Kill>, String> {
        for scenarios in [scenarios, &[]] {
            let explored = explore(builds.mutated, scenarios, self.limits)?;
            outcome.seconds += explored.seconds;
            outcome.schedules += explored.schedules;
            let Some(kill) = explored.failures.into_iter().next() else { continue };
            let promises = replay(builds.mutated, kill.fault())?.promises();
            if promises.is_empty() {
                return Err(format!("played again it breaks no promise: {}", kill.fault()));
            }
            return builds.confirm(Kill { promises, ..kill }).map(Some);
        }
        Ok(None)
    }
}

/// `stowage-proof` with a mutant and without it.
struct Builds<'a> {
    mutated: &'a Path,
    sane: &'a Path,
}

impl Builds<'_> {
    /// Replays the recorded schedule of a mutant.
    ///
    /// Returns `None` if it breaks no promise any more, or can't be replayed: calls of the operator
    /// may have other numbers since it was recorded.
    fn replay(&self, line: &str, outcome: &mut MutantOutcome) -> Result<Option<Kill>, String> {
        let began = Instant::now();
        let replayed = replay(self.mutated, line);
        outcome.seconds += began.elapsed().as_secs_f64();
        outcome.schedules += 1;
        let Ok(replayed) = replayed else { return Ok(None) };
        let Some(Violated { promise, message }) = replayed.violations.first().cloned() else { return Ok(None) };
        let promises = replayed.promises();
        self.confirm(Kill { line: line.to_owned(), promise, message, shrunk: None, promises, met: false }).map(Some)
    }

    /// Checks that the unmutated operator keeps every promise under the schedule of a kill.
    fn confirm(&self, kill: Kill) -> Result<Kill, String> {
        let replayed = replay(self.sane, kill.fault())?;
        if !replayed.violations.is_empty() {
            return Err(format!("a promise is broken without the mutant too: {}", kill.fault()));
        }
        Ok(Kill { met: replayed.unmet.is_empty(), ..kill })
    }
}

/// Checks that a test passes on the unmutated workspace. Otherwise its failure would prove nothing.
fn passes(scratch: &Scratch, test: &NamedTest) -> Result<(), String> {
    match scratch.test(&BTreeMap::new(), test)? {
        (Outcome::Passed, ..) => Ok(()),
        (Outcome::Failed(words), ..) => Err(format!("test {test} fails without a mutant too: {words}")),
    }
}

/// Runs the test that must fail.
fn put_to_test(
    scratch: &Scratch,
    files: &BTreeMap<String, String>,
    test: &NamedTest,
    outcome: &mut MutantOutcome,
) -> Result<Verdict, String> {
    let (result, build, ran) = scratch.test(files, test)?;
    (outcome.build, outcome.seconds) = (build, ran.as_secs_f64());
    Ok(match result {
        Outcome::Passed => Verdict::Survived,
        Outcome::Failed(words) => Verdict::FailedTest(words),
    })
}
