//! The wall clock and the uptime clock, both passed in as parameters.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};

/// A wall clock.
///
/// It is truncated to whole seconds, as Kubernetes stores times, so that decisions are the same for
/// a stored time and a current one.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// Creates a clock that reads `now`.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Returns the system's clock.
    pub fn system() -> Self {
        Self::new(Timestamp::now)
    }

    /// Returns the time, truncated to the second.
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

/// A clock of the time since boot, which nobody can set.
///
/// It also counts while the machine is suspended, unlike timers, so a process that wakes up after
/// an hour sees that an hour has passed.
#[derive(Clone)]
pub struct Uptime(Arc<dyn Fn() -> Duration + Send + Sync>);

impl Uptime {
    /// Creates a clock that reads `now`.
    pub fn new(now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Returns the system's clock: `CLOCK_BOOTTIME`. On macOS `CLOCK_MONOTONIC` counts while the
    /// machine is suspended.
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

    /// Returns the time since some fixed moment.
    pub fn now(&self) -> Duration {
        (self.0)()
    }
}

impl fmt::Debug for Uptime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Uptime")
    }
}
