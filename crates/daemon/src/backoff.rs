//! Waits between attempts. Time and randomness are passed in.

use std::time::Duration;

use kube::runtime::utils::Backoff;
use kube::runtime::watcher::DefaultBackoff;
use tokio::time::Instant;

/// Returns an exponential wait: `first`, doubled `doublings` times, capped at `longest`, then
/// varied by up to a quarter in both directions by `chance`, which is in 0..1.
pub fn wait(first: Duration, longest: Duration, doublings: u32, chance: f64) -> Duration {
    first.saturating_mul(1 << doublings.min(16)).min(longest).mul_f64(0.75 + 0.5 * chance)
}

/// Time without failures after which a watch counts as recovered. Longer than the deadline of a
/// call and the longest wait together.
const WELL: Duration = Duration::from_secs(120);

/// Waits between attempts of a failed watch: kube-runtime's default backoff, up to half a minute,
/// but with a stricter reset.
///
/// kube-runtime resets its backoff on every successful event. A list that is about to fail, and a
/// list that replaces an expired watch, both begin with such an event (`Init`), so kube-runtime
/// would retry every second for as long as the problem lasts. This backoff is reset only once
/// nothing has failed for a while.
pub struct WatchBackoff {
    now: fn() -> Instant,
    waits: DefaultBackoff,
    failed: Option<Instant>,
}

impl WatchBackoff {
    /// Creates the backoff of a watch that has not failed yet. `now` is its clock.
    pub fn new(now: fn() -> Instant) -> Self {
        Self { now, waits: DefaultBackoff::default(), failed: None }
    }
}

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.failed = Some((self.now)());
        self.waits.next()
    }
}

impl Backoff for WatchBackoff {
    fn reset(&mut self) {
        if self.failed.is_none_or(|failed| (self.now)() - failed > WELL) {
            self.waits.reset();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt, stream};
    use kube::runtime::WatchStreamExt;

    use super::*;

    /// Counts the failures within half an hour of a watch that repeats these outcomes.
    async fn tries(told: &[Result<(), ()>]) -> usize {
        let began = Instant::now();
        let outcomes = stream::iter(told.iter().copied().cycle()).backoff(WatchBackoff::new(Instant::now));
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
        let mut backoff = WatchBackoff::new(Instant::now);
        let first = backoff.next();
        for _ in 0..10 {
            backoff.next();
        }
        let soon = Some(Duration::from_secs(2));
        tokio::time::advance(WELL + Duration::from_secs(1)).await;
        assert!(backoff.next() < soon && first < soon);
        for _ in 0..10 {
            backoff.next();
        }
        tokio::time::advance(WELL + Duration::from_secs(1)).await;
        backoff.reset();
        assert!(backoff.next() < soon);
    }
}
