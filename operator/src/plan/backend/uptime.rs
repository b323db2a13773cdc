//! Monotonic time.

use std::ops::Add;
use std::time::Duration;

/// A moment, as the time since the start of the process. Unlike the wall clock it is never set
/// back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Uptime(pub Duration);

impl Uptime {
    /// Returns the time from this moment to `that`, or zero if `that` is past.
    pub(super) fn until(self, that: Self) -> Duration {
        that.0.saturating_sub(self.0)
    }
}

impl Add<Duration> for Uptime {
    type Output = Self;

    fn add(self, distance: Duration) -> Self {
        Self(self.0.saturating_add(distance))
    }
}
