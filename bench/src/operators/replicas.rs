//! Two processes of an operator, one of which is the leader.

use std::path::Path;

use anyhow::{Context as _, Result};
use futures::FutureExt as _;
use stowage_testbed::log::Log;
use stowage_testbed::process::Process;

use super::cluster::until;
use crate::clients::catalogue::Client as Operator;

/// Last word of a log line, once a replica handles signals.
const STARTED: &str = "started";
/// Last word of a log line, once a replica is the leader.
const ELECTED: &str = "elected";

/// Two processes of an operator.
pub(super) struct Replicas([Replica; 2]);

struct Replica {
    process: Process,
    log: Log,
}

impl Replica {
    /// True if it has logged this word since it started.
    fn says(&self, word: &str) -> bool {
        self.log.lines().iter().any(|line| line.trim_end().rsplit([' ', ']', '"']).next() == Some(word))
    }

    fn start_again(&mut self) -> Result<()> {
        self.log.clear();
        self.process.start_again()
    }
}

impl Replicas {
    /// Starts both, with a namespace for their Lease.
    pub(super) fn start(operator: &Operator, home: &Path, kubeconfig: &Path, namespace: &str) -> Result<Self> {
        let one = |name: &str| {
            let variables = [
                format!("OPERATOR_HOME={}", home.display()),
                format!("KUBECONFIG={}", kubeconfig.display()),
                format!("OPERATOR_NAMESPACE={namespace}"),
                format!("POD_NAME={name}"),
                operator.program().display().to_string(),
            ];
            let launch = std::iter::once("env".to_owned()).chain(variables).collect();
            let log = Log::default();
            anyhow::Ok(Replica { process: Process::start("operator", launch, &log)?, log })
        };
        Ok(Self([one("first")?, one("second")?]))
    }

    /// Waits until both have started and exactly one is the leader, and returns its index. Restarts
    /// a replica that ends meanwhile.
    pub(super) async fn leader(&mut self) -> Result<usize> {
        let leader = async || {
            self.tend()?;
            let said = |word| (0..2).filter(|index| self.0[*index].says(word)).collect::<Vec<usize>>();
            let (started, leaders) = (said(STARTED), said(ELECTED));
            Ok(leaders.first().copied().filter(|_| (started.len(), leaders.len()) == (2, 1)))
        };
        until("one of two replicas leads", leader).await
    }

    /// Kills the leader, and waits until the other replica leads and `work` is done. The killed one
    /// is restarted only after that.
    pub(super) async fn hand_over(&mut self, work: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
        let leader = self.leader().await?;
        let other = 1 - leader;
        self.0[leader].process.die().await?;
        let leads = async || Ok(self.0[other].says(ELECTED).then_some(()));
        until("the other replica leads", leads).await?;
        work().await?;
        self.0[leader].start_again()
    }

    /// Restarts processes that have ended, as a kubelet would.
    pub(super) fn tend(&mut self) -> Result<()> {
        for replica in &mut self.0 {
            if replica.process.ended().now_or_never().is_some() {
                replica.start_again()?;
            }
        }
        Ok(())
    }

    /// Terminates the standby, and then the leader.
    pub(super) async fn end(mut self) -> Result<()> {
        let leader = self.leader().await?;
        let [first, second] = self.0;
        let (leading, waiting) = if leader == 0 { (first, second) } else { (second, first) };
        waiting.process.terminate().await.context("the replica that waits")?;
        leading.process.terminate().await.context("the replica that leads")
    }

    /// Returns the last lines of their logs.
    pub(super) fn last_words(&self) -> Vec<String> {
        self.0.iter().flat_map(|replica| replica.log.tail()).collect()
    }
}
