//! The time of day, passed in.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;

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
