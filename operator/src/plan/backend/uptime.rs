//! The time that distances are measured by.

use std::ops::Add;
use std::time::Duration;

/// A moment, as how long the process had run by then. Unlike the time of day it is never set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Uptime(pub Duration);

impl Uptime {
    /// How long it is from this moment to that one; nothing if that is past.
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
