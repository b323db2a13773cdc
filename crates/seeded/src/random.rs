//! Random bytes of the operating system, taken from the seed on a thread that has one.

// The one file with unsafe code: a C symbol has to be defined and a C function called. Each place
// states why it is sound.
#![allow(unsafe_code)]

use std::cell::Cell;

thread_local! {
    /// State of the generator that replaces the kernel's; `None` on threads without a seed.
    /// Const-initialized and without a destructor, so that it can be accessed at any time of a
    /// thread's life.
    static SEEDED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Seeds this thread: from now on its random bytes follow from the seed.
pub(crate) fn seed(seed: u64) {
    SEEDED.set(Some(seed));
    fastrand::seed(seed);
}

/// Returns true if this thread has a seed.
pub(crate) fn is_seeded() -> bool {
    SEEDED.get().is_some()
}

/// Returns the next eight bytes of this thread's seeded stream (splitmix64), or `None` if the
/// thread has no seed.
fn next_seeded() -> Option<[u8; 8]> {
    SEEDED.with(|cell| {
        let state = cell.get()?.wrapping_add(0x9E37_79B9_7F4A_7C15);
        cell.set(Some(state));
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Some((mixed ^ (mixed >> 31)).to_le_bytes())
    })
}

/// Fills the buffer from this thread's seeded stream. Returns `false` and leaves the buffer
/// untouched if the thread has no seed.
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

/// Replaces libc's `getrandom` for the whole program: bytes come from the seed on a seeded thread,
/// from the kernel on any other.
///
/// # Safety
///
/// As of the C function: `buffer` is valid for writes of `length` bytes (it need not be
/// initialized).
///
/// Defining the symbol is sound. Signature, result and `errno` are those of getrandom(2). On
/// threads without a seed the kernel's own call does the work; on threads with one the bytes are
/// only less random, which no memory safety depends on. The function allocates nothing, takes no
/// lock and cannot panic, so it may be called from anywhere.
#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn getrandom(
    buffer: *mut libc::c_void,
    length: libc::size_t,
    flags: libc::c_uint,
) -> libc::ssize_t {
    // Callers probe with a length of 0 and any pointer. Also, a slice may have at most `isize::MAX`
    // bytes.
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
