//! Circuits: a store that gives no usable answer is left alone for a while, and then asked by one
//! call.
//!
//! One circuit per operation, because stores fail by operation too: one that creates no bucket can
//! still be looked at, and that a look succeeds is no reason to try hundreds of creates again. What
//! counts as a failure is that the store can't take calls at all; an error that it answers to one
//! request is that request's own, and its claim's backoff is enough.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// Failures in a row that open a circuit.
const THRESHOLD: u32 = 5;
/// How long the first rest is; each one after it is twice as long, up to [`LONGEST_REST`].
const FIRST_REST: Duration = Duration::from_secs(5);
const LONGEST_REST: Duration = Duration::from_secs(300);

/// The circuits of one store.
#[derive(Debug)]
pub(super) struct Circuits {
    /// Longest that a call takes.
    deadline: Duration,
    by_operation: BTreeMap<&'static str, Circuit>,
    /// The last probe failed.
    unreachable: bool,
}

/// The circuit of one operation. Without an entry it is closed, and nothing has failed lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Circuit {
    /// Calls go through; this many have failed in a row.
    Closed { failures: u32 },
    /// No call goes through before `trial`, and then one, which moves `trial` on. So a trial that
    /// is never heard of again costs a delay and no more.
    Open { trial: Instant, rests: u32 },
}

/// What a call is to its circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// One of many.
    Free,
    /// The one that shows whether the store is back.
    Trial,
    /// It is not made.
    Refused,
}

impl Circuits {
    /// All closed. `deadline` is the longest that a call takes.
    pub(super) fn new(deadline: Duration) -> Self {
        Self { deadline, by_operation: BTreeMap::new(), unreachable: false }
    }

    /// Whether a call may be made now.
    pub(super) fn admit(&mut self, operation: &'static str, now: Instant) -> Admission {
        match self.by_operation.get_mut(operation) {
            Some(Circuit::Open { trial, .. }) if *trial > now => Admission::Refused,
            Some(Circuit::Open { trial, rests }) => {
                *trial = now + rest(*rests, 0.5).max(self.deadline);
                Admission::Trial
            }
            Some(Circuit::Closed { .. }) | None => Admission::Free,
        }
    }

    /// Takes in that the store answered. Whether that closed the circuit.
    pub(super) fn answered(&mut self, operation: &'static str) -> bool {
        matches!(self.by_operation.remove(operation), Some(Circuit::Open { .. }))
    }

    /// Takes in that a call failed. `asked` is how long the store asks to be left alone; `chance`
    /// is in 0..1. Whether the circuit is open now.
    pub(super) fn failed(
        &mut self,
        operation: &'static str,
        admission: Admission,
        asked: Option<Duration>,
        now: Instant,
        chance: f64,
    ) -> bool {
        let circuit = self.by_operation.entry(operation).or_insert(Circuit::Closed { failures: 0 });
        let rests = match *circuit {
            Circuit::Closed { failures } if failures + 1 < THRESHOLD => {
                *circuit = Circuit::Closed { failures: failures + 1 };
                return false;
            }
            Circuit::Closed { .. } => 0,
            Circuit::Open { rests, .. } if admission == Admission::Trial => rests.saturating_add(1),
            // It was under way when the circuit opened, and says nothing new.
            Circuit::Open { .. } => return true,
        };
        let least = asked.unwrap_or_default().min(LONGEST_REST);
        *circuit = Circuit::Open { trial: now + rest(rests, chance).max(least), rests };
        true
    }

    /// Takes in how a probe went. A success after a failure shows that the store is back: every
    /// open circuit has its trial at once. Whether there is any.
    pub(super) fn probed(&mut self, succeeded: bool, now: Instant) -> bool {
        let back = succeeded && self.unreachable;
        self.unreachable = !succeeded;
        let mut any = false;
        for circuit in self.by_operation.values_mut().filter(|_| back) {
            if let Circuit::Open { trial, .. } = circuit {
                *trial = now;
                any = true;
            }
        }
        any
    }
}

/// How long the store is left alone after this many rests in vain.
fn rest(rests: u32, chance: f64) -> Duration {
    let full = FIRST_REST.saturating_mul(1 << rests.min(16)).min(LONGEST_REST);
    full.mul_f64(0.75 + 0.5 * chance)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREATE: &str = "CreateBucket";
    const DEADLINE: Duration = Duration::from_secs(30);

    /// A circuit that has just opened, and when that was.
    fn opened() -> (Circuits, Instant) {
        let (mut circuits, now) = (Circuits::new(DEADLINE), Instant::now());
        for _ in 1..THRESHOLD {
            assert!(!circuits.failed(CREATE, Admission::Free, None, now, 0.5));
            assert_eq!(circuits.admit(CREATE, now), Admission::Free);
        }
        assert!(circuits.failed(CREATE, Admission::Free, None, now, 0.5));
        (circuits, now)
    }

    /// Lets the trial fail `times` times; how long the store was left alone each time.
    fn rests(circuits: &mut Circuits, mut now: Instant, times: u32) -> Vec<Duration> {
        let rest = |_| {
            let Some(Circuit::Open { trial, .. }) = circuits.by_operation.get(CREATE).copied() else {
                panic!("it is closed")
            };
            let rested = trial - now;
            now = trial;
            assert_eq!(circuits.admit(CREATE, now), Admission::Trial);
            assert!(circuits.failed(CREATE, Admission::Trial, None, now, 0.5));
            rested
        };
        (0..times).map(rest).collect()
    }

    #[test]
    fn a_run_of_failures_opens_it_and_an_answer_among_them_does_not_let_it() {
        let (mut circuits, now) = (Circuits::new(DEADLINE), Instant::now());
        for turn in 1..=10 * THRESHOLD {
            assert!(!circuits.failed(CREATE, Admission::Free, None, now, 0.5));
            if turn % (THRESHOLD - 1) == 0 {
                assert!(!circuits.answered(CREATE), "it was closed before");
            }
        }
        let (mut circuits, now) = opened();
        assert_eq!(circuits.admit(CREATE, now), Admission::Refused);
    }

    #[test]
    fn operations_have_their_own() {
        let (mut circuits, now) = opened();
        assert_eq!(circuits.admit("GetBucketTagging", now), Admission::Free);
        assert!(!circuits.answered("GetBucketTagging"));
        assert_eq!(circuits.admit(CREATE, now), Admission::Refused);
    }

    #[test]
    fn rests_grow_to_a_cap_and_one_call_ends_each() {
        let (mut circuits, now) = opened();
        let rests = rests(&mut circuits, now, 12);
        assert_eq!(rests[0], FIRST_REST);
        assert!(rests.is_sorted());
        assert_eq!(rests[11], LONGEST_REST);
        let later = now + Duration::from_secs(7200);
        assert_eq!(circuits.admit(CREATE, later), Admission::Trial);
        assert_eq!(circuits.admit(CREATE, later), Admission::Refused, "one at a time");
    }

    #[test]
    fn rests_are_jittered() {
        assert!(rest(3, 0.0) < rest(3, 1.0));
    }

    #[test]
    fn a_trial_that_is_never_heard_of_is_followed_by_another() {
        let (mut circuits, now) = opened();
        let trial = now + FIRST_REST;
        assert_eq!(circuits.admit(CREATE, trial), Admission::Trial);
        assert_eq!(circuits.admit(CREATE, trial + DEADLINE - Duration::from_millis(1)), Admission::Refused);
        assert_eq!(circuits.admit(CREATE, trial + DEADLINE), Admission::Trial);
    }

    #[test]
    fn what_was_under_way_when_it_opened_does_not_lengthen_the_rest() {
        let (mut circuits, now) = opened();
        let before = circuits.by_operation.clone();
        assert!(circuits.failed(CREATE, Admission::Free, None, now, 1.0));
        assert_eq!(circuits.by_operation, before);
        assert!(circuits.answered(CREATE), "an answer closes it all the same");
        assert_eq!(circuits.admit(CREATE, now), Admission::Free);
    }

    #[test]
    fn an_answer_to_the_trial_closes_it_and_all_is_forgotten() {
        let (mut circuits, now) = opened();
        rests(&mut circuits, now, 5);
        assert!(circuits.answered(CREATE));
        assert_eq!(circuits.admit(CREATE, now), Admission::Free);
        assert!(!circuits.failed(CREATE, Admission::Free, None, now, 0.5), "one failure is one failure again");
    }

    #[test]
    fn a_store_is_left_alone_for_as_long_as_it_asks_but_not_for_ever() {
        for (asked, granted) in [(60, 60), (86_400, 300)] {
            let (mut circuits, now) = opened();
            let trial = now + FIRST_REST;
            assert_eq!(circuits.admit(CREATE, trial), Admission::Trial);
            circuits.failed(CREATE, Admission::Trial, Some(Duration::from_secs(asked)), trial, 0.5);
            let granted = trial + Duration::from_secs(granted);
            assert_eq!(circuits.admit(CREATE, granted - Duration::from_millis(1)), Admission::Refused);
            assert_eq!(circuits.admit(CREATE, granted), Admission::Trial);
        }
    }

    #[test]
    fn a_probe_that_succeeds_after_one_that_failed_brings_the_trial_forward() {
        let (mut circuits, now) = opened();
        assert!(!circuits.probed(true, now), "the store could be reached all the time: that says nothing new");
        assert_eq!(circuits.admit(CREATE, now), Admission::Refused);
        assert!(!circuits.probed(false, now));
        assert!(circuits.probed(true, now));
        assert_eq!(circuits.admit(CREATE, now), Admission::Trial);
        assert_eq!(circuits.admit(CREATE, now), Admission::Refused);
    }

    #[test]
    fn closed_circuits_have_nothing_to_try() {
        let mut circuits = Circuits::new(DEADLINE);
        circuits.probed(false, Instant::now());
        assert!(!circuits.probed(true, Instant::now()));
    }
}
