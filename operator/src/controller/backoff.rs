//! Backoff per object: exponential, with jitter and a cap (spec §3.5); and that of watches.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::runtime::utils;
use kube::runtime::watcher::DefaultBackoff;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The first wait: four failures in a row cost less than three seconds. However short it is, after
/// so many seconds of trouble the next try is as far away as they are many, up to the cap.
const FIRST: Duration = Duration::from_millis(150);
const CAP: Duration = Duration::from_secs(300);

/// Failures in a row, by UID. Holds an entry only for objects that fail.
#[derive(Default)]
pub(super) struct Backoff(Mutex<BTreeMap<String, u32>>);

impl Backoff {
    /// Counts a failure, and says how long to wait.
    pub(super) fn failed(&self, uid: &str) -> Duration {
        let mut failures = self.0.lock();
        let count = failures.entry(uid.to_owned()).or_default();
        *count += 1;
        delay(*count, fastrand::f64())
    }

    /// How often in a row an object has failed.
    pub(super) fn failures(&self, uid: &str) -> u32 {
        self.0.lock().get(uid).copied().unwrap_or_default()
    }

    /// Forgets the failures of an object that works, or is gone.
    pub(super) fn reset(&self, uid: &str) {
        self.0.lock().remove(uid);
    }
}

/// The wait after the `count`th failure in a row; `chance` is in 0..1.
fn delay(count: u32, chance: f64) -> Duration {
    let full = FIRST.saturating_mul(1 << count.saturating_sub(1).min(16)).min(CAP);
    full.mul_f64(0.75 + 0.5 * chance)
}

/// A watch that has failed is well again once nothing has failed for so long: longer than the
/// deadline of a call and the longest wait together.
const WELL: Duration = Duration::from_secs(120);

/// The wait before a watch is tried again: kube-runtime's own, up to half a minute, but that good
/// news resets it only once nothing has failed for a while. A list that is going to fail, and one
/// that takes the place of a watch that has expired, begin with the news that they begin:
/// kube-runtime takes that for success, and so asks every second for as long as the trouble lasts.
#[derive(Default)]
pub(crate) struct Patience {
    waits: DefaultBackoff,
    failed: Option<Instant>,
}

impl Iterator for Patience {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.failed = Some(Instant::now());
        self.waits.next()
    }
}

impl utils::Backoff for Patience {
    fn reset(&mut self) {
        if self.failed.is_none_or(|failed| failed.elapsed() > WELL) {
            self.waits.reset();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt, stream};
    use kube::runtime::WatchStreamExt;

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
        // Beginning with half a second, 6 and 20.
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

    /// Tries of a watch within half an hour, each of which tells this before it fails.
    async fn tries(told: &[Result<(), ()>]) -> usize {
        let began = Instant::now();
        let outcomes = stream::iter(told.iter().copied().cycle()).backoff(Patience::default());
        let in_time = outcomes.take_while(|_| std::future::ready(began.elapsed() < Duration::from_secs(1800)));
        in_time.filter(|outcome| std::future::ready(outcome.is_err())).count().await
    }

    // covers: 3.5.backoff
    #[tokio::test(start_paused = true)]
    async fn watches_that_fail_are_tried_ever_more_seldom_also_where_each_begins_well() {
        let tries = [tries(&[Err(())]).await, tries(&[Ok(()), Err(())]).await];
        assert!(tries.iter().all(|tries| (30..70).contains(tries)), "{tries:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_was_well_for_a_while_is_tried_again_at_once() {
        let mut patience = Patience::default();
        let first = patience.next();
        for _ in 0..10 {
            patience.next();
        }
        tokio::time::advance(Duration::from_secs(121)).await;
        assert!(patience.next() < Some(Duration::from_secs(2)) && first < Some(Duration::from_secs(2)));
    }
}
