//! Messages of panics on a seeded thread, including panics of tasks that nobody joins.

use std::cell::RefCell;
use std::panic::{set_hook, take_hook};
use std::sync::Once;

use crate::random::is_seeded;

thread_local! {
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Returns the panics of this seeded thread so far, each with its location and its message.
/// Includes panics of tasks that nobody joins.
pub fn panics() -> Vec<String> {
    PANICS.with_borrow(Clone::clone)
}

/// Installs a panic hook that records the panics of seeded threads. It is needed because a runtime
/// reports the panic of a task only to the code that joins it.
pub(crate) fn note() {
    static NOTED: Once = Once::new();
    NOTED.call_once(|| {
        let as_before = take_hook();
        set_hook(Box::new(move |panic| {
            if is_seeded() {
                // While the thread ends its locals may be gone; then nobody can read the panics
                // either.
                let _ended = PANICS.try_with(|panics| panics.borrow_mut().push(panic.to_string()));
            }
            as_before(panic);
        }));
    });
}
