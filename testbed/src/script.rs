//! A client's scripts: run in a process group of their own, for so long, and no longer.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::time::timeout;

use crate::tools::Group;

/// The most that is kept of what a script writes, in bytes; the rest is read and forgotten.
const KEPT: u64 = 1 << 20;

/// What is run.
pub struct Script<'a> {
    /// The program, by its path.
    pub program: &'a Path,
    /// Where it runs.
    pub directory: &'a Path,
    /// All that its environment holds; `None`: what this process has.
    pub environment: Option<&'a [(String, String)]>,
}

/// What came of it.
pub struct Done {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to stdout.
    pub stdout: String,
    /// What it wrote to stderr.
    pub stderr: String,
}

impl Done {
    /// What it said last: where nothing else does, the way that it ended.
    pub fn last_words(&self) -> String {
        let last = self.stderr.lines().rev().find(|line| !line.trim().is_empty());
        last.map_or_else(|| self.status.to_string(), |line| line.trim().to_owned())
    }
}

impl Script<'_> {
    /// Runs it to its end; when this is dropped, or the time is over, it is killed with all that it
    /// started.
    ///
    /// # Errors
    /// When it can't be started or read, or takes longer.
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

/// The first of what is read, after all was.
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
