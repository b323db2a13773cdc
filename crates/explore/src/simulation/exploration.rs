//! Explores a simulation: all single faults and crash points, some random plans, and the report.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use faults::{CrashPoint, Fault, Nobody, Plan, ProcessFault};

use super::{Broken, Run, Simulation};
use crate::plans::{Undisturbed, single, singles, triples};
use crate::shrink::shrink;
use crate::workers::at_once;

/// The result of an exploration.
#[derive(Debug)]
pub struct ExplorationReport {
    /// The seed of all runs.
    pub seed: u64,
    /// Number of calls of the fault-free run that faults could meet.
    pub effects: u64,
    /// Number of runs played.
    pub runs: usize,
    /// Number of runs in which the process died at a call.
    pub crash_points: usize,
    /// The value that `crash_points` must have: three for each call.
    pub crash_points_expected: usize,
    /// Number of effects at which each fault was tried, and of those runs that broke a promise, by
    /// name of the fault.
    pub faults: BTreeMap<&'static str, (usize, usize)>,
    /// Names of the faults that were left out.
    pub without: Vec<&'static str>,
    /// Runs that broke a promise, each with the smallest plan that breaks the same one.
    pub failures: Vec<Failure>,
    /// Real time that the exploration took.
    pub took: Duration,
}

/// A run that broke a promise.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The faults of the run.
    pub plan: Plan,
    /// The faults of the run that are needed to break the same promise.
    pub smallest: Plan,
    /// The first violation.
    pub broken: Broken,
}

impl ExplorationReport {
    /// Returns true if every promise was kept and every crash point was reached.
    pub fn is_clean(&self) -> bool {
        self.failures.is_empty() && self.crash_points == self.crash_points_expected
    }
}

impl Simulation {
    /// Plays the fault-free run, then each single fault at each call that it applies to, then
    /// random plans of up to three.
    ///
    /// The single faults include crashes before each call, after it and after its answer. A plan
    /// that breaks a promise is shrunk.
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
    /// Writes a table with a row per fault, then the violations, each with the plan that causes it.
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
