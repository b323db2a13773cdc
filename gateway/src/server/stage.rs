//! The way of a server out: what it still takes.

use tokio::sync::watch;

/// How far the server is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It is not.
    Serving,
    /// It takes connections, and each is given up after its next answer.
    Draining,
    /// It takes none any more.
    Ending,
}

/// Resolves once no connection is taken any more; a server that is gone is as good.
pub(super) async fn ending(told: &mut watch::Receiver<Stage>) {
    drop(told.wait_for(|stage| *stage == Stage::Ending).await);
}
