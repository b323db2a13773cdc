//! Circuit breakers: a store that gives no usable answer is not called for a while, and then gets
//! one trial call.
//!
//! There is one circuit per operation, because stores also fail by operation. A store that can't
//! create buckets may still answer looks, and such an answer is no reason to try hundreds of
//! creates again. A failure is an answer which shows that the store can't take calls at all. An
//! error about one request concerns that request only, and its claim's backoff is enough.
//!
//! A bucket can be so large or so broken that every call about it times out, and its tenant may
//! have caused that. So each claim counts once, however often its calls fail, and can't open a
//! circuit alone. Five failing claims of one namespace open the circuit for that namespace, and
//! five failing namespaces open it for all. If a store is down and fewer claims call it, their own
//! backoffs limit the calls.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use daemon::backoff::wait;
use tokio::time::Instant;

/// Number of claims of a namespace, and of namespaces, whose consecutive failures open a circuit.
const THRESHOLD: usize = 5;
/// Duration of the first rest of an open circuit; each further one is twice as long, up to
/// [`LONGEST_REST`].
///
/// It is short, because many claims that fail once don't mean a long outage.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(300);
/// Maximum number of stored circuits of single namespaces. They are not removed when a namespace is
/// deleted.
const MOST_KEPT: usize = 256;

/// The circuits of one store.
#[derive(Debug)]
pub(super) struct Circuits {
    /// Deadline of a call.
    deadline: Duration,
    of_all: BTreeMap<&'static str, Circuit>,
    of_namespaces: BTreeMap<(&'static str, String), Circuit>,
    /// Set while the last probe failed.
    unreachable: bool,
}

/// The operation and the caller of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker<'a> {
    pub(super) operation: &'static str,
    pub(super) namespace: &'a str,
    /// UID of the claim.
    pub(super) claim: &'a str,
}

/// The state of a circuit. A circuit without an entry is closed, with no recent failures.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Circuit {
    /// Calls are admitted. Those listed have failed since the last success.
    Closed { failing: BTreeSet<String> },
    /// No call is admitted before `trial`. Then one is, and `trial` moves on, so a trial call whose
    /// result is lost costs only a delay.
    Open { trial: Instant, rests: u32 },
}

/// The decision about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// The circuits are closed.
    Free,
    /// The call tests if the store has recovered.
    Trial,
    /// The call must not be made.
    Refused,
}

/// A call that failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure {
    pub(super) admission: Admission,
    /// Time from the store's `Retry-After`.
    pub(super) asked: Option<Duration>,
    pub(super) at: Instant,
    /// Jitter of the next trial, in 0..1.
    pub(super) chance: f64,
}

impl Circuits {
    /// Creates closed circuits. `deadline` is that of a call.
    pub(super) fn new(deadline: Duration) -> Self {
        Self { deadline, of_all: BTreeMap::new(), of_namespaces: BTreeMap::new(), unreachable: false }
    }

    /// Decides about a call that is to be made now.
    pub(super) fn admit(&mut self, asker: Asker<'_>, now: Instant) -> Admission {
        let of_namespace = self.of_namespaces.get_mut(&(asker.operation, asker.namespace.to_owned()));
        let mut open: Vec<&mut Circuit> =
            of_namespace.into_iter().chain(self.of_all.get_mut(asker.operation)).filter(|c| c.is_open()).collect();
        // A trial needs both circuits: if one of them refuses the call, the other's trial would be
        // lost.
        if open.iter().any(|circuit| circuit.rests_at(now)) {
            return Admission::Refused;
        }
        open.iter_mut().for_each(|circuit| circuit.begin_trial(now, self.deadline));
        if open.is_empty() { Admission::Free } else { Admission::Trial }
    }

    /// Records that the store answered. Returns true if that closed a circuit.
    pub(super) fn answered(&mut self, asker: Asker<'_>) -> bool {
        let of_namespace = self.of_namespaces.remove(&(asker.operation, asker.namespace.to_owned()));
        let of_all = self.of_all.remove(asker.operation);
        of_namespace.into_iter().chain(of_all).any(|circuit| circuit.is_open())
    }

    /// Records a failed call. Returns true if a circuit for this operation and caller is open now.
    pub(super) fn failed(&mut self, asker: Asker<'_>, failure: Failure) -> bool {
        let key = (asker.operation, asker.namespace.to_owned());
        if self.of_namespaces.len() >= MOST_KEPT && !self.of_namespaces.contains_key(&key) {
            self.forget_one();
        }
        let of_namespace = self.of_namespaces.entry(key).or_default().failed(asker.claim, failure);
        let of_all = self.of_all.entry(asker.operation).or_default().failed(asker.namespace, failure);
        of_namespace || of_all
    }

    /// Removes a closed circuit of a namespace, or the one whose trial is due first. Its state will
    /// be found out again.
    fn forget_one(&mut self) {
        let due = |circuit: &Circuit| match circuit {
            Circuit::Closed { .. } => None,
            Circuit::Open { trial, .. } => Some(*trial),
        };
        let first = self.of_namespaces.iter().min_by_key(|(_, circuit)| due(circuit)).map(|(key, _)| key.clone());
        first.and_then(|key| self.of_namespaces.remove(&key));
    }

    /// Records the result of a probe. Returns true if that made any trial due.
    ///
    /// A success after a failure shows that the store is back, so every open circuit gets its trial
    /// at once.
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

    /// Records a failed call. Returns true if the circuit is open now.
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
            // The call began before the circuit opened, and adds nothing new.
            Self::Open { .. } => return true,
        };
        let least = failure.asked.unwrap_or_default().min(LONGEST_REST);
        *self = Self::Open { trial: failure.at + rest(rests, failure.chance).max(least), rests };
        true
    }
}

/// Returns the duration of the rest after this many failed trials.
fn rest(rests: u32, chance: f64) -> Duration {
    wait(FIRST_REST, LONGEST_REST, rests, chance)
}

#[cfg(test)]
#[path = "circuit_tests.rs"]
mod tests;
