//! Signals that stop the process.

use std::io;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use tokio::signal::unix::{SignalKind, signal};

/// Resolves on SIGTERM or SIGINT, including a signal that arrives before the future is first
/// polled.
///
/// # Errors
/// Returns an error if the signal handlers can't be installed.
pub fn terminated() -> io::Result<Shared<BoxFuture<'static, ()>>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let either = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    Ok(either.boxed().shared())
}
