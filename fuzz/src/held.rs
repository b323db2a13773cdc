//! Memory held by a thread, measured by its allocations, because a length doesn't show a capacity.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator with a counter.
struct Counting;

thread_local! {
    /// Bytes allocated minus bytes freed by this thread. Deallocations on another thread are not
    /// counted.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

fn count(change: impl FnOnce(usize) -> usize) {
    // During a thread's end the counter no longer exists.
    let _ = HELD.try_with(|held| held.set(change(held.get())));
}

#[expect(unsafe_code, reason = "an allocator is unsafe by its trait; this one hands everything on")]
// SAFETY: each call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(|held| held.wrapping_add(layout.size()));
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(|held| held.wrapping_sub(layout.size()));
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Calls `make`, and returns its result with the number of bytes that it holds.
pub(crate) fn held<T>(make: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    let made = make();
    (made, HELD.get().wrapping_sub(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_counts_and_what_was_freed_does_not() {
        let (short, bytes) = held(|| {
            let mut text = String::with_capacity(1000);
            text.push('a');
            drop(vec![0_u8; 5000]);
            text
        });
        assert_eq!((short.len(), bytes), (1, 1000));
    }
}
