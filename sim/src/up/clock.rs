//! The time of a running simulator: the machine's, moved ahead by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};
use seeded::WallClock;

/// A clock that can be moved ahead. Clones are the same clock.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock(Arc<AtomicI64>);

impl Clock {
    /// Moves it ahead by so many seconds; says how many it is ahead of the machine's then.
    pub(super) fn advance(&self, seconds: u32) -> i64 {
        let seconds = i64::from(seconds);
        self.0.fetch_add(seconds, Ordering::Relaxed).saturating_add(seconds)
    }

    /// Seconds that it is ahead of the machine's.
    pub(super) fn ahead(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    /// What it shows. Stops at the last timestamp there is (the year 9999).
    pub(super) fn now(&self) -> Timestamp {
        Timestamp::now().checked_add(SignedDuration::from_secs(self.ahead())).unwrap_or(Timestamp::MAX)
    }

    /// The clock as a function, to be handed to whoever asks for the time.
    pub(super) fn clock(&self) -> WallClock {
        let clock = self.clone();
        Arc::new(move || clock.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_is_moved_by_adds_up_and_shows() {
        let clock = Clock::default();
        let read = clock.clock();
        assert_eq!((clock.advance(60), clock.advance(3600)), (60, 3660));
        let ahead = read().duration_since(Timestamp::now());
        assert!((3655..=3660).contains(&ahead.as_secs()), "{ahead}");
    }
}
