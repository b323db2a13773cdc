//! What the panics of a seeded thread said, those too of tasks that nobody joins.

use std::cell::RefCell;
use std::panic::{set_hook, take_hook};
use std::sync::Once;

use crate::random::is_seeded;

thread_local! {
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// The panics of this seeded thread so far, those too of tasks that nobody joins: where, and what
/// they said.
pub fn panics() -> Vec<String> {
    PANICS.with_borrow(Clone::clone)
}

/// Has the panics of seeded threads noted from now on: a runtime keeps that of a task from all but
/// who joins it.
pub(crate) fn note() {
    static NOTED: Once = Once::new();
    NOTED.call_once(|| {
        let as_before = take_hook();
        set_hook(Box::new(move |panic| {
            if is_seeded() {
                // Of a thread that ends there is nobody left to ask.
                let _ended = PANICS.try_with(|panics| panics.borrow_mut().push(panic.to_string()));
            }
            as_before(panic);
        }));
    });
}
