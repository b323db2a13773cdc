//! The operator under test, or the gateway, as a child process.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Error, Result, anyhow};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::log::Log;

/// Time that operator and gateway may take to end after SIGTERM (spec §5).
pub const GRACE: Duration = Duration::from_secs(10);

/// A child process in its own process group. Dropping it kills the whole group.
pub struct Process {
    child: Child,
    /// Its role in messages, such as "operator".
    role: &'static str,
    /// Program and arguments.
    launch: Vec<String>,
    log: Log,
}

impl Process {
    /// Starts a program with these arguments. `role` names it in messages, and its last log lines
    /// are written to `log`.
    pub fn start(role: &'static str, launch: Vec<String>, log: &Log) -> Result<Self> {
        Ok(Self { child: spawn(role, &launch, log)?, role, launch, log: log.clone() })
    }

    /// Resolves when the process ends by itself, with the last lines of its log.
    pub async fn ended(&mut self) -> Error {
        let how = describe(self.child.wait().await);
        anyhow!("the {} ended ({how}): {}", self.role, self.log.tail().join(" | "))
    }

    /// Sends SIGTERM and waits for the end.
    ///
    /// # Errors
    /// Fails if that takes more than 10 s, or if the exit code is not 0.
    pub async fn terminate(mut self) -> Result<()> {
        let id = self.id().with_context(|| format!("the {} had ended before it was told to", self.role))?;
        kill_process(id, Signal::TERM).with_context(|| format!("can't send SIGTERM to the {}", self.role))?;
        match timeout(GRACE, self.child.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(other) => Err(anyhow!("SIGTERM: {}, not exit code 0", describe(other))),
            Err(_) => Err(anyhow!("still running {} s after SIGTERM", GRACE.as_secs())),
        }
    }

    /// Kills it with SIGKILL, as a crashing node would.
    pub async fn die(&mut self) -> Result<()> {
        let id = self.id().with_context(|| format!("the {} had ended before it was killed", self.role))?;
        kill_process_group(id, Signal::KILL).with_context(|| format!("can't kill the {}", self.role))?;
        self.child.wait().await.map(|_| ()).with_context(|| format!("can't wait for the {}", self.role))
    }

    /// Starts it again after it ended.
    pub fn start_again(&mut self) -> Result<()> {
        self.child = spawn(self.role, &self.launch, &self.log)?;
        Ok(())
    }

    /// Sends this signal to the whole process group.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let id = self.id().with_context(|| format!("the {} has ended", self.role))?;
        kill_process_group(id, signal).with_context(|| format!("can't send {signal:?} to the {}", self.role))
    }

    /// Sends SIGTERM and waits for the end, with any exit code. A process that takes more than 10 s
    /// is killed. It can be [started again](Self::start_again).
    pub async fn end(&mut self) -> Result<()> {
        let id = self.id().with_context(|| format!("the {} had ended before it was told to", self.role))?;
        kill_process(id, Signal::TERM).with_context(|| format!("can't send SIGTERM to the {}", self.role))?;
        match timeout(GRACE, self.child.wait()).await {
            Ok(ended) => ended.map(|_| ()).with_context(|| format!("can't wait for the {}", self.role)),
            Err(_) => self.die().await,
        }
    }

    /// Returns its process group id.
    pub fn group(&self) -> Result<i32> {
        self.id().map(|id| id.as_raw_nonzero().get()).with_context(|| format!("the {} has ended", self.role))
    }

    /// Returns the process id, until the process has been waited for.
    fn id(&self) -> Option<Pid> {
        self.child.id().and_then(|id| Pid::from_raw(id.cast_signed()))
    }
}

/// Starts a process in its own process group, with its stderr written to `log`.
fn spawn(role: &str, launch: &[String], log: &Log) -> Result<Child> {
    let (program, arguments) = launch.split_first().with_context(|| format!("the {role}'s command is empty"))?;
    let mut child = Command::new(program)
        .args(arguments)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("can't start {program}"))?;
    if let Some(stderr) = child.stderr.take() {
        let log = log.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                log.push(line);
            }
        });
    }
    Ok(child)
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(id) = self.id() {
            // Tokio kills and reaps the process itself. An error means that the group no longer
            // exists.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

fn describe(status: std::io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    }
}
