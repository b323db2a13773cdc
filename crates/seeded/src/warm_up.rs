//! Work that a process does once before its first seeded run.

use std::fmt;
use std::pin::Pin;
use std::sync::Once;

/// The future of a warm-up.
type Draw = Pin<Box<dyn Future<Output = ()>>>;

/// Uses each static that draws random numbers at its first use, once per process. Without it the
/// first run of a process differs from the second.
///
/// Known statics are ahash's seeds (drawn by a kube-runtime `Store`), the AWS SDK's retry buckets,
/// and any statics of the code under test. The warm-up runs on a separate seeded thread with a
/// paused clock.
///
/// ```
/// use seeded::{Seeded, WarmUp};
///
/// static WARM_UP: WarmUp = WarmUp::new(|| {
///     Box::pin(async {
///         // Use what draws.
///     })
/// });
///
/// assert_eq!(Seeded::new(7).after(&WARM_UP).run(|| async { 1 + 1 }), 2);
/// ```
pub struct WarmUp {
    once: Once,
    draw: fn() -> Draw,
}

impl WarmUp {
    /// Creates a warm-up that runs this future.
    pub const fn new(draw: fn() -> Draw) -> Self {
        Self { once: Once::new(), draw }
    }

    /// Runs the warm-up with `run`, unless it has run already.
    pub(crate) fn once(&self, run: impl FnOnce(fn() -> Draw)) {
        self.once.call_once(|| run(self.draw));
    }
}

impl fmt::Debug for WarmUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WarmUp").field("done", &self.once.is_completed()).finish_non_exhaustive()
    }
}
