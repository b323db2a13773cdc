//! The verdict on a schedule, for the report. It is small and is made on the thread that played the
//! schedule, so that no history leaves that thread.

use std::collections::BTreeSet;
use std::time::Duration;

use stowage_world::history::facts::condition;
use stowage_world::history::{History, What};

use super::promises;
use crate::explorer::outcome::Outcome;
use crate::explorer::schedule::Schedule;
use crate::oracles::{Promise, Violation};

/// The verdict on a schedule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Hash of the run, if requested.
    pub hash: Option<String>,
    /// Names of the faults that met a call, each as often as it is planned.
    pub faults: Vec<String>,
    /// True if a fault met a call of a gateway.
    pub met_gateway: bool,
    /// Names of the promises that were judged.
    pub judged: Vec<String>,
    /// Names of the promises that ended at one of the limits which the contract states (spec §3.2).
    pub limited: BTreeSet<String>,
    /// Reasons of a claim's `Ready` that occurred.
    pub reasons: BTreeSet<String>,
    /// The first promise that was broken.
    pub broken: Option<Broken>,
    /// Virtual time from the start of the world to its rest.
    pub took: Duration,
}

/// A violation of a promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The name of the promise.
    pub promise: String,
    /// A description of the violation.
    pub message: String,
}

impl Verdict {
    /// Derives the verdict from the outcome of a schedule.
    pub fn of(schedule: &Schedule, outcome: &Outcome) -> Self {
        let name = |promise: Promise| promise.name().to_owned();
        let judged = Promise::ALL.into_iter().filter(|promise| promises::is_judged(*promise, schedule, outcome));
        Self {
            hash: None,
            faults: outcome.faults.iter().map(|fault| fault.kind().to_owned()).collect(),
            met_gateway: !outcome.gateway.fired.is_empty(),
            judged: judged.map(name).collect(),
            limited: outcome.limits.iter().map(|limit| name(limit.promise)).collect(),
            reasons: reasons(&outcome.history),
            broken: outcome.violations.first().map(Broken::of),
            took: outcome.took,
        }
    }
}

impl Broken {
    fn of(violation: &Violation) -> Self {
        Self { promise: violation.promise.name().to_owned(), message: violation.message.clone() }
    }
}

fn reasons(history: &History) -> BTreeSet<String> {
    let mut reasons = BTreeSet::new();
    for event in &history.events {
        if let What::Stored(stored) = &event.what
            && stored.plural == "bucketclaims"
            && let Some(claim) = &stored.new
        {
            let reason = condition(claim, "Ready");
            if !reason.is_empty() && !reasons.contains(reason) {
                reasons.insert(reason.to_owned());
            }
        }
    }
    reasons
}
