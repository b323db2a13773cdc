//! The operator under test as a child process.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::log::Log;

/// How long a terminated operator may take (spec §5).
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// A process, in a process group of its own. Killed when dropped, with all that its command started.
pub(crate) struct Process {
    child: Child,
    /// Program and arguments.
    launch: Vec<String>,
    log: Log,
}

impl Process {
    pub(crate) fn start(launch: Vec<String>, log: &Log) -> Result<Self, String> {
        Ok(Self { child: spawn(&launch, log)?, launch, log: log.clone() })
    }

    pub(crate) async fn ended(&mut self) -> String {
        let how = describe(self.child.wait().await);
        format!("the operator ended ({how}): {}", self.log.tail().join(" | "))
    }

    pub(crate) async fn terminate(mut self) -> Result<(), String> {
        let id = self.id().ok_or("the operator had ended before it was told to")?;
        kill_process(id, Signal::TERM).map_err(|error| format!("can't send SIGTERM to the operator: {error}"))?;
        match timeout(GRACE, self.child.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(other) => Err(format!("SIGTERM: {}, not exit code 0", describe(other))),
            Err(_) => Err(format!("still running {} s after SIGTERM", GRACE.as_secs())),
        }
    }

    pub(crate) async fn die(&mut self) -> Result<(), String> {
        let id = self.id().ok_or("the operator had ended before it was killed")?;
        kill_process_group(id, Signal::KILL).map_err(|error| format!("can't kill the operator: {error}"))?;
        self.child.wait().await.map(|_| ()).map_err(|error| format!("can't wait for the operator: {error}"))
    }

    pub(crate) fn start_again(&mut self) -> Result<(), String> {
        self.child = spawn(&self.launch, &self.log)?;
        Ok(())
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<(), String> {
        let id = self.id().ok_or("the operator has ended")?;
        kill_process_group(id, signal).map_err(|error| format!("can't send {signal:?} to the operator: {error}"))
    }

    /// The id of the process, as long as it was not waited for.
    fn id(&self) -> Option<Pid> {
        self.child.id().and_then(|id| Pid::from_raw(id.cast_signed()))
    }
}

/// Starts a process in a group of its own; what it writes to stderr goes to `log`.
fn spawn(launch: &[String], log: &Log) -> Result<Child, String> {
    let (program, arguments) = launch.split_first().ok_or("the operator command is empty")?;
    let mut child = Command::new(program)
        .args(arguments)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("can't start {program}: {error}"))?;
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
            // The process itself is killed and waited for by tokio; a group that is gone already needs nothing.
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
