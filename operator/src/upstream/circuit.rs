//! Circuits: a store that gives no usable answer is left alone for a while, and then asked by one
//! call.
//!
//! One circuit per operation, because stores fail by operation too: one that creates no bucket can
//! still be looked at, and that a look succeeds is no reason to try hundreds of creates again. What
//! counts as a failure is that the store can't take calls at all; an error that it answers to one
//! request is that request's own, and its claim's backoff is enough.
//!
//! A bucket can be so large or so broken that every call about it takes too long, and its tenant
//! may have made it so. So a claim counts once, however often its calls fail, and rests nobody. Of
//! one namespace five such claims rest the operation for that namespace; five namespaces rest it
//! for everybody. Where a store is down and fewer ask, their own backoffs are all that it hears.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use daemon::backoff::wait;
use tokio::time::Instant;

/// Claims of a namespace, and namespaces, whose failures in a row open a circuit.
const THRESHOLD: usize = 5;
/// How long the first rest is; each one after it is twice as long, up to [`LONGEST_REST`]. It is
/// short, because many claims that fail once are no sign of a long trouble.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(300);
/// Circuits of single namespaces that are kept. Namespaces go and don't say so.
const MOST_KEPT: usize = 256;

/// The circuits of one store.
#[derive(Debug)]
pub(super) struct Circuits {
    /// Longest that a call takes.
    deadline: Duration,
    of_all: BTreeMap<&'static str, Circuit>,
    of_namespaces: BTreeMap<(&'static str, String), Circuit>,
    /// The last probe failed.
    unreachable: bool,
}

/// Whose call about what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker<'a> {
    pub(super) operation: &'static str,
    pub(super) namespace: &'a str,
    /// UID of the claim.
    pub(super) claim: &'a str,
}

/// A circuit. Without an entry it is closed, and nothing has failed lately.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Circuit {
    /// Calls go through; those of these have failed in a row.
    Closed { failing: BTreeSet<String> },
    /// No call goes through before `trial`, and then one, which moves `trial` on. So a trial that
    /// is never heard of again costs a delay and no more.
    Open { trial: Instant, rests: u32 },
}

/// What a call is to its circuits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// One of many.
    Free,
    /// The one that shows whether the store is back.
    Trial,
    /// It is not made.
    Refused,
}

/// A call that failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure {
    pub(super) admission: Admission,
    /// How long the store asks to be left alone.
    pub(super) asked: Option<Duration>,
    pub(super) at: Instant,
    /// In 0..1: spreads the trials.
    pub(super) chance: f64,
}

impl Circuits {
    /// All closed. `deadline` is the longest that a call takes.
    pub(super) fn new(deadline: Duration) -> Self {
        Self { deadline, of_all: BTreeMap::new(), of_namespaces: BTreeMap::new(), unreachable: false }
    }

    /// Whether a call may be made now.
    pub(super) fn admit(&mut self, asker: Asker<'_>, now: Instant) -> Admission {
        let of_namespace = self.of_namespaces.get_mut(&(asker.operation, asker.namespace.to_owned()));
        let mut open: Vec<&mut Circuit> =
            of_namespace.into_iter().chain(self.of_all.get_mut(asker.operation)).filter(|c| c.is_open()).collect();
        // A trial is for both, or for none: it would be lost on the one that the other refuses.
        if open.iter().any(|circuit| circuit.rests_at(now)) {
            return Admission::Refused;
        }
        open.iter_mut().for_each(|circuit| circuit.begin_trial(now, self.deadline));
        if open.is_empty() { Admission::Free } else { Admission::Trial }
    }

    /// Takes in that the store answered. Whether that closed a circuit.
    pub(super) fn answered(&mut self, asker: Asker<'_>) -> bool {
        let of_namespace = self.of_namespaces.remove(&(asker.operation, asker.namespace.to_owned()));
        let of_all = self.of_all.remove(asker.operation);
        of_namespace.into_iter().chain(of_all).any(|circuit| circuit.is_open())
    }

    /// Takes in that a call failed. Whether the operation is at rest for this asker now.
    pub(super) fn failed(&mut self, asker: Asker<'_>, failure: Failure) -> bool {
        let key = (asker.operation, asker.namespace.to_owned());
        if self.of_namespaces.len() >= MOST_KEPT && !self.of_namespaces.contains_key(&key) {
            self.forget_one();
        }
        let of_namespace = self.of_namespaces.entry(key).or_default().failed(asker.claim, failure);
        let of_all = self.of_all.entry(asker.operation).or_default().failed(asker.namespace, failure);
        of_namespace || of_all
    }

    /// Forgets a closed circuit of a namespace, or the one whose trial is due first: what it is for
    /// is found out again.
    fn forget_one(&mut self) {
        let due = |circuit: &Circuit| match circuit {
            Circuit::Closed { .. } => None,
            Circuit::Open { trial, .. } => Some(*trial),
        };
        let first = self.of_namespaces.iter().min_by_key(|(_, circuit)| due(circuit)).map(|(key, _)| key.clone());
        first.and_then(|key| self.of_namespaces.remove(&key));
    }

    /// Takes in how a probe went. A success after a failure shows that the store is back: every
    /// open circuit has its trial at once. Whether there is any.
    pub(super) fn probed(&mut self, succeeded: bool, now: Instant) -> bool {
        let back = succeeded && self.unreachable;
        self.unreachable = !succeeded;
        let mut any = false;
        for circuit in self.of_all.values_mut().chain(self.of_namespaces.values_mut()).filter(|_| back) {
            if let Circuit::Open { trial, .. } = circuit {
                *trial = now;
                any = true;
            }
        }
        any
    }
}

impl Default for Circuit {
    fn default() -> Self {
        Self::Closed { failing: BTreeSet::new() }
    }
}

impl Circuit {
    fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }

    fn rests_at(&self, now: Instant) -> bool {
        matches!(self, Self::Open { trial, .. } if *trial > now)
    }

    fn begin_trial(&mut self, now: Instant, deadline: Duration) {
        if let Self::Open { trial, rests } = self {
            *trial = now + rest(*rests, 0.5).max(deadline);
        }
    }

    /// Takes in that a call of this one failed. Whether it is open now.
    fn failed(&mut self, who: &str, failure: Failure) -> bool {
        let rests = match self {
            Self::Closed { failing } => {
                failing.insert(who.to_owned());
                if failing.len() < THRESHOLD {
                    return false;
                }
                0
            }
            Self::Open { rests, .. } if failure.admission == Admission::Trial => rests.saturating_add(1),
            // It was under way when the circuit opened, and says nothing new.
            Self::Open { .. } => return true,
        };
        let least = failure.asked.unwrap_or_default().min(LONGEST_REST);
        *self = Self::Open { trial: failure.at + rest(rests, failure.chance).max(least), rests };
        true
    }
}

/// How long the store is left alone after this many rests in vain.
fn rest(rests: u32, chance: f64) -> Duration {
    wait(FIRST_REST, LONGEST_REST, rests, chance)
}

#[cfg(test)]
#[path = "circuit_tests.rs"]
mod tests;
