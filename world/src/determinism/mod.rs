//! Determinism of the simulator: [`seeded`] runs in a process that is warmed up, because some
//! libraries draw random numbers once per process.

mod warm_up;

use seeded::{Seeded, WarmUp};

static WARM_UP: WarmUp = WarmUp::new(|| Box::pin(warm_up::draw_once()));

/// Returns a run with this seed in a warmed-up process.
pub fn seeded_run(seed: u64) -> Seeded {
    Seeded::new(seed).after(&WARM_UP)
}

/// Runs a future to its end on its own thread, with its own runtime and paused clock, and with all
/// randomness taken from the seed.
///
/// # Panics
///
/// Panics if the future panics, or if the thread or the runtime cannot be created.
pub fn run_seeded<T, F, Fut>(seed: u64, scenario: F) -> T
where
    T: Send,
    F: FnOnce() -> Fut + Send,
    Fut: Future<Output = T>,
{
    seeded_run(seed).run(scenario)
}
