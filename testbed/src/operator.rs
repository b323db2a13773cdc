//! The operator under test: a child process, or a Deployment in a kind cluster.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Error, Result, anyhow};
use rustix::process::Signal;
use tokio::process::Command;
use tokio::time::timeout;

use crate::kind::{Deployed, Deployment};
use crate::log::Log;
use crate::process::Process;

/// Time limit for a subcommand that only prints something.
const ANSWER: Duration = Duration::from_secs(60);

/// A running operator.
pub enum Operator {
    /// A child process.
    Process(Process),
    /// A pod in a kind cluster.
    Deployed(Deployed),
}

/// Starts operators.
pub enum Launcher {
    /// Starts them as child processes.
    Process {
        /// Program, and arguments that come before `run`.
        command: Vec<String>,
        /// Path of the operator's kubeconfig.
        kubeconfig: PathBuf,
        /// Context of the kubeconfig; by default its current one.
        context: Option<String>,
    },
    /// Starts the Deployment that is installed in a cluster.
    Deployment(Deployment),
}

impl Launcher {
    /// Starts an operator with this operator namespace and further arguments, with its output
    /// written to `log`. `under` is put before the command of a process, for example to give it
    /// another clock.
    pub async fn start(&self, under: &[String], namespace: &str, further: &[&str], log: &Log) -> Result<Operator> {
        let further = further.iter().map(|argument| (*argument).to_owned());
        match self {
            Self::Process { command, kubeconfig, context } => {
                let kubeconfig = kubeconfig.display().to_string();
                let mut arguments = vec!["run", "--kubeconfig", &kubeconfig, "--namespace", namespace];
                if let Some(context) = context {
                    arguments.extend(["--context", context]);
                }
                // Only for processes: an installed operator's address is fixed by its probes and
                // scrapers.
                arguments.extend(["--admin-address", "127.0.0.1:0"]);
                let arguments = arguments.into_iter().map(str::to_owned).chain(further);
                let launch = under.iter().chain(command).cloned().chain(arguments).collect();
                Process::start("operator", launch, log).map(Operator::Process)
            }
            Self::Deployment(_) if !under.is_empty() => Err(anyhow!("nothing can be put before an image's command")),
            Self::Deployment(deployment) => {
                let arguments: Vec<String> = further.collect();
                deployment.start(&arguments, log).await.map(Operator::Deployed)
            }
        }
    }

    /// Runs a subcommand of the operator's program, with the arguments that select cluster and
    /// namespace. Returns its exit code and output.
    pub async fn ask(&self, namespace: &str, words: &[&str]) -> Result<(Option<i32>, String)> {
        let Self::Process { command, kubeconfig, context } = self else {
            return Err(anyhow!("an operator that is installed is asked nothing"));
        };
        let (program, before) = command.split_first().context("the operator's command is empty")?;
        let mut command = Command::new(program);
        command.args(before).args(words).arg("--kubeconfig").arg(kubeconfig).args(["--namespace", namespace]);
        if let Some(context) = context {
            command.args(["--context", context]);
        }
        let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
        let output = timeout(ANSWER, output).await.context("the command gave no answer")?;
        let output = output.with_context(|| format!("can't start {program}"))?;
        let said = [output.stdout, output.stderr].concat();
        Ok((output.status.code(), String::from_utf8_lossy(&said).into_owned()))
    }

    /// Ends an operator that the scenario did not end, and that doesn't end when it is dropped.
    pub async fn stop(&self) -> Result<()> {
        match self {
            Self::Process { .. } => Ok(()),
            Self::Deployment(deployment) => deployment.stop().await,
        }
    }
}

impl Operator {
    /// Resolves when the process ends by itself, with the last lines of its log.
    pub async fn ended(&mut self) -> Error {
        match self {
            Self::Process(process) => process.ended().await,
            Self::Deployed(deployed) => deployed.ended().await,
        }
    }

    /// Sends SIGTERM and waits for the end.
    ///
    /// # Errors
    /// Fails if that takes more than 10 s, or if the exit code is not 0.
    pub async fn terminate(self) -> Result<()> {
        match self {
            Self::Process(process) => process.terminate().await,
            Self::Deployed(deployed) => deployed.terminate().await,
        }
    }

    /// Kills it with SIGKILL, as a crashing node would.
    pub async fn kill(mut self) -> Result<()> {
        self.die().await
    }

    /// Kills it with SIGKILL; [`start_again`](Self::start_again) can start it again.
    pub async fn die(&mut self) -> Result<()> {
        match self {
            Self::Process(process) => process.die().await,
            Self::Deployed(deployed) => deployed.die().await,
        }
    }

    /// Starts it again after [`die`](Self::die).
    pub async fn start_again(&mut self) -> Result<()> {
        match self {
            Self::Process(process) => process.start_again(),
            Self::Deployed(deployed) => deployed.start_again().await,
        }
    }

    /// Suspends its process, as a hanging node would, until [`resume`](Self::resume).
    pub async fn pause(&self) -> Result<()> {
        match self {
            Self::Process(process) => process.signal(Signal::STOP),
            Self::Deployed(deployed) => deployed.pause().await,
        }
    }

    /// Resumes its process after [`pause`](Self::pause).
    pub async fn resume(&self) -> Result<()> {
        match self {
            Self::Process(process) => process.signal(Signal::CONT),
            Self::Deployed(deployed) => deployed.resume().await,
        }
    }
}
