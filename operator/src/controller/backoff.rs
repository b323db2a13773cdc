//! Backoff per object: exponential, with jitter and a cap (spec §3.5).

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(500);
const CAP: Duration = Duration::from_secs(300);

/// Failures in a row, by UID. Holds an entry only for objects that fail.
#[derive(Default)]
pub(super) struct Backoff(Mutex<BTreeMap<String, u32>>);

impl Backoff {
    /// Counts a failure, and says how long to wait.
    pub(super) fn failed(&self, uid: &str) -> Duration {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failures.entry(uid.to_owned()).or_default();
        *count += 1;
        delay(*count, fastrand::f64())
    }

    /// Forgets the failures of an object that works, or is gone.
    pub(super) fn reset(&self, uid: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}

/// The wait after the `count`th failure in a row; `chance` is in 0..1.
fn delay(count: u32, chance: f64) -> Duration {
    let full = FIRST.saturating_mul(1 << count.saturating_sub(1).min(16)).min(CAP);
    full.mul_f64(0.75 + 0.5 * chance)
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: 3.5.backoff
    #[test]
    fn waits_grow_to_a_cap() {
        let waits: Vec<Duration> = (1..20).map(|count| delay(count, 0.5)).collect();
        assert_eq!(waits[0], FIRST);
        assert!(waits.is_sorted());
        assert_eq!(waits[18], CAP);
    }

    // covers: 3.5.backoff
    #[test]
    fn waits_are_jittered() {
        assert_eq!(delay(1, 0.0), Duration::from_millis(375));
        assert_eq!(delay(1, 1.0), Duration::from_millis(625));
    }

    // covers: 3.5.backoff
    #[test]
    fn success_starts_over() {
        let backoff = Backoff::default();
        for _ in 0..8 {
            backoff.failed("u");
        }
        backoff.reset("u");
        assert!(backoff.failed("u") < Duration::from_secs(1));
    }
}
