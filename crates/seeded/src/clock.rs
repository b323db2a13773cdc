//! A wall clock for simulated time.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A wall clock as a function that returns the current time.
pub type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A wall clock that follows tokio's clock: a fixed start plus the time that has passed on tokio's
/// clock since.
#[derive(Clone, Debug)]
pub struct VirtualClock {
    start: Timestamp,
    origin: Instant,
}

impl VirtualClock {
    /// Creates a clock that shows `start` now.
    pub fn starting_at(start: Timestamp) -> Self {
        Self { start, origin: Instant::now() }
    }

    /// Creates a clock that shows [`Self::epoch`] now.
    pub fn new() -> Self {
        Self::starting_at(Self::epoch())
    }

    /// Returns 2030-01-01T00:00:00Z: later than any certificate or date in the code.
    pub fn epoch() -> Timestamp {
        Timestamp::from_second(1_893_456_000).expect("well within a timestamp's range")
    }

    /// Returns the current time of this clock. It stops at the last timestamp (in the year 9999).
    pub fn now(&self) -> Timestamp {
        SignedDuration::try_from(self.origin.elapsed())
            .ok()
            .and_then(|passed| self.start.checked_add(passed).ok())
            .unwrap_or(Timestamp::MAX)
    }

    /// Returns the clock as a function, for code that takes a [`WallClock`].
    pub fn clock(&self) -> WallClock {
        let clock = self.clone();
        Arc::new(move || clock.now())
    }
}

impl Default for VirtualClock {
    fn default() -> Self {
        Self::new()
    }
}
