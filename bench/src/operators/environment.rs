//! Environment of an operator: the simulator as a process, or a real control plane.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use stowage_operator::api;
use stowage_testbed::control_plane::{ControlPlane, Programs};
use stowage_testbed::log::Log;
use stowage_testbed::process::Process;
use stowage_testbed::tools;
use stowage_testbed::users::User;
use tempfile::TempDir;

use super::cluster::{Cluster, Kind, Place, until};

/// Time limit for the start of a control plane.
const PATIENCE: Duration = Duration::from_secs(60);

/// Environment of an operator.
pub(super) enum Environment {
    Simulator(Box<SimulatorEnvironment>),
    ControlPlane(Box<ControlPlaneEnvironment>),
}

/// `stowage-sim up` with Stowage's operator running, and with its data in a directory.
pub(super) struct SimulatorEnvironment {
    process: Process,
    program: PathBuf,
    folder: TempDir,
    admin: String,
    cluster: Cluster,
    log: Log,
}

/// A control plane, without an operator that creates buckets.
pub(super) struct ControlPlaneEnvironment {
    plane: ControlPlane,
    cluster: Cluster,
}

impl Environment {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Simulator(_) => "simulator",
            Self::ControlPlane(_) => "control-plane",
        }
    }

    pub(super) fn cluster(&self) -> Cluster {
        match self {
            Self::Simulator(it) => it.cluster.clone(),
            Self::ControlPlane(it) => it.cluster.clone(),
        }
    }

    /// Returns the path of a kubeconfig of its administrator.
    pub(super) fn kubeconfig(&self) -> Result<PathBuf> {
        match self {
            Self::Simulator(it) => Ok(it.kubeconfig()),
            Self::ControlPlane(it) => it.plane.kubeconfig_of(User::Admin),
        }
    }

    /// Returns the last lines of its log.
    pub(super) fn log(&self) -> Vec<String> {
        match self {
            Self::Simulator(it) => it.log.tail(),
            Self::ControlPlane(_) => Vec::new(),
        }
    }

    /// Makes a BucketClaim ready. In the simulator, the operator does that. On a control plane this
    /// writes the claim's status.
    pub(super) async fn bind(&self, claim: Place<'_>) -> Result<()> {
        let Self::ControlPlane(it) = self else { return Ok(()) };
        let there = async || it.cluster.get(claim).await;
        until("the BucketClaim is made", there).await?;
        let condition = json!({
            "type": "Ready", "status": "True", "reason": "Bound", "message": "said so",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        it.cluster.apply_status(claim, json!({"status": {"conditions": [condition]}})).await
    }
}

impl SimulatorEnvironment {
    /// Starts it with a file's definitions.
    pub(super) async fn start(program: &Path, definition: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("stowage-operators-").tempdir();
        let folder = folder.context("can't make a temporary directory")?;
        let addresses = addresses()?;
        let mut launch = vec![program.display().to_string(), "up".to_owned()];
        let given = |flag: &str, value: String| [flag.to_owned(), value];
        launch.extend(given("-f", definition.display().to_string()));
        launch.extend(given("--data", folder.path().join("data").display().to_string()));
        launch.extend(given("--kubeconfig-out", folder.path().join("kubeconfig").display().to_string()));
        for (name, address) in ["kube", "s3", "store", "admin"].into_iter().zip(addresses) {
            launch.extend(given(&format!("--{name}-address"), address.to_string()));
        }
        let log = Log::default();
        let process = Process::start("simulator", launch, &log)?;
        let admin = format!("http://{}", addresses[3]);
        let kubeconfig = folder.path().join("kubeconfig");
        let client = until("the simulator is ready", async || client(&kubeconfig).await.map(Some)).await;
        let client = client.with_context(|| log.tail().join(" | "))?;
        Ok(Self { process, program: program.to_owned(), folder, admin, cluster: Cluster(client), log })
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// Terminates it, and starts it again with its data.
    pub(super) async fn restart(&mut self) -> Result<()> {
        self.process.end().await?;
        self.process.start_again()
    }

    /// Resets it to its initial state.
    pub(super) async fn reset(&self) -> Result<()> {
        let simulator = format!("STOWAGE_SIM={}", self.admin);
        tools::run("env", &[&simulator, &self.program.display().to_string(), "reset"]).await.map(drop)
    }
}

impl ControlPlaneEnvironment {
    /// Starts it with Stowage's definitions, and with those of a file.
    pub(super) async fn start(programs: &Programs, definition: &Path) -> Result<Self> {
        let plane = ControlPlane::start(programs, PATIENCE).await?;
        let cluster = Cluster(plane.client(User::Admin).await?);
        let failed = || format!("{} can't be read", definition.display());
        let text = std::fs::read_to_string(definition).with_context(failed)?;
        let mut definitions: Vec<Value> = vec![serde_saphyr::from_str(&text).with_context(failed)?];
        for own in api::crds() {
            definitions.push(serde_json::to_value(own).context("a definition is no JSON")?);
        }
        for definition in definitions {
            let Some(name) = definition["metadata"]["name"].as_str().map(str::to_owned) else {
                bail!("a definition has no name");
            };
            let place = Place(Kind::Definition, "", &name);
            cluster.apply(place, definition).await?;
            let established = async || {
                let conditions = cluster.get(place).await?.map(|it| it["status"]["conditions"].clone());
                let is = |it: &Value| it["type"] == "Established" && it["status"] == "True";
                Ok(conditions.filter(|them| them.as_array().is_some_and(|them| them.iter().any(is))))
            };
            until("the definition is established", established).await?;
        }
        Ok(Self { plane, cluster })
    }
}

/// Returns addresses with free ports. All are bound until all are known, so that they differ. The
/// simulator uses the same ones again after a restart.
fn addresses() -> Result<[SocketAddr; 4]> {
    let held = (0..4).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    let held = held.collect::<Result<Vec<_>, _>>().context("no free port")?;
    let mut addresses = [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)); 4];
    for (address, listener) in addresses.iter_mut().zip(&held) {
        *address = listener.local_addr().context("a port has no number")?;
    }
    Ok(addresses)
}

/// Creates a client from a kubeconfig, and checks that the server answers.
async fn client(kubeconfig: &Path) -> Result<Client> {
    let file = Kubeconfig::read_from(kubeconfig)?;
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    client.apiserver_version().await?;
    // A definition is served once everything that was given is applied.
    Cluster(client.clone()).list(Kind::Website, "", "").await?;
    Ok(client)
}
