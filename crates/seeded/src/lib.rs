//! Determinism for async Rust: the same seed gives the same run, in this process and in another.
//!
//! # Guarantees
//!
//! A future that respects the limits below behaves in the same way each time it runs with the same
//! seed: it draws the same random numbers, is woken in the same order, and sees the same time.
//! Simulated time costs nothing.
//!
//! # Determinism
//!
//! Sources of difference between two runs, and the measure against each:
//!
//! - *Random bytes of the operating system.* std's `RandomState`, ahash and every generator with a
//!   default seed call libc's `getrandom`. (kube-runtime polls a `HashMap` of futures in its
//!   iteration order.) This crate defines that symbol: the bytes come from the seed on a thread
//!   that runs with one, and from the kernel on any other.
//! - *fastrand*, which kube and the AWS SDK use for the jitter of retries, has one generator per
//!   thread. It is seeded.
//! - *Time* is tokio's paused clock, which jumps to the next timer when nothing is left to do.
//!   [`VirtualClock`] is a wall clock that follows it.
//! - *Threads*: each run has a current-thread runtime on a fresh thread, so that no state is left
//!   over from another run.
//! - *Statics* that draw random numbers at their first use shift all later draws, but only in the
//!   first run of a process. A [`WarmUp`] initializes them beforehand.
//!
//! # Limits
//!
//! - ahash mixes in addresses, which the kernel randomizes, and a counter of the process. So the
//!   order of a kube-runtime `Store` differs between runs, and its users have to sort.
//! - `SystemTime` and std's `Instant` are the real ones.
//! - tokio seeds its own generator from the number of runtimes that the process has created.
//!   `watch` channels use it to choose the receiver to wake first, and so does `select!` unless it
//!   is `biased`. No visible order may depend on either.
//! - State that lives as long as the process carries over from one run to the next. The AWS SDK's
//!   default retry budget is such state, so clients under test need retries disabled or a separate
//!   `RetryPartition::custom`.
//! - Work on other threads (`spawn_blocking`, `std::thread`) is neither seeded nor ordered.
//! - The symbol is overridden on Linux only. Elsewhere runs work but are not reproducible.

#![warn(clippy::too_many_lines)]

mod clock;
mod panics;
mod random;
#[cfg(test)]
mod tests;
mod warm_up;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

pub use clock::{VirtualClock, WallClock};
pub use panics::panics;
pub use warm_up::WarmUp;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Stack size of a scenario's thread. It equals the default of tokio's workers, so that code
/// doesn't overflow there that doesn't overflow here.
const STACK_BYTES: usize = 2 << 20;

/// Runs a future to completion on a new thread with a new runtime and a paused clock, with all
/// randomness taken from the seed.
///
/// [`Seeded`] does this after a [`WarmUp`].
///
/// # Panics
///
/// Panics if the future panics, with its panic, or if the thread or the runtime can't be created.
pub fn run_seeded<T, F, Fut>(seed: u64, scenario: F) -> T
where
    T: Send,
    F: FnOnce() -> Fut + Send,
    Fut: Future<Output = T>,
{
    Seeded::new(seed).run(scenario)
}

/// The configuration of a run: its seed and an optional warm-up.
#[derive(Clone, Copy, Debug)]
pub struct Seeded {
    seed: u64,
    warm_up: Option<&'static WarmUp>,
}

impl Seeded {
    /// Creates a run with this seed and without a warm-up.
    pub fn new(seed: u64) -> Self {
        Self { seed, warm_up: None }
    }

    /// Runs this warm-up before the run. It runs once per process, however many runs name it.
    #[must_use]
    pub fn after(self, warm_up: &'static WarmUp) -> Self {
        Self { warm_up: Some(warm_up), ..self }
    }

    /// Runs a future to completion, see [`run_seeded`].
    ///
    /// # Panics
    ///
    /// Panics if the future panics, with its panic, or if the thread or the runtime can't be
    /// created.
    pub fn run<T, F, Fut>(self, scenario: F) -> T
    where
        T: Send,
        F: FnOnce() -> Fut + Send,
        Fut: Future<Output = T>,
    {
        self.run_and(scenario, |ended| ended.unwrap_or_else(|panic| resume_unwind(panic)))
    }

    /// Runs a future to completion and passes its result, or its panic, to `and`.
    ///
    /// `and` runs on the thread of the run, after its runtime has ended: state that a run leaves
    /// behind is best read and freed on the thread that made it.
    ///
    /// # Panics
    ///
    /// Panics if `and` panics, with its panic, or if the thread or the runtime can't be created.
    pub fn run_and<T, R, F, Fut>(self, scenario: F, and: impl FnOnce(std::thread::Result<T>) -> R + Send) -> R
    where
        R: Send,
        F: FnOnce() -> Fut + Send,
        Fut: Future<Output = T>,
    {
        panics::note();
        if let Some(warm_up) = self.warm_up {
            warm_up.once(|draw| on_own_thread(0, || block_on(draw)));
        }
        on_own_thread(self.seed, || and(catch_unwind(AssertUnwindSafe(|| block_on(scenario)))))
    }
}

fn block_on<Fut: Future>(scenario: impl FnOnce() -> Fut) -> Fut::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a current-thread runtime needs no more than a few file descriptors");
    runtime.block_on(async { scenario().await })
}

fn on_own_thread<R: Send>(seed: u64, work: impl FnOnce() -> R + Send) -> R {
    let body = || {
        random::seed(seed);
        work()
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name(format!("seed-{seed}"))
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, body)
            .expect("one more thread can be started");
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}
