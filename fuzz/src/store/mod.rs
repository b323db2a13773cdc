//! What a store answers to the operator's client.
//!
//! The first line of an input is what the client is asked to do, the rest what the store says:
//! answers, with a line `----` between two. Each begins with a line of its status and, if it names
//! one, the region of the bucket; the rest of it is the body. The last one is said to all that is
//! asked later.

mod client;
mod judge;
mod script;

use std::cell::RefCell;

use tokio::runtime::{Builder, Runtime};

use script::Script;

thread_local! {
    static RUNTIME: RefCell<Option<Runtime>> = const { RefCell::new(None) };
}

/// Has the client do what the input says, and judges what it makes of the answers.
pub(crate) fn play(input: &[u8]) {
    let Some(script) = Script::read(input) else { return };
    RUNTIME.with_borrow_mut(|runtime| {
        let runtime =
            runtime.get_or_insert_with(|| Builder::new_current_thread().enable_time().build().expect("a runtime"));
        runtime.block_on(async {
            judge::judge(&script).await;
            judge::cut(&script).await;
            // What the clients have spawned ends when it is polled, and all else is ready at once.
            tokio::task::yield_now().await;
        });
    });
}
