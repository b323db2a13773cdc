//! The stages of a shutdown.

use tokio::sync::watch;

/// The stage of the server's shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not shutting down.
    Serving,
    /// Connections are accepted, and each is closed after its next response.
    Draining,
    /// No connections are accepted any more.
    Ending,
}

/// Resolves once no connections are accepted any more, or the server is gone.
pub(super) async fn ending(told: &mut watch::Receiver<Stage>) {
    drop(told.wait_for(|stage| *stage == Stage::Ending).await);
}
