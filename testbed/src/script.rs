//! Scripts of clients, run in their own process group with a time limit.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::time::timeout;

use crate::tools::Group;

/// Maximum number of bytes kept of a script's output; the rest is read and dropped.
const KEPT: u64 = 1 << 20;

/// A script to run.
pub struct Script<'a> {
    /// Path of the program.
    pub program: &'a Path,
    /// Working directory.
    pub directory: &'a Path,
    /// Its complete environment; `None` inherits that of this process.
    pub environment: Option<&'a [(String, String)]>,
}

/// Result of a script.
pub struct Done {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its output on stdout.
    pub stdout: String,
    /// Its output on stderr.
    pub stderr: String,
}

impl Done {
    /// Returns the last line of stderr, or the exit status if there is none.
    pub fn last_words(&self) -> String {
        let last = self.stderr.lines().rev().find(|line| !line.trim().is_empty());
        last.map_or_else(|| self.status.to_string(), |line| line.trim().to_owned())
    }
}

impl Script<'_> {
    /// Runs it to its end. It is killed with everything it started when this future is dropped, or
    /// when the time is over.
    ///
    /// # Errors
    /// Fails if it can't be started, its output can't be read, or it takes longer than `patience`.
    pub async fn run(&self, arguments: &[impl AsRef<OsStr>], patience: Duration) -> Result<Done> {
        let failed = || self.program.display().to_string();
        let mut command = Command::new(self.program);
        command.args(arguments).current_dir(self.directory).process_group(0);
        if let Some(environment) = self.environment {
            command.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut group = Group(command.spawn().with_context(failed)?);
        let (Some(output), Some(error)) = (group.0.stdout.take(), group.0.stderr.take()) else {
            return Err(anyhow!("a script has no output"));
        };
        let work = async {
            let (stdout, stderr) = tokio::try_join!(text(output), text(error)).with_context(failed)?;
            let status = group.0.wait().await.with_context(failed)?;
            anyhow::Ok(Done { status, stdout, stderr })
        };
        let seconds = patience.as_secs();
        timeout(patience, work).await.with_context(|| format!("it did not end within {seconds} s"))?
    }
}

/// Reads to the end and returns the first [`KEPT`] bytes as text.
async fn text(mut from: impl AsyncRead + Unpin) -> std::io::Result<String> {
    let mut kept = Vec::new();
    (&mut from).take(KEPT).read_to_end(&mut kept).await?;
    tokio::io::copy(&mut from, &mut tokio::io::sink()).await?;
    Ok(String::from_utf8_lossy(&kept).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn shell(script: &str, environment: Option<&[(String, String)]>, patience: Duration) -> Result<Done> {
        let script = ["-c".to_owned(), script.to_owned()];
        Script { program: Path::new("/bin/sh"), directory: Path::new("/"), environment }.run(&script, patience).await
    }

    #[tokio::test]
    async fn a_script_tells_what_it_wrote_and_how_it_ended() {
        let environment = [("NAME".to_owned(), "value".to_owned())];
        let told = "echo $NAME $HOME; pwd; echo one >&2; echo two >&2; exit 3";
        let done = shell(told, Some(&environment), Duration::from_secs(60)).await.unwrap();
        assert_eq!((done.stdout.as_str(), done.last_words().as_str()), ("value\n/\n", "two"));
        assert_eq!(done.status.code(), Some(3));
        let done = shell("exit 3", None, Duration::from_secs(60)).await.unwrap();
        assert_eq!(done.last_words(), "exit status: 3");
    }

    #[tokio::test]
    async fn one_that_takes_too_long_is_killed_with_all_that_it_started() {
        let done = shell("sleep 600 & sleep 600", None, Duration::from_millis(100)).await;
        assert_eq!(done.err().map(|why| why.to_string()).as_deref(), Some("it did not end within 0 s"));
    }
}
