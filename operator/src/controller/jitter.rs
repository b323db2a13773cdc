//! Jitter.

use std::time::Duration;

/// Returns `interval` ± 10 %, so that objects reconciled together don't stay together.
pub(super) fn jittered(interval: Duration) -> Duration {
    interval.mul_f64(0.9 + 0.2 * fastrand::f64())
}
