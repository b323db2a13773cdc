//! A wall clock for simulated time.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A wall clock as code that needs one is handed it: a function that tells the time of day.
pub type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A wall clock that follows tokio's clock: a fixed start, plus what has passed by that clock
/// since.
#[derive(Clone, Debug)]
pub struct VirtualClock {
    start: Timestamp,
    origin: Instant,
}

impl VirtualClock {
    /// A clock that shows `start` now.
    pub fn starting_at(start: Timestamp) -> Self {
        Self { start, origin: Instant::now() }
    }

    /// A clock that shows [`Self::epoch`] now.
    pub fn new() -> Self {
        Self::starting_at(Self::epoch())
    }

    /// 2030-01-01T00:00:00Z: later than any certificate or date that comes with the code.
    pub fn epoch() -> Timestamp {
        Timestamp::from_second(1_893_456_000).expect("well within a timestamp's range")
    }

    /// What it shows. Stops at the last timestamp there is (the year 9999).
    pub fn now(&self) -> Timestamp {
        SignedDuration::try_from(self.origin.elapsed())
            .ok()
            .and_then(|passed| self.start.checked_add(passed).ok())
            .unwrap_or(Timestamp::MAX)
    }

    /// The clock as a function, to be handed to whoever asks for the time.
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
