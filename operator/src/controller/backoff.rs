//! Backoff per object: exponential, with jitter and a cap (spec §3.5).

use std::collections::BTreeMap;
use std::time::Duration;

use daemon::backoff::wait;
use parking_lot::Mutex;

/// The first delay: four failures in a row cost less than three seconds.
///
/// However short it is, after N seconds of failures the next retry is about N seconds away, up to
/// the cap.
const FIRST: Duration = Duration::from_millis(150);
const CAP: Duration = Duration::from_secs(300);

/// Consecutive failures, by UID. Contains only objects that fail.
#[derive(Default)]
pub(super) struct Backoff(Mutex<BTreeMap<String, u32>>);

impl Backoff {
    /// Counts a failure and returns the delay before the next try.
    pub(super) fn failed(&self, uid: &str) -> Duration {
        let mut failures = self.0.lock();
        let count = failures.entry(uid.to_owned()).or_default();
        *count += 1;
        delay(*count, fastrand::f64())
    }

    /// Returns the number of consecutive failures of an object.
    pub(super) fn failures(&self, uid: &str) -> u32 {
        self.0.lock().get(uid).copied().unwrap_or_default()
    }

    /// Resets the count of an object that succeeded or is deleted.
    pub(super) fn reset(&self, uid: &str) {
        self.0.lock().remove(uid);
    }
}

/// Returns the delay after the `count`th consecutive failure; `chance` is in 0..1.
fn delay(count: u32, chance: f64) -> Duration {
    wait(FIRST, CAP, count.saturating_sub(1), chance)
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

    // covers: 3.5.backoff, 3.5.backoff.short
    #[test]
    fn a_short_trouble_costs_seconds_and_a_long_one_is_tried_as_seldom_as_ever() {
        let waits = |chance| (1..).map(move |count| delay(count, chance));
        assert!(waits(1.0).take(4).sum::<Duration>() < Duration::from_secs(3));
        let tries = |mut left: Duration| {
            let in_time = |wait: &Duration| left.checked_sub(*wait).map(|rest| left = rest).is_some();
            waits(0.5).take_while(in_time).count()
        };
        // With a first delay of half a second these would be 6 and 20.
        assert_eq!(tries(Duration::from_secs(60)), 8);
        assert_eq!(tries(Duration::from_secs(3600)), 21);
    }

    // covers: 3.5.backoff
    #[test]
    fn waits_are_jittered() {
        assert_eq!(delay(2, 0.0), Duration::from_millis(225));
        assert_eq!(delay(2, 1.0), Duration::from_millis(375));
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
