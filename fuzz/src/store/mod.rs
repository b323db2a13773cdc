//! Responses of a store to the operator's client.
//!
//! The first line of an input is the operation of the client, and the rest the store's responses,
//! separated by a line `----`. Each begins with a line that has its status and optionally the
//! bucket's region; the rest of it is the body. The last one is repeated for all further requests.

mod client;
mod judge;
mod script;

use std::cell::RefCell;

use tokio::runtime::{Builder, Runtime};

use script::Script;

thread_local! {
    static RUNTIME: RefCell<Option<Runtime>> = const { RefCell::new(None) };
}

/// Runs the operation, and checks the client's conclusions from the responses.
pub(crate) fn play(input: &[u8]) {
    let Some(script) = Script::read(input) else { return };
    RUNTIME.with_borrow_mut(|runtime| {
        let runtime =
            runtime.get_or_insert_with(|| Builder::new_current_thread().enable_time().build().expect("a runtime"));
        runtime.block_on(async {
            judge::judge(&script).await;
            judge::cut(&script).await;
            // Tasks that the clients have spawned end when they are polled; everything else is
            // ready immediately.
            tokio::task::yield_now().await;
        });
    });
}
