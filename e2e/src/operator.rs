//! The operator under test: a child process, or a Deployment in a kind cluster.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::kind::{Deployed, Deployment};

/// How long a terminated operator may take (spec §5).
pub(crate) const GRACE: Duration = Duration::from_secs(10);
/// Lines of the log that a failure's message repeats.
const TAIL: usize = 5;
/// Lines of the log that are kept; the oldest go first.
const KEPT_LINES: usize = 50_000;

/// A running operator.
pub(crate) enum Operator {
    Process(Process),
    Deployed(Deployed),
}

/// How operators are started.
pub(crate) enum Launcher {
    /// As processes of this machine.
    Process {
        /// Program, and arguments that come before `run`.
        command: Vec<String>,
        /// How the operator finds the cluster.
        kubeconfig: PathBuf,
        context: Option<String>,
    },
    /// As it is installed in a cluster.
    Deployment(Deployment),
}

/// A process, in a process group of its own. Killed when dropped, with all that its command started.
pub(crate) struct Process {
    child: Child,
    /// Program and arguments.
    launch: Vec<String>,
    log: Log,
}

/// What a scenario's operators wrote to stderr.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<VecDeque<String>>>);

impl Log {
    pub(crate) fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// All lines that were kept, oldest first.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// The last lines, oldest first.
    pub(crate) fn tail(&self) -> Vec<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().skip(lines.len().saturating_sub(TAIL)).cloned().collect()
    }

    /// Forgets all lines.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Launcher {
    /// Starts an operator with this namespace for its own, and further arguments; its last log lines go to `log`. `under`
    /// is what comes before the command of a process, such as what gives it another clock.
    pub(crate) async fn start(
        &self,
        under: &[String],
        namespace: &str,
        further: &[&str],
        log: &Log,
    ) -> Result<Operator, String> {
        let further = further.iter().map(|argument| (*argument).to_owned());
        match self {
            Self::Process { command, kubeconfig, context } => {
                let kubeconfig = kubeconfig.display().to_string();
                let mut arguments = vec!["run", "--kubeconfig", &kubeconfig, "--namespace", namespace];
                if let Some(context) = context {
                    arguments.extend(["--context", context]);
                }
                // The installed one's is what its pod's probes and scrapers know.
                arguments.extend(["--admin-address", "127.0.0.1:0"]);
                let arguments = arguments.into_iter().map(str::to_owned).chain(further);
                Process::start(under.iter().chain(command).cloned().chain(arguments).collect(), log)
                    .map(Operator::Process)
            }
            Self::Deployment(_) if !under.is_empty() => Err("nothing can be put before an image's command".to_owned()),
            Self::Deployment(deployment) => {
                let arguments: Vec<String> = further.collect();
                deployment.start(&arguments, log).await.map(Operator::Deployed)
            }
        }
    }

    /// Ends an operator that was not ended by the scenario that started it, and that does not end by being dropped.
    pub(crate) async fn stop(&self) -> Result<(), String> {
        match self {
            Self::Process { .. } => Ok(()),
            Self::Deployment(deployment) => deployment.stop().await,
        }
    }
}

impl Operator {
    /// Resolves when the process ends by itself, with what it said last.
    pub(crate) async fn ended(&mut self) -> String {
        match self {
            Self::Process(process) => process.ended().await,
            Self::Deployed(deployed) => deployed.ended().await,
        }
    }

    /// Sends SIGTERM and waits for the end.
    ///
    /// # Errors
    /// When it takes more than 10 s or ends with another code than 0.
    pub(crate) async fn terminate(self) -> Result<(), String> {
        match self {
            Self::Process(process) => process.terminate().await,
            Self::Deployed(deployed) => deployed.terminate().await,
        }
    }

    /// Ends it with SIGKILL, as a crashing node would.
    pub(crate) async fn kill(mut self) -> Result<(), String> {
        self.die().await
    }

    /// The same to one that is to [start again](Self::start_again).
    pub(crate) async fn die(&mut self) -> Result<(), String> {
        match self {
            Self::Process(process) => process.die().await,
            Self::Deployed(deployed) => deployed.die().await,
        }
    }

    /// Starts it again, after its death.
    pub(crate) async fn start_again(&mut self) -> Result<(), String> {
        match self {
            Self::Process(process) => process.start_again(),
            Self::Deployed(deployed) => deployed.start_again().await,
        }
    }

    /// Stops it where it is, as a node that hangs would; it goes on with [`resume`](Self::resume).
    pub(crate) async fn pause(&self) -> Result<(), String> {
        match self {
            Self::Process(process) => process.signal(Signal::STOP),
            Self::Deployed(deployed) => deployed.pause().await,
        }
    }

    /// Lets it go on.
    pub(crate) async fn resume(&self) -> Result<(), String> {
        match self {
            Self::Process(process) => process.signal(Signal::CONT),
            Self::Deployed(deployed) => deployed.resume().await,
        }
    }
}

impl Process {
    fn start(launch: Vec<String>, log: &Log) -> Result<Self, String> {
        Ok(Self { child: spawn(&launch, log)?, launch, log: log.clone() })
    }

    async fn ended(&mut self) -> String {
        let how = describe(self.child.wait().await);
        format!("the operator ended ({how}): {}", self.log.tail().join(" | "))
    }

    async fn terminate(mut self) -> Result<(), String> {
        let id = self.id().ok_or("the operator had ended before it was told to")?;
        kill_process(id, Signal::TERM).map_err(|error| format!("can't send SIGTERM to the operator: {error}"))?;
        match timeout(GRACE, self.child.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(other) => Err(format!("SIGTERM: {}, not exit code 0", describe(other))),
            Err(_) => Err(format!("still running {} s after SIGTERM", GRACE.as_secs())),
        }
    }

    async fn die(&mut self) -> Result<(), String> {
        let id = self.id().ok_or("the operator had ended before it was killed")?;
        kill_process_group(id, Signal::KILL).map_err(|error| format!("can't kill the operator: {error}"))?;
        self.child.wait().await.map(|_| ()).map_err(|error| format!("can't wait for the operator: {error}"))
    }

    fn start_again(&mut self) -> Result<(), String> {
        self.child = spawn(&self.launch, &self.log)?;
        Ok(())
    }

    fn signal(&self, signal: Signal) -> Result<(), String> {
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
