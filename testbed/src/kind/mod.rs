//! A kind cluster with the operator behind a fault proxy, a simulated store and a gateway, all as
//! pods, installed from `kind-config/`. Dropping it deletes the cluster.

mod install;
mod operator;
mod settings;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use stowage_world::serve::S3Request;
use tempfile::TempDir;

use crate::fault_proxy::handle::Remote;
use crate::gateway::knows_its_keys;
use crate::store::Key;
use crate::tools;
use crate::users::{TENANTS, User};
pub use install::{GATEWAYS_ACCOUNT, NAMESPACE, SERVICE_ACCOUNT};
use install::{Keys, Manifests};
pub use operator::{Deployed, Deployment};
pub use settings::Settings;

/// Node ports of store and gateway in `kind-config/stage`.
const STORE_PORT: u16 = 30900;
const GATEWAY_PORT: u16 = 30800;
/// Path of the audit log in the node, as set in `kind-config/cluster.yaml`.
pub const AUDIT_LOG: &str = "/var/log/kubernetes/audit.log";
/// Time limit for kind to create a cluster once the node image is present.
const MOST_FOR_A_NODE: &str = "180s";

/// A running cluster.
pub struct Cluster {
    name: Name,
    /// The directory that contains the kubeconfig.
    directory: TempDir,
    client: Client,
    /// The keys of its store.
    pub keys: Keys,
    store: String,
    gateway: String,
    /// Time from the start until everything was ready.
    pub ready_after: Duration,
}

/// The name of a cluster. Dropping it deletes the cluster, unless it is to be kept.
struct Name {
    cluster: String,
    keep: bool,
}

impl Drop for Name {
    fn drop(&mut self) {
        if !self.keep {
            // A failure is not handled: kind reports it on stderr, and there is nothing else to do.
            let delete = ["delete", "cluster", "--quiet", "--name", &self.cluster];
            let mut delete =
                std::process::Command::new("kind").args(delete).stdout(std::process::Stdio::null()).spawn();
            let _ = delete.as_mut().map(std::process::Child::wait);
        }
    }
}

impl Cluster {
    /// Creates a cluster of this name, with everything installed but no operator running.
    pub async fn start(settings: &Settings, name: &str, patience: Duration) -> Result<Self> {
        let start = Instant::now();
        let name = Name { cluster: name.to_owned(), keep: settings.keep };
        let directory = tempfile::Builder::new().prefix("stowage-e2e-").tempdir();
        let directory = directory.context("can't make a temporary directory")?;
        create(&name.cluster, settings, &directory.path().join(KUBECONFIG)).await?;
        let node = node(&name.cluster);
        let (store, gateway) = (reached(&node, STORE_PORT).await?, reached(&node, GATEWAY_PORT).await?);
        let client = client(&config(directory.path()).await?)?;
        let images = [&*settings.operator_image, &settings.gateway_image, &settings.sim_image];
        let load = [&["load", "docker-image", "--name", &name.cluster], &images[..]].concat();
        tools::run("kind", &load).await?;
        let manifests = Manifests::render(&settings.manifests).await?;
        let keys = manifests.keys()?;
        let kubeconfig = directory.path().join(KUBECONFIG).display().to_string();
        manifests.install(settings, &kubeconfig, &client, patience).await?;
        let mut cluster = Self { name, directory, client, keys, store, gateway, ready_after: Duration::ZERO };
        cluster.ready_after = start.elapsed();
        Ok(cluster)
    }

    /// Returns the name of its node, which is also the name of the node's container.
    pub fn node(&self) -> String {
        node(&self.name.cluster)
    }

    /// Creates a client of the API server, as the administrator or a tenant.
    pub async fn client(&self, user: User) -> Result<Client> {
        let mut config = config(self.directory.path()).await?;
        if user == User::Tenant {
            config.auth_info.impersonate = Some(user.name().to_owned());
            config.auth_info.impersonate_groups = Some(vec![TENANTS.to_owned()]);
        }
        client(&config)
    }

    /// Returns the operator's Deployment.
    pub fn operator(&self) -> Deployment {
        Deployment::new(self.client.clone(), self.node(), self.proxy())
    }

    /// Returns the proxy between the operator and its servers.
    pub fn proxy(&self) -> Remote {
        Remote::new(self.client.clone(), NAMESPACE, "stowage-proxy", "admin")
    }

    /// Returns the store's URL for the operator.
    pub fn operators_store() -> String {
        format!("http://stowage-proxy.{NAMESPACE}.svc:9001")
    }

    /// Returns the store's URL for the harness.
    pub fn store(&self) -> &str {
        &self.store
    }

    /// Returns the harness' key for the store.
    pub fn observer(&self) -> &Key {
        &self.keys.observer
    }

    /// Starts a gateway, and returns its URL for tenants.
    pub async fn start_gateway(&self, patience: Duration) -> Result<String> {
        let spec = json!({"spec": {"replicas": 1}});
        install::change(&self.client, "stowage-gateway", spec, patience).await?;
        // The node routes to a pod of a Service a little later than the API server shows the pod.
        knows_its_keys(&self.gateway, patience).await?;
        Ok(self.gateway.clone())
    }

    /// Returns the requests that the store has answered, from the one with this number on.
    pub async fn store_requests(&self, first: usize) -> Result<Vec<S3Request>> {
        let log = install::log(&self.client, "stowage-store").await?;
        // Lines that aren't requests are the store's own log messages.
        Ok(log.lines().filter_map(|line| serde_json::from_str(line).ok()).skip(first).collect())
    }

    /// Returns the logs of the proxy's and the gateway's pod, by file name. The store's log is read
    /// by [`store_requests`](Self::store_requests).
    pub async fn logs(&self) -> Vec<(String, String)> {
        let mut logs = Vec::new();
        for name in ["stowage-proxy", "stowage-gateway"] {
            // Deployments that were not needed have no pod and no log.
            if let Ok(log) = install::log(&self.client, name).await {
                logs.push((format!("{name}.log"), log));
            }
        }
        logs
    }

    /// Returns the commands to reach and to delete a cluster that is kept.
    pub fn how_to_reach(&self) -> Option<String> {
        let name = &self.name.cluster;
        self.name.keep.then(|| {
            format!(
                "cluster {name} is kept: `kind export kubeconfig --name {name}`, `kind delete cluster --name {name}`"
            )
        })
    }
}

const KUBECONFIG: &str = "kubeconfig";

async fn create(name: &str, settings: &Settings, kubeconfig: &Path) -> Result<()> {
    let (config, kubeconfig) = (settings.manifests.join("cluster.yaml"), kubeconfig.display().to_string());
    let config = config.display().to_string();
    let mut create = vec!["create", "cluster", "--name", name, "--config", &config, "--kubeconfig", &kubeconfig];
    create.extend(["--wait", MOST_FOR_A_NODE]);
    if let Some(image) = &settings.node_image {
        create.extend(["--image", image]);
    }
    tools::run("kind", &create).await.map(|_| ())
}

fn node(cluster: &str) -> String {
    format!("{cluster}-control-plane")
}

/// Returns the URL at which this machine reaches a port of the node.
async fn reached(node: &str, port: u16) -> Result<String> {
    let told = tools::run("docker", &["port", node, &format!("{port}/tcp")]).await?;
    let address = told.lines().next().unwrap_or_default();
    ensure!(!address.is_empty(), "{node} has no port {port} outside");
    Ok(format!("http://{address}"))
}

async fn config(directory: &Path) -> Result<kube::Config> {
    let file = Kubeconfig::read_from(directory.join(KUBECONFIG))?;
    Ok(kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?)
}

fn client(config: &kube::Config) -> Result<Client> {
    Ok(Client::try_from(config.clone())?)
}
