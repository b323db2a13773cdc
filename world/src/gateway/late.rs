//! Delayed streams, to simulate a gateway whose watch lags.

use std::collections::VecDeque;
use std::time::Duration;

use futures::{Stream, StreamExt};
use tokio::time::{Instant, sleep_until};

/// Forwards the items of a stream in order, each delayed by the value of `lag` when it arrived.
/// Without a lag, items are forwarded at once. Ends when the source has ended and all items were
/// forwarded.
pub(super) fn late<T>(source: impl Stream<Item = T>, lag: impl Fn() -> Duration) -> impl Stream<Item = T> {
    let source = Box::pin(source.fuse());
    futures::stream::unfold((source, VecDeque::new(), lag), |(mut source, mut waiting, lag)| async move {
        loop {
            if source.is_done() && waiting.is_empty() {
                return None;
            }
            let due = waiting.front().map(|(due, _): &(Instant, T)| *due);
            tokio::select! {
                biased;
                () = until(due) => {
                    let (_, item) = waiting.pop_front()?;
                    return Some((item, (source, waiting, lag)));
                }
                item = source.next(), if !source.is_done() => {
                    // The source has ended; queued items are still forwarded when they are due.
                    let Some(item) = item else { continue };
                    let behind = lag();
                    if behind.is_zero() && waiting.is_empty() {
                        return Some((item, (source, waiting, lag)));
                    }
                    waiting.push_back((Instant::now() + behind, item));
                }
            }
        }
    })
}

/// Waits until the next item is due; forever without one.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures::stream;
    use tokio::time::sleep;

    use super::*;

    /// Sends an item every second, and returns the second at which each is forwarded.
    async fn passed_on(lag: impl Fn() -> Duration) -> Vec<(u64, u64)> {
        let start = Instant::now();
        let source = stream::unfold(1_u64, |item| async move {
            sleep(Duration::from_secs(1)).await;
            Some((item, item + 1))
        });
        let late = late(source, lag).map(|item| (item, start.elapsed().as_secs()));
        Box::pin(late).take(4).collect().await
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_lag_nothing_is_late() {
        assert_eq!(passed_on(|| Duration::ZERO).await, [(1, 1), (2, 2), (3, 3), (4, 4)]);
    }

    #[tokio::test(start_paused = true)]
    async fn from_when_it_lags_everything_is_late_and_in_order() {
        let asked = Cell::new(0);
        let lag = || {
            asked.set(asked.get() + 1);
            Duration::from_secs(if asked.get() < 2 { 0 } else { 20 })
        };
        assert_eq!(passed_on(lag).await, [(1, 1), (2, 22), (3, 23), (4, 24)]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_ends_is_passed_on_to_its_end() {
        let start = Instant::now();
        let late = late(stream::iter([1, 2]), || Duration::from_secs(5));
        let all: Vec<_> = late.map(|item| (item, start.elapsed().as_secs())).collect().await;
        assert_eq!(all, [(1, 5), (2, 5)]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_when_the_lag_is_over_does_not_overtake() {
        let asked = Cell::new(0);
        let lag = || {
            asked.set(asked.get() + 1);
            Duration::from_secs(if asked.get() < 2 { 2 } else { 0 })
        };
        assert_eq!(passed_on(lag).await, [(1, 3), (2, 3), (3, 3), (4, 4)]);
    }
}
