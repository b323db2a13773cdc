//! A circuit breaker for one store: a store that can't be reached is not called except for a trial
//! now and then, so that requests for it fail at once and occupy nothing that others need.
//!
//! Pure: the time is passed in. The end of a trial need not be reported, as the next trial depends
//! on the time alone: a client that disconnects during a trial blocks nothing.

use std::time::Duration;

use tokio::time::Instant;

/// Number of consecutive calls without a response that open the circuit.
const THRESHOLD: u32 = 5;
/// The first interval without calls.
const REST: Duration = Duration::from_secs(1);
/// The longest interval. Every failed trial doubles it up to this.
const LONGEST_REST: Duration = Duration::from_secs(10);

/// The state of one store.
#[derive(Debug, Default)]
pub struct Circuit {
    /// Calls without a response since the last response.
    failures: u32,
    last_answer: Option<Instant>,
    open: Option<Open>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    /// Time of the next trial.
    next: Instant,
    rest: Duration,
}

/// Permission to call a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// A normal call.
    Free,
    /// A trial call, to see if the store is back.
    Trial,
}

impl Circuit {
    /// Returns the permission for one call, or `None` if the circuit is open.
    pub fn admit(&mut self, now: Instant) -> Option<Leave> {
        match &mut self.open {
            None => Some(Leave::Free),
            Some(open) if now >= open.next => {
                open.next = now + open.rest;
                Some(Leave::Trial)
            }
            Some(_) => None,
        }
    }

    /// Records a response of any kind. Returns true if the circuit was open.
    pub fn answered(&mut self, now: Instant) -> bool {
        self.failures = 0;
        self.last_answer = Some(now);
        self.open.take().is_some()
    }

    /// Records that a call that began at `began` has no response. It is ignored if another call has
    /// got one since: some requests take a store longer than any deadline. Returns true if the
    /// circuit has opened now.
    pub fn failed(&mut self, leave: Leave, began: Instant, now: Instant) -> bool {
        if self.last_answer.is_some_and(|answer| answer >= began) {
            return false;
        }
        match (&mut self.open, leave) {
            (Some(open), Leave::Trial) => {
                open.rest = (open.rest * 2).min(LONGEST_REST);
                open.next = now + open.rest;
                false
            }
            // It was permitted before the circuit opened.
            (Some(_), Leave::Free) => false,
            (None, _) => {
                self.failures = self.failures.saturating_add(1);
                let opens = self.failures >= THRESHOLD;
                self.open = opens.then(|| Open { next: now + REST, rest: REST });
                opens
            }
        }
    }

    /// Returns true if the circuit is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns a circuit that has just opened.
    fn opened(now: Instant) -> Circuit {
        let mut circuit = Circuit::default();
        for turn in 1..=THRESHOLD {
            assert_eq!(circuit.admit(now), Some(Leave::Free));
            assert_eq!(circuit.failed(Leave::Free, now, now), turn == THRESHOLD);
        }
        circuit
    }

    #[test]
    fn an_answer_between_failures_keeps_it_closed() {
        let (mut circuit, mut now) = (Circuit::default(), Instant::now());
        for _ in 0..10 {
            for _ in 1..THRESHOLD {
                now += SECOND;
                assert!(!circuit.failed(Leave::Free, now, now));
            }
            now += SECOND;
            assert!(!circuit.answered(now));
        }
        assert_eq!(circuit.admit(now), Some(Leave::Free));
    }

    #[test]
    fn calls_that_others_outlive_say_nothing() {
        let (mut circuit, began) = (Circuit::default(), Instant::now());
        circuit.answered(began + SECOND);
        for _ in 0..10 * THRESHOLD {
            assert!(!circuit.failed(Leave::Free, began, began + 60 * SECOND));
        }
        assert_eq!(circuit.admit(began + 60 * SECOND), Some(Leave::Free));
    }

    #[test]
    fn trials_are_one_at_a_time_and_ever_rarer() {
        let mut now = Instant::now();
        let mut circuit = opened(now);
        for rest in [1, 2, 4, 8, 10, 10] {
            let next = now + rest * SECOND;
            assert_eq!(circuit.admit(next - SECOND / 1000), None);
            assert_eq!(circuit.admit(next), Some(Leave::Trial));
            assert_eq!(circuit.admit(next), None);
            now = next + SECOND / 2;
            assert!(!circuit.failed(Leave::Trial, next, now));
        }
        assert!(circuit.is_open() && circuit.answered(now));
        assert_eq!((circuit.is_open(), circuit.admit(now)), (false, Some(Leave::Free)));
    }

    #[test]
    fn a_trial_that_nobody_tells_of_keeps_nobody_waiting() {
        let now = Instant::now();
        let mut circuit = opened(now);
        assert_eq!(circuit.admit(now + SECOND), Some(Leave::Trial));
        assert_eq!(circuit.admit(now + 2 * SECOND), Some(Leave::Trial));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Wait(u64),
        Ask,
        /// One of the calls in progress ends, with a response or without.
        End(prop::sample::Index, bool),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0_u64..15_000).prop_map(Step::Wait),
            Just(Step::Ask),
            Just(Step::Ask),
            (any::<prop::sample::Index>(), prop::bool::weighted(0.2)).prop_map(|(which, good)| Step::End(which, good)),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        #[test]
        fn a_store_is_let_alone_for_a_reason_and_never_for_long(steps in steps()) {
            let (mut circuit, mut now) = (Circuit::default(), Instant::now());
            let (mut calls, mut silent, mut last_leave) = (Vec::new(), 0_u32, None::<Instant>);
            for step in steps {
                match step {
                    Step::Wait(millis) => now += Duration::from_millis(millis),
                    Step::Ask => match circuit.admit(now) {
                        Some(leave) => {
                            if leave == Leave::Trial {
                                prop_assert!(last_leave.is_none_or(|last| now >= last + REST), "trials are rare");
                                last_leave = Some(now);
                            }
                            calls.push((leave, now));
                        }
                        None => prop_assert!(silent >= THRESHOLD, "refused after {} calls without an answer", silent),
                    },
                    Step::End(which, good) if !calls.is_empty() => {
                        let (leave, began) = calls.swap_remove(which.index(calls.len()));
                        if good {
                            circuit.answered(now);
                            (silent, last_leave) = (0, None);
                            prop_assert_eq!(circuit.admit(now), Some(Leave::Free));
                        } else {
                            silent += 1;
                            circuit.failed(leave, began, now);
                        }
                    }
                    Step::End(..) => (),
                }
            }
            prop_assert!(circuit.admit(now + LONGEST_REST).is_some(), "a trial comes in the end");
        }
    }
}
