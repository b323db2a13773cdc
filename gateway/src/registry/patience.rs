//! How long a watch that failed waits before it is tried again.

use std::time::Duration;

use kube::runtime::utils::Backoff;
use kube::runtime::watcher::DefaultBackoff;
use tokio::time::Instant;

/// A watch that has failed is well again once nothing has failed for so long: longer than the
/// deadline of a call and the longest wait together.
const WELL: Duration = Duration::from_secs(120);

/// kube-runtime's own wait, up to half a minute, but that good news resets it only once nothing has
/// failed for a while. A list that is going to fail begins with the news that it begins:
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

impl Backoff for Patience {
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

    /// Tries of a watch within half an hour, each of which tells this before it fails.
    async fn tries(told: &[Result<(), ()>]) -> usize {
        let began = Instant::now();
        let outcomes = stream::iter(told.iter().copied().cycle()).backoff(Patience::default());
        let in_time = outcomes.take_while(|_| std::future::ready(began.elapsed() < Duration::from_secs(1800)));
        in_time.filter(|outcome| std::future::ready(outcome.is_err())).count().await
    }

    #[tokio::test(start_paused = true)]
    async fn watches_that_fail_are_tried_ever_more_seldom_also_where_each_begins_well() {
        let tries = [tries(&[Err(())]).await, tries(&[Ok(()), Err(())]).await];
        assert!(tries.iter().all(|tries| (30..100).contains(tries)), "{tries:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_was_well_for_a_while_is_tried_again_at_once() {
        let mut patience = Patience::default();
        for _ in 0..10 {
            patience.next();
        }
        tokio::time::advance(WELL + Duration::from_secs(1)).await;
        patience.reset();
        assert!(patience.next() < Some(Duration::from_secs(2)));
    }
}
