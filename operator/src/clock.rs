//! The time of day, and the time since the machine started; both are passed in.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};

/// Tells the time of day. What is decided on it is decided in whole seconds, as Kubernetes stores
/// times.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// A clock that asks `now`.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The system's clock.
    pub fn system() -> Self {
        Self::new(Timestamp::now)
    }

    /// The time, cut to the second.
    pub fn now(&self) -> Timestamp {
        let now = (self.0)();
        Timestamp::from_second(now.as_second()).unwrap_or(now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// Tells how long the machine has been up, in which nobody sets the clock. It goes on while the
/// machine is suspended, which timers don't: whoever wakes up after an hour knows that it was one.
#[derive(Clone)]
pub struct Uptime(Arc<dyn Fn() -> Duration + Send + Sync>);

impl Uptime {
    /// A clock that asks `now`.
    pub fn new(now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The system's: `CLOCK_BOOTTIME`. On macOS `CLOCK_MONOTONIC` goes on in a suspended machine.
    pub fn system() -> Self {
        #[cfg(target_os = "macos")]
        const CLOCK: ClockId = ClockId::Monotonic;
        #[cfg(not(target_os = "macos"))]
        const CLOCK: ClockId = ClockId::Boottime;
        Self::new(|| {
            let now = clock_gettime(CLOCK);
            let seconds = Duration::from_secs(u64::try_from(now.tv_sec).unwrap_or_default());
            seconds + Duration::from_nanos(u64::try_from(now.tv_nsec).unwrap_or_default())
        })
    }

    /// Time since some moment that stays the same.
    pub fn now(&self) -> Duration {
        (self.0)()
    }
}

impl fmt::Debug for Uptime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Uptime")
    }
}
