//! Inputs of the gateway from tenants and stores.
//!
//! The signing clients and the parsers of forwarded requests are implemented here from Amazon's
//! documents and the RFCs, without the gateway's code, so that both can't share a mistake.

pub(super) mod chunks;
pub(super) mod copies;
pub(super) mod deletions;
pub(super) mod documents;
pub(super) mod forms;
pub(super) mod heads;
mod pieces;
mod reading;
mod signing;

use std::cell::RefCell;

use tokio::runtime::{Builder, Runtime};

thread_local! {
    static RUNTIME: RefCell<Option<Runtime>> = const { RefCell::new(None) };
}

/// Runs a future that waits for no external event.
fn run<T>(task: impl Future<Output = T>) -> T {
    RUNTIME.with_borrow_mut(|runtime| {
        let runtime =
            runtime.get_or_insert_with(|| Builder::new_current_thread().enable_time().build().expect("a runtime"));
        runtime.block_on(task)
    })
}
