//! Determinism: the same seed gives the same run, in this process and in another.
//!
//! What would differ between two runs, and what is done about it:
//!
//! - *Random bytes of the operating system.* std's `RandomState` (kube-runtime polls a `HashMap` of futures, in its
//!   order), ahash and every generator seeded by default ask libc's `getrandom`. This file defines that symbol: on
//!   a thread that runs with a seed the bytes come from the seed, on any other from the kernel as ever.
//! - *fastrand*, which kube and the AWS SDK draw their retry jitter from, has a generator per thread: seeded.
//! - *Time* is tokio's paused clock, which jumps to the next timer when nothing is left to do; a wall clock that
//!   follows it is [`VirtualClock`].
//! - *Threads*: a current-thread runtime on a fresh thread, so that nothing is left over from another run.
//! - *Statics* that draw random numbers at their first use shift all that is drawn after them, in the first run of a
//!   process only: they are brought to life beforehand, see [`run_seeded`].
//!
//! # Limits
//!
//! ahash mixes in addresses, which the kernel randomizes, and a counter of the process: the order of a kube-runtime
//! `Store` is never the same, so its users sort. `SystemTime` and std's `Instant` are the real ones.
//! tokio's own generator, which `watch` channels draw from to choose whom of several receivers to wake first, and
//! `select!` unless it is `biased`, follows from how many runtimes the process has had: neither may decide an order that
//! shows.
//! State that a process keeps lets one run reach into the next: the AWS SDK's default retry budget is such state, so
//! clients under test have retries off or a `RetryPartition::custom` of their own.
//! Work given to other threads (`spawn_blocking`, `std::thread`) is neither seeded nor ordered.
//! The symbol is overridden on Linux; elsewhere runs work and are not reproducible.

// The one unsafe file: a C symbol has to be defined and a C function called. Why that is sound stands at each place.
#![allow(unsafe_code)]

mod warm_up;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
use std::sync::{Arc, Once};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Stack of a scenario's thread: what tokio gives its workers, so that what fits here fits there.
const STACK_BYTES: usize = 2 << 20;

thread_local! {
    /// State of the generator that stands in for the kernel's; `None` on threads without a seed.
    /// Const-initialized and without a destructor, so that it can be reached at any time of a thread's life.
    static SEEDED: Cell<Option<u64>> = const { Cell::new(None) };
    /// What the panics of this thread said.
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// The panics of this seeded thread so far, those too of tasks that nobody joins: where, and what they said.
pub fn panics() -> Vec<String> {
    PANICS.with_borrow(Clone::clone)
}

/// Has the panics of seeded threads noted: a runtime keeps that of a task from all but who joins it.
fn note_panics() {
    let as_before = take_hook();
    set_hook(Box::new(move |panic| {
        if SEEDED.get().is_some() {
            // Of a thread that ends there is nobody left to ask.
            let _ended = PANICS.try_with(|panics| panics.borrow_mut().push(panic.to_string()));
        }
        as_before(panic);
    }));
}

/// The next eight bytes of this thread's seeded stream (splitmix64), or `None` if the thread has no seed.
fn next_seeded() -> Option<[u8; 8]> {
    SEEDED.with(|cell| {
        let state = cell.get()?.wrapping_add(0x9E37_79B9_7F4A_7C15);
        cell.set(Some(state));
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Some((mixed ^ (mixed >> 31)).to_le_bytes())
    })
}

/// Fills the buffer from this thread's seeded stream; `false` if the thread has no seed, the buffer then untouched.
fn fill_seeded(buffer: &mut [std::mem::MaybeUninit<u8>]) -> bool {
    if SEEDED.get().is_none() {
        return false;
    }
    for chunk in buffer.chunks_mut(8) {
        let bytes = next_seeded().unwrap_or_default();
        for (slot, byte) in chunk.iter_mut().zip(bytes) {
            slot.write(byte);
        }
    }
    true
}

/// libc's `getrandom`, for the whole program: from the seed on a seeded thread, from the kernel on any other.
///
/// # Safety
///
/// As of the C function: `buffer` is valid for writes of `length` bytes (it need not be initialized).
///
/// Defining the symbol is sound: signature, result and `errno` are those of getrandom(2), the kernel's own call does
/// the work on all threads that didn't ask for a seed, and on those that did the bytes are only less random, which no
/// memory safety depends on. It allocates nothing, takes no lock and cannot panic, so it may be called from anywhere.
#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(buffer: *mut libc::c_void, length: libc::size_t, flags: libc::c_uint) -> libc::ssize_t {
    // Callers probe with a length of 0 and any pointer; also `isize::MAX` bounds what a slice may be.
    if let Ok(signed) = libc::ssize_t::try_from(length)
        && signed > 0
        && !buffer.is_null()
    {
        // SAFETY: non-null, valid for writes of `length` bytes by this function's contract, at most `isize::MAX` long,
        // exclusively ours during the call; `MaybeUninit` because the caller need not have initialized it.
        let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.cast(), length) };
        if fill_seeded(bytes) {
            return signed;
        }
    }
    // SAFETY: the very call that libc would make, with the arguments that it would pass on.
    let written = unsafe { libc::syscall(libc::SYS_getrandom, buffer, length, flags) };
    written as libc::ssize_t
}

/// Runs a future to its end on a thread, a runtime and a paused clock of its own, with all randomness taken from the seed.
///
/// Before the first run of a process, the statics of the libraries in use that draw random numbers once are made to do
/// so (a few milliseconds). Those known are ahash's seeds, which a kube-runtime `Store` draws, and the AWS SDK's retry
/// buckets. With another such library a first run differs from a second; it then belongs into that warm-up too.
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
    run_seeded_and(seed, scenario, |ended| ended.unwrap_or_else(|panic| resume_unwind(panic)))
}

/// As [`run_seeded`]; what came of the future, or its panic, is then given to `and`, on that thread, which outlives the runtime
/// for it: what a run has left behind is best looked through and freed by the thread that made it.
pub(crate) fn run_seeded_and<T, R, F, Fut>(
    seed: u64,
    scenario: F,
    and: impl FnOnce(std::thread::Result<T>) -> R + Send,
) -> R
where
    R: Send,
    F: FnOnce() -> Fut + Send,
    Fut: Future<Output = T>,
{
    static WARM: Once = Once::new();
    WARM.call_once(|| {
        note_panics();
        on_own_thread(0, || block_on(warm_up::draw_once));
    });
    on_own_thread(seed, || and(catch_unwind(AssertUnwindSafe(|| block_on(scenario)))))
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
        SEEDED.set(Some(seed));
        fastrand::seed(seed);
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

/// A wall clock that follows tokio's clock: a fixed start, plus what has passed by that clock since.
#[derive(Clone, Debug)]
pub struct VirtualClock {
    start: Timestamp,
    origin: Instant,
}

impl VirtualClock {
    /// A clock that shows `start` now.
    pub fn starting_at(start: Timestamp) -> Self {
        Self { start, origin: Instant::now() }
    }

    /// A clock that shows [`Self::epoch`] now.
    pub fn new() -> Self {
        Self::starting_at(Self::epoch())
    }

    /// 2030-01-01T00:00:00Z: later than any certificate or date that comes with the code.
    pub fn epoch() -> Timestamp {
        Timestamp::from_second(1_893_456_000).expect("well within a timestamp's range")
    }

    /// What it shows. Stops at the last timestamp there is (the year 9999).
    pub fn now(&self) -> Timestamp {
        SignedDuration::try_from(self.origin.elapsed())
            .ok()
            .and_then(|passed| self.start.checked_add(passed).ok())
            .unwrap_or(Timestamp::MAX)
    }

    /// The clock as a function, to be handed to whoever asks for the time.
    pub fn clock(&self) -> Arc<dyn Fn() -> Timestamp + Send + Sync> {
        let clock = self.clone();
        Arc::new(move || clock.now())
    }
}

impl Default for VirtualClock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;
    use std::time::Duration;

    use super::*;

    fn os_bytes() -> [u8; 13] {
        let mut bytes = [0_u8; 13];
        // SAFETY: a buffer of its own length, exclusively ours.
        let written = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        assert_eq!(written, 13);
        bytes
    }

    fn draws() -> ([u8; 13], u64, u64) {
        let hash = std::collections::hash_map::RandomState::new().hash_one(1);
        (os_bytes(), hash, fastrand::u64(..))
    }

    #[test]
    fn a_seed_decides_every_draw_of_its_thread() {
        let first = run_seeded(7, || async { draws() });
        let again = run_seeded(7, || async { draws() });
        let other = run_seeded(8, || async { draws() });
        assert_eq!(first, again);
        assert_ne!(first.0, other.0);
        assert_ne!(first.1, other.1);
        assert_ne!(first.2, other.2);
    }

    #[test]
    fn a_stream_does_not_repeat_itself() {
        let (first, second) = run_seeded(7, || async { (os_bytes(), os_bytes()) });
        assert_ne!(first, second);
    }

    #[test]
    fn a_thread_without_a_seed_has_the_kernels_randomness() {
        let fresh = || std::thread::spawn(draws).join().expect("draws don't panic");
        let (first, second) = (fresh(), fresh());
        assert_ne!(first.0, second.0);
        assert_ne!(first.1, second.1);
    }

    /// The getrandom crate (0.3 and 0.4 alike) finds its function by this look-up, std by linking.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_dynamic_linker_finds_our_symbol() {
        // SAFETY: a C string and the default handle; the result is compared, not called.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"getrandom".as_ptr()) };
        let ours: unsafe extern "C" fn(*mut libc::c_void, usize, libc::c_uint) -> isize = getrandom;
        assert_eq!(found as usize, ours as usize);
    }

    #[test]
    fn probing_and_errors_are_the_kernels() {
        run_seeded(7, || async {
            // SAFETY: nothing is written through the pointer, as the length is 0.
            let probe = unsafe { libc::getrandom(std::ptr::dangling_mut(), 0, 0) };
            assert_eq!(probe, 0);
            // SAFETY: the kernel refuses a null buffer, it isn't written to.
            let refused = unsafe { libc::getrandom(std::ptr::null_mut(), 8, 0) };
            assert_eq!(refused, -1);
            assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EFAULT));
        });
    }

    #[test]
    fn time_is_virtual_and_the_wall_clock_follows_it() {
        let real = std::time::Instant::now();
        let shown = run_seeded(7, || async {
            let clock = VirtualClock::new().clock();
            tokio::time::sleep(Duration::from_secs(3600)).await;
            clock().to_string()
        });
        assert_eq!(shown, "2030-01-01T01:00:00Z");
        assert!(real.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn a_scenario_may_borrow_and_its_panic_comes_through() {
        let name = "bucket".to_owned();
        assert_eq!(run_seeded(7, || async { name.len() }), 6);
        let panic = std::panic::catch_unwind(|| run_seeded(7, || async { panic!("seen") }));
        let message = panic.expect_err("the scenario panics");
        assert_eq!(message.downcast_ref::<&str>(), Some(&"seen"));
    }

    #[test]
    fn a_panic_of_a_task_that_nobody_joins_is_noted() {
        let seen = run_seeded(7, || async {
            tokio::spawn(async { panic!("unseen") });
            tokio::time::sleep(Duration::from_secs(1)).await;
            panics()
        });
        assert!(seen.len() == 1 && seen[0].ends_with("unseen"), "{seen:?}");
        assert!(run_seeded(7, || async { panics() }).is_empty(), "of another run");
    }
}
