//! What a process does once before its first seeded run.

use std::fmt;
use std::pin::Pin;
use std::sync::Once;

/// The future of a warm-up.
type Draw = Pin<Box<dyn Future<Output = ()>>>;

/// Uses each static that draws random numbers at its first use, once in a process: without it the
/// first run of a process differs from the second.
///
/// Those known are ahash's seeds, which a kube-runtime `Store` draws, the AWS SDK's retry buckets,
/// and whatever the code under test keeps in a static. It runs on a seeded thread of its own, with
/// a paused clock.
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
    /// A warm-up that consists of this.
    pub const fn new(draw: fn() -> Draw) -> Self {
        Self { once: Once::new(), draw }
    }

    /// Has it run by `run`, unless it has been.
    pub(crate) fn once(&self, run: impl FnOnce(fn() -> Draw)) {
        self.once.call_once(|| run(self.draw));
    }
}

impl fmt::Debug for WarmUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WarmUp").field("done", &self.once.is_completed()).finish_non_exhaustive()
    }
}
