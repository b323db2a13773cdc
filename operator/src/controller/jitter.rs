//! Times that spread.

use std::time::Duration;

/// `interval`, give or take a tenth: so that what was started together does not stay together.
pub(super) fn jittered(interval: Duration) -> Duration {
    interval.mul_f64(0.9 + 0.2 * fastrand::f64())
}
