//! The operator under test as a Deployment, started and ended by its number of replicas. Signals
//! are sent to its process in the node, like those of a kernel.

use std::time::Duration;

use anyhow::{Context as _, Error, Result, anyhow, bail, ensure};
use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use jiff::SignedDuration;
use k8s_openapi::api::apps::v1::Deployment as Object;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod};
use kube::api::{Api, ListParams, LogParams, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, ResourceExt};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::install::{NAMESPACE, pods_of};
use crate::fault_proxy::handle::Remote;
use crate::log::Log;
use crate::process::GRACE;
use crate::tools::in_node;

const NAME: &str = "stowage-operator";
/// Longer than a pod takes to start or end on a busy machine.
const MOST: Duration = Duration::from_secs(60);

/// The operator's Deployment in a cluster. Clones refer to the same Deployment.
#[derive(Clone)]
pub struct Deployment {
    client: Client,
    node: String,
    proxy: Remote,
}

/// The operator's running pod.
pub struct Deployed {
    deployment: Deployment,
    pod: String,
    /// Id of its process in the node.
    process: u32,
    log: Log,
    /// The task that copies the pod's log.
    follower: JoinHandle<()>,
}

impl Deployment {
    pub(super) fn new(client: Client, node: String, proxy: Remote) -> Self {
        Self { client, node, proxy }
    }

    /// Starts the operator with these arguments after `run`, with its output written to `log`.
    pub async fn start(&self, arguments: &[String], log: &Log) -> Result<Deployed> {
        let arguments: Vec<&str> = ["run"].into_iter().chain(arguments.iter().map(String::as_str)).collect();
        let containers = json!([{"name": "operator", "args": arguments}]);
        self.patch(json!({"spec": {"replicas": 1, "template": {"spec": {"containers": containers}}}})).await?;
        self.started(log).await
    }

    /// Ends the running operator, if there is one.
    pub async fn stop(&self) -> Result<()> {
        self.patch(json!({"spec": {"replicas": 0}})).await?;
        let none = async {
            // The watch shows each step of the pod's termination, then its deletion.
            while let Some(pod) = self.any_pod().await? {
                let gone = await_condition(self.pods(), &pod.name_any(), |pod: Option<&Pod>| pod.is_none()).await;
                gone.context("waiting for the operator's pod to go")?;
            }
            Ok(())
        };
        timeout(MOST, none).await.map_err(|_| anyhow!("the operator's pod is there after {} s", MOST.as_secs()))?
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    async fn any_pod(&self) -> Result<Option<Pod>> {
        let listed = self.pods().list(&ListParams::default().labels(&pods_of(NAME))).await;
        Ok(listed.context("can't list the operator's pods")?.items.into_iter().next())
    }

    async fn patch(&self, patch: serde_json::Value) -> Result<()> {
        let deployments: Api<Object> = Api::namespaced(self.client.clone(), NAMESPACE);
        let patched = deployments.patch(NAME, &PatchParams::default(), &Patch::Strategic(patch)).await;
        patched.context("can't change the operator's Deployment").map(|_| ())
    }

    /// Waits for the pod's process. Returns an error if it has ended already.
    async fn started(&self, log: &Log) -> Result<Deployed> {
        let config = watcher::Config::default().labels(&pods_of(NAME));
        let mut pods = Box::pin(watcher(self.pods(), config).default_backoff().touched_objects());
        let running = async {
            while let Some(pod) = pods.try_next().await.context("waiting for the operator")? {
                if let Some(ended) = terminated(&pod) {
                    bail!("the operator's container ended ({})", ended.exit_code);
                }
                if let Some(container) = running(&pod) {
                    return Ok((pod.name_any(), container));
                }
            }
            Err(anyhow!("waiting for the operator came to an end"))
        };
        let started = timeout(MOST, running).await;
        let (pod, container) =
            started.map_err(|_| anyhow!("the operator's pod did not run within {} s", MOST.as_secs()))??;
        let inspect = ["crictl", "inspect", "--output", "go-template", "--template", "{{.info.pid}}", &container];
        let told = in_node(&self.node, &inspect).await?;
        let process = told.trim().parse().map_err(|_| anyhow!("{container} has no process: {told}"))?;
        let follower = tokio::spawn(follow(self.pods(), pod.clone(), log.clone()));
        Ok(Deployed { deployment: self.clone(), pod, process, log: log.clone(), follower })
    }
}

impl Deployed {
    /// Resolves when the process ends by itself, with the last lines of its log.
    pub async fn ended(&self) -> Error {
        let ended = |pod: Option<&Pod>| pod.is_none_or(|pod| terminated(pod).is_some());
        let how = match await_condition(self.deployment.pods(), &self.pod, ended).await {
            Ok(Some(pod)) => {
                terminated(&pod).map_or_else(String::new, |ended| format!("exit code {}", ended.exit_code))
            }
            Ok(None) => "its pod is gone".to_owned(),
            Err(error) => error.to_string(),
        };
        anyhow!("the operator ended ({how}): {}", self.log.tail().join(" | "))
    }

    /// Scales the Deployment to zero, which sends SIGTERM, and waits until the process has ended.
    ///
    /// # Errors
    /// Fails if that takes more than 10 s, or if the exit code is not 0.
    pub async fn terminate(self) -> Result<()> {
        self.deployment.patch(json!({"spec": {"replicas": 0}})).await?;
        let ended = |pod: Option<&Pod>| pod.is_none_or(|pod| terminated(pod).is_some());
        let waited = timeout(MOST, await_condition(self.deployment.pods(), &self.pod, ended)).await;
        let waited = waited.map_err(|_| anyhow!("still running {} s after SIGTERM", MOST.as_secs()))?;
        let pod = waited.context("waiting for the operator's end")?;
        self.deployment.stop().await?;
        // Only the pod's last event has the exit code, and a watch may miss it.
        let pod = pod.context("the operator's pod went without a word of how its process ended")?;
        ended_well(&pod)
    }

    /// Kills the process with SIGKILL, as a crashing node would. The proxy blocks all its calls
    /// before that, because a signal takes longer to reach the node than some of the operator's
    /// work. The kubelet doesn't get the chance to restart it.
    pub async fn die(&mut self) -> Result<()> {
        self.deployment.proxy.end_life().await?;
        self.signal("KILL").await?;
        self.deployment.stop().await
    }

    /// Starts it again after [`die`](Self::die).
    pub async fn start_again(&mut self) -> Result<()> {
        self.deployment.patch(json!({"spec": {"replicas": 1}})).await?;
        *self = self.deployment.started(&self.log).await?;
        Ok(())
    }

    /// Suspends its process with SIGSTOP.
    pub async fn pause(&self) -> Result<()> {
        self.signal("STOP").await
    }

    /// Resumes its process with SIGCONT.
    pub async fn resume(&self) -> Result<()> {
        self.signal("CONT").await
    }

    async fn signal(&self, signal: &str) -> Result<()> {
        // A node has only the shell's builtin `kill`.
        let command = format!("kill -{signal} {}", self.process);
        in_node(&self.deployment.node, &["sh", "-c", &command]).await.map(|_| ())
    }
}

impl Drop for Deployed {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

fn container(pod: &Pod) -> Option<&ContainerStatus> {
    pod.status.as_ref()?.container_statuses.as_ref()?.iter().find(|status| status.name == "operator")
}

/// Returns the id of the operator's container, if it runs and the pod is not being deleted.
fn running(pod: &Pod) -> Option<String> {
    let status = container(pod)?;
    status.state.as_ref()?.running.as_ref()?;
    let id = status.container_id.as_ref()?.split_once("://")?.1;
    pod.metadata.deletion_timestamp.is_none().then(|| id.to_owned())
}

/// Returns the end of the operator's process, if it has ended. The kubelet may have restarted it
/// since.
fn terminated(pod: &Pod) -> Option<&ContainerStateTerminated> {
    let status = container(pod)?;
    let now = status.state.as_ref().and_then(|state| state.terminated.as_ref());
    now.or_else(|| status.last_state.as_ref().and_then(|state| state.terminated.as_ref()))
}

/// Fails if a pod's process ended with an exit code other than 0, or too long after the pod's
/// deletion was requested.
fn ended_well(pod: &Pod) -> Result<()> {
    let ended = terminated(pod).context("the operator's process has not ended")?;
    ensure!(ended.exit_code == 0, "SIGTERM: exit code {}, not 0", ended.exit_code);
    let grace = SignedDuration::from_secs(pod.metadata.deletion_grace_period_seconds.unwrap_or_default());
    let (Some(gone_by), Some(ended)) = (&pod.metadata.deletion_timestamp, &ended.finished_at) else {
        return Ok(());
    };
    let took = ended.0.duration_since(gone_by.0 - grace);
    // Both times are in whole seconds.
    let most = SignedDuration::try_from(GRACE).unwrap_or_default() + SignedDuration::from_secs(1);
    ensure!(took <= most, "it took {} s after SIGTERM", took.as_secs());
    Ok(())
}

/// Copies the log of a pod until it ends.
async fn follow(pods: Api<Pod>, pod: String, log: Log) {
    let parameters = LogParams { follow: true, ..LogParams::default() };
    let Ok(stream) = pods.log_stream(&pod, &parameters).await else { return };
    let mut lines = stream.lines();
    while let Ok(Some(line)) = lines.try_next().await {
        log.push(line);
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::objects::from_json;

    fn pod(state: serde_json::Value, last: serde_json::Value, going: bool) -> Pod {
        let mut pod = json!({
            "metadata": {"name": "p"},
            "status": {"containerStatuses": [{
                "name": "operator", "image": "", "imageID": "", "ready": true, "restartCount": 0,
                "containerID": "containerd://abc", "state": state, "lastState": last,
            }]},
        });
        if going {
            pod["metadata"]["deletionTimestamp"] = json!("2026-11-22T02:00:15Z");
            pod["metadata"]["deletionGracePeriodSeconds"] = json!(15);
        }
        from_json(pod)
    }

    #[rstest]
    #[case(json!({"running": {}}), json!({}), false, Some("abc"))]
    #[case(json!({"running": {}}), json!({}), true, None)]
    #[case(json!({"waiting": {}}), json!({}), false, None)]
    fn only_a_container_that_goes_on_runs(
        #[case] state: serde_json::Value,
        #[case] last: serde_json::Value,
        #[case] going: bool,
        #[case] expected: Option<&str>,
    ) {
        assert_eq!(running(&pod(state, last, going)).as_deref(), expected);
    }

    #[test]
    fn one_that_was_started_again_has_ended() {
        let restarted = pod(json!({"running": {}}), json!({"terminated": {"exitCode": 137}}), false);
        assert_eq!(terminated(&restarted).map(|ended| ended.exit_code), Some(137));
    }

    #[rstest]
    #[case(0, "2026-11-22T02:00:10Z", Ok(()))]
    #[case(0, "2026-11-22T02:00:12Z", Err("it took 12 s after SIGTERM"))]
    #[case(1, "2026-11-22T02:00:01Z", Err("SIGTERM: exit code 1, not 0"))]
    fn an_end_is_judged_by_code_and_time(#[case] code: i32, #[case] at: &str, #[case] expected: Result<(), &str>) {
        let ended = pod(json!({"terminated": {"exitCode": code, "finishedAt": at}}), json!({}), true);
        assert_eq!(ended_well(&ended).map_err(|why| why.to_string()), expected.map_err(str::to_owned));
    }
}
