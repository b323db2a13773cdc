//! Determinism for async Rust: the same seed gives the same run, in this process and in another.
//!
//! # Guarantees
//!
//! A future that keeps to the limits below behaves in the same way each time it is run with the
//! same seed: it draws the same random numbers, is woken in the same order, and sees the same time.
//! Simulated time costs nothing.
//!
//! # Determinism
//!
//! What would differ between two runs, and what is done about it:
//!
//! - *Random bytes of the operating system.* std's `RandomState` (kube-runtime polls a `HashMap` of
//!   futures, in its order), ahash and every generator seeded by default ask libc's `getrandom`.
//!   This crate defines that symbol: on a thread that runs with a seed the bytes come from the
//!   seed, on any other from the kernel as ever.
//! - *fastrand*, which kube and the AWS SDK draw their retry jitter from, has a generator per
//!   thread: seeded.
//! - *Time* is tokio's paused clock, which jumps to the next timer when nothing is left to do; a
//!   wall clock that follows it is [`VirtualClock`].
//! - *Threads*: a current-thread runtime on a fresh thread, so that nothing is left over from
//!   another run.
//! - *Statics* that draw random numbers at their first use shift all that is drawn after them, in
//!   the first run of a process only: a [`WarmUp`] brings them to life beforehand.
//!
//! # Limits
//!
//! - ahash mixes in addresses, which the kernel randomizes, and a counter of the process: the order
//!   of a kube-runtime `Store` is never the same, so its users sort.
//! - `SystemTime` and std's `Instant` are the real ones.
//! - tokio's own generator follows from how many runtimes the process has had. `watch` channels
//!   draw from it to choose whom of several receivers to wake first, and so does `select!` unless
//!   it is `biased`: neither may decide an order that shows.
//! - State that a process keeps lets one run reach into the next: the AWS SDK's default retry
//!   budget is such state, so clients under test have retries off or a `RetryPartition::custom` of
//!   their own.
//! - Work given to other threads (`spawn_blocking`, `std::thread`) is neither seeded nor ordered.
//! - The symbol is overridden on Linux; elsewhere runs work and are not reproducible.

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

/// Stack of a scenario's thread: what tokio gives its workers, so that what fits here fits there.
const STACK_BYTES: usize = 2 << 20;

/// Runs a future to its end on a thread, a runtime and a paused clock of its own, with all
/// randomness taken from the seed.
///
/// [`Seeded`] does the same after a [`WarmUp`].
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
    Seeded::new(seed).run(scenario)
}

/// A run to come: its seed, and what the process does before its first one.
#[derive(Clone, Copy, Debug)]
pub struct Seeded {
    seed: u64,
    warm_up: Option<&'static WarmUp>,
}

impl Seeded {
    /// A run with this seed, without a warm-up.
    pub fn new(seed: u64) -> Self {
        Self { seed, warm_up: None }
    }

    /// Has the process warmed up by this before, once, however many runs name it.
    #[must_use]
    pub fn after(self, warm_up: &'static WarmUp) -> Self {
        Self { warm_up: Some(warm_up), ..self }
    }

    /// Runs a future to its end, see [`run_seeded`].
    ///
    /// # Panics
    ///
    /// With the future's own panic, if it panics; if the thread or the runtime can't be made.
    pub fn run<T, F, Fut>(self, scenario: F) -> T
    where
        T: Send,
        F: FnOnce() -> Fut + Send,
        Fut: Future<Output = T>,
    {
        self.run_and(scenario, |ended| ended.unwrap_or_else(|panic| resume_unwind(panic)))
    }

    /// Runs a future to its end. What came of it, or its panic, is then given to `and`, on the same
    /// thread, which outlives the runtime for it: what a run has left behind is best looked through
    /// and freed by the thread that made it.
    ///
    /// # Panics
    ///
    /// With a panic of `and`; if the thread or the runtime can't be made.
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
