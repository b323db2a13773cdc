//! All single faults and crash points of a simulation, some random plans besides, and the table of
//! what came of them.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use faults::{CrashPoint, Fault, Nobody, Plan, ProcessFault};

use super::{Broken, Run, Simulation};
use crate::plans::{Undisturbed, single, singles, triples};
use crate::shrink::shrink;
use crate::workers::at_once;

/// What an exploration found.
#[derive(Debug)]
pub struct ExplorationReport {
    /// The seed of all runs.
    pub seed: u64,
    /// Effects of the undisturbed run that faults could meet.
    pub effects: u64,
    /// Runs played.
    pub runs: usize,
    /// Runs in which the process died at an effect.
    pub crash_points: usize,
    /// How many those have to be: three for each effect.
    pub crash_points_expected: usize,
    /// By name of the fault: at how many effects it was tried, and at how many it broke a promise.
    pub faults: BTreeMap<&'static str, (usize, usize)>,
    /// Faults that were left out, by name.
    pub without: Vec<&'static str>,
    /// What broke a promise, each with the smallest plan that breaks the same one.
    pub failures: Vec<Failure>,
    /// Real time that it took.
    pub took: Duration,
}

/// A run that broke a promise.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Its faults.
    pub plan: Plan,
    /// As few of them as break the same promise.
    pub smallest: Plan,
    /// What was broken first.
    pub broken: Broken,
}

impl ExplorationReport {
    /// Whether every promise was kept, and everything was tried.
    pub fn is_clean(&self) -> bool {
        self.failures.is_empty() && self.crash_points == self.crash_points_expected
    }
}

impl Simulation {
    /// Plays the undisturbed run, then each single fault at each call that it applies to, crashes
    /// before each effect, after it and after its answer among them, then random plans of
    /// three. What breaks a promise is made as small as can be.
    ///
    /// # Panics
    /// As [`Simulation::run`].
    pub fn explore(&self) -> ExplorationReport {
        let began = Instant::now();
        let undisturbed = self.run(&Plan::default());
        let calls = Undisturbed { lines: &undisturbed.lines, before: undisturbed.before, until: undisturbed.until };
        let met = calls.met().count();
        let faults = Fault::<Nobody>::all_single().into_iter().filter(|fault| !self.without.contains(&fault.name()));
        let all = singles(calls, faults, |_| undisturbed.before + 1);
        let mut plans: Vec<Plan> = all.iter().filter_map(|(number, fault)| single(*number, *fault)).collect();
        plans.extend(triples(&all, &mut fastrand::Rng::with_seed(self.seed), self.random));
        let mut report = ExplorationReport {
            seed: self.seed,
            effects: met as u64,
            runs: 1,
            crash_points: 0,
            crash_points_expected: 3 * met,
            faults: BTreeMap::new(),
            without: self.without.clone(),
            failures: Vec::new(),
            took: Duration::ZERO,
        };
        report.note(&Plan::default(), &undisturbed);
        if report.failures.is_empty() {
            let jobs = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
            at_once(
                jobs,
                &plans,
                None,
                |plan| self.run(plan),
                |done| {
                    report.runs += 1;
                    report.note(&plans[done.index], &done.result);
                    true
                },
            );
        }
        report.failures.sort_by_key(|failure| (failure.plan.entries.len(), failure.plan.to_string()));
        for failure in &mut report.failures {
            let same = |plan: &Plan| self.run(plan).broken.iter().any(|it| it.promise == failure.broken.promise);
            failure.smallest = shrink(&failure.plan, same);
        }
        report.took = began.elapsed();
        report
    }
}

impl ExplorationReport {
    fn note(&mut self, plan: &Plan, run: &Run) {
        let broke = run.broken.first();
        if let [entry] = &plan.entries[..] {
            let (tried, broken) = self.faults.entry(entry.fault.name()).or_default();
            *tried += 1;
            *broken += usize::from(broke.is_some());
            let crash = CrashPoint::ALL.iter().any(|point| entry.fault == Fault::Process(ProcessFault::Crash(*point)));
            self.crash_points += usize::from(crash && run.met);
        }
        if let Some(broken) = broke {
            self.failures.push(Failure { plan: plan.clone(), smallest: plan.clone(), broken: broken.clone() });
        }
    }
}

impl fmt::Display for ExplorationReport {
    /// A table for people: a row a fault, then what was broken, each with the plan that shows it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<24}{:>8}{:>8}", "FAULT", "TRIED", "BROKE")?;
        for (fault, (tried, broke)) in &self.faults {
            let broke = if *broke == 0 { String::new() } else { broke.to_string() };
            writeln!(f, "{:<24}{:>8}{:>8}", fault, tried, broke)?;
        }
        for fault in &self.without {
            writeln!(f, "{fault:<24}{:>8}", "left out")?;
        }
        writeln!(f)?;
        for failure in &self.failures {
            writeln!(f, "✗ {}: {}", failure.broken.promise, failure.broken.message)?;
            match failure.smallest.is_empty() {
                true => writeln!(f, "    without any fault")?,
                false => writeln!(f, "    {}", failure.smallest)?,
            }
        }
        writeln!(
            f,
            "{} effects, {} of {} crash points, {} runs in {:.1} s, {} broke a promise",
            self.effects,
            self.crash_points,
            self.crash_points_expected,
            self.runs,
            self.took.as_secs_f64(),
            self.failures.len()
        )
    }
}
