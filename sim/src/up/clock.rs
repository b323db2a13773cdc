//! The time of a running simulator: the machine's time plus an offset that users set.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};
use seeded::WallClock;

/// A clock that can be moved forward. Clones share their offset.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock(Arc<AtomicI64>);

impl Clock {
    /// Sets the offset from the machine's time, in seconds.
    pub(super) fn set(&self, ahead: i64) {
        self.0.store(ahead, Ordering::Relaxed);
    }

    /// Returns the offset from the machine's time, in seconds.
    pub(super) fn ahead(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns the current time of this clock. It stops at the last timestamp (in the year 9999).
    pub(super) fn now(&self) -> Timestamp {
        Timestamp::now().checked_add(SignedDuration::from_secs(self.ahead())).unwrap_or(Timestamp::MAX)
    }

    /// Returns the clock as a function, for code that takes a [`WallClock`].
    pub(super) fn clock(&self) -> WallClock {
        let clock = self.clone();
        Arc::new(move || clock.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_is_set_to_shows() {
        let clock = Clock::default();
        let read = clock.clock();
        clock.set(3660);
        assert_eq!(clock.ahead(), 3660);
        let ahead = read().duration_since(Timestamp::now());
        assert!((3655..=3660).contains(&ahead.as_secs()), "{ahead}");
    }
}
