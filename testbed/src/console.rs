//! Output of the harness' programs, and their end on a signal.

use std::io::Write;

use anyhow::{Context as _, Result, anyhow};
use clap::ValueEnum;
use tokio::signal::unix::{SignalKind, signal};

/// Format of the report on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// One line per scenario, as it ends.
    Text,
    /// One document at the end of the run; progress lines are written to stderr.
    Json,
}

/// Writes a line to stdout.
///
/// # Errors
/// Fails if stdout is closed.
pub fn print(line: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{line}").context("can't write to stdout")
}

/// Writes a progress line to stderr. Errors are ignored: nobody has to read it.
pub fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Runs `work` until it completes or the process receives SIGINT, SIGTERM or SIGHUP, which drop it.
///
/// # Errors
/// Returns the error of `work`, or an error that names the signal.
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
