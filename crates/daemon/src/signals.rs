//! When the process is told to stop.

use std::io;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use tokio::signal::unix::{SignalKind, signal};

/// Resolves on SIGTERM or SIGINT, also on one that came before anybody waited.
///
/// # Errors
/// When signals can't be listened for.
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
