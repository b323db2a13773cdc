//! Random bytes of the operating system, from the seed on a thread that has one.

// The one unsafe file: a C symbol has to be defined and a C function called. Why that is sound
// stands at each place.
#![allow(unsafe_code)]

use std::cell::Cell;

thread_local! {
    /// State of the generator that stands in for the kernel's; `None` on threads without a seed.
    /// Const-initialized and without a destructor, so that it can be reached at any time of a
    /// thread's life.
    static SEEDED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// From here on this thread's random bytes follow from the seed.
pub(crate) fn seed(seed: u64) {
    SEEDED.set(Some(seed));
    fastrand::seed(seed);
}

/// Whether this thread has a seed.
pub(crate) fn is_seeded() -> bool {
    SEEDED.get().is_some()
}

/// The next eight bytes of this thread's seeded stream (splitmix64), or `None` if the thread has no
/// seed.
fn next_seeded() -> Option<[u8; 8]> {
    SEEDED.with(|cell| {
        let state = cell.get()?.wrapping_add(0x9E37_79B9_7F4A_7C15);
        cell.set(Some(state));
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Some((mixed ^ (mixed >> 31)).to_le_bytes())
    })
}

/// Fills the buffer from this thread's seeded stream; `false` if the thread has no seed, the buffer
/// then untouched.
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

/// libc's `getrandom`, for the whole program: from the seed on a seeded thread, from the kernel on
/// any other.
///
/// # Safety
///
/// As of the C function: `buffer` is valid for writes of `length` bytes (it need not be
/// initialized).
///
/// Defining the symbol is sound: signature, result and `errno` are those of getrandom(2), the
/// kernel's own call does the work on all threads that didn't ask for a seed, and on those that did
/// the bytes are only less random, which no memory safety depends on. It allocates nothing, takes
/// no lock and cannot panic, so it may be called from anywhere.
#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn getrandom(
    buffer: *mut libc::c_void,
    length: libc::size_t,
    flags: libc::c_uint,
) -> libc::ssize_t {
    // Callers probe with a length of 0 and any pointer; also `isize::MAX` bounds what a slice may
    // be.
    if let Ok(signed) = libc::ssize_t::try_from(length)
        && signed > 0
        && !buffer.is_null()
    {
        // SAFETY: non-null, valid for writes of `length` bytes by this function's contract, at most
        // `isize::MAX` long, exclusively ours during the call; `MaybeUninit` because the caller
        // need not have initialized it.
        let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.cast(), length) };
        if fill_seeded(bytes) {
            return signed;
        }
    }
    // SAFETY: the very call that libc would make, with the arguments that it would pass on.
    let written = unsafe { libc::syscall(libc::SYS_getrandom, buffer, length, flags) };
    written as libc::ssize_t
}
