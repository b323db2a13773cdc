//! What tenants and stores send to the gateway.
//!
//! Clients that sign, and readers of what is sent on, are written here from Amazon's documents and
//! the RFCs, without the gateway's code: what two write alike is not one mistake made twice.

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

/// Runs something that waits for nothing but itself.
fn run<T>(task: impl Future<Output = T>) -> T {
    RUNTIME.with_borrow_mut(|runtime| {
        let runtime =
            runtime.get_or_insert_with(|| Builder::new_current_thread().enable_time().build().expect("a runtime"));
        runtime.block_on(task)
    })
}
