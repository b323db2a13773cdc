//! Determinism of the simulator: [`seeded`] runs, after what this program's libraries draw once in
//! a process.

mod warm_up;

use seeded::{Seeded, WarmUp};

static WARM_UP: WarmUp = WarmUp::new(|| Box::pin(warm_up::draw_once()));

/// A run with this seed, in a process that is warmed up.
pub fn seeded_run(seed: u64) -> Seeded {
    Seeded::new(seed).after(&WARM_UP)
}

/// Runs a future to its end on a thread, a runtime and a paused clock of its own, with all
/// randomness taken from the seed.
///
/// # Panics
///
/// With the future's own panic, if it panics; if the thread or the runtime can't be made.
pub fn run_seeded<T, F, Fut>(seed: u64, scenario: F) -> T
where
    T: Send,
    F: FnOnce() -> Fut + Send,
    Fut: Future<Output = T>,
{
    seeded_run(seed).run(scenario)
}
