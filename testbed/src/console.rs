//! How a program of the harness reports to whoever started it, and how that ends it.

use std::io::Write;

use anyhow::{Context as _, Result, anyhow};
use clap::ValueEnum;
use tokio::signal::unix::{SignalKind, signal};

/// How the report is written to stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// One line per scenario, as it ends.
    Text,
    /// One document when all have ended; the lines go to stderr.
    Json,
}

/// Writes a line to stdout.
///
/// # Errors
/// When that is closed.
pub fn print(line: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{line}").context("can't write to stdout")
}

/// Writes a line of progress to stderr. Nobody has to listen.
pub fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Drops the work when a signal asks to end.
///
/// # Errors
/// Those of the work, or the signal's name.
pub async fn unless_interrupted<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let listen = |kind| signal(kind).context("can't wait for signals");
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut hangup = listen(SignalKind::hangup())?;
    tokio::select! {
        done = work => done,
        _ = interrupt.recv() => Err(anyhow!("interrupted")),
        _ = terminate.recv() => Err(anyhow!("terminated")),
        _ = hangup.recv() => Err(anyhow!("the terminal is gone")),
    }
}
