//! A bare control plane: etcd, kube-apiserver and kube-controller-manager as child processes on
//! free loopback ports. All their files are in one temporary directory. Dropping the control plane
//! kills the processes and removes the directory.

mod process;
mod programs;
mod tokens;

use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tempfile::TempDir;
use thiserror::Error;
use tokio::time::{sleep, timeout};

use self::process::Ended;
pub use self::process::Process;
pub use self::programs::Programs;
pub use self::programs::{MissingProgram, missing};
use self::tokens::Tokens;
use crate::rights;
use crate::users::User;

/// Interval between readiness checks of the API server.
const LOOK: Duration = Duration::from_millis(25);
/// Attempts to start. Another process may take a free port before the child process binds it.
const ATTEMPTS: usize = 3;
/// Process name of the API server.
pub const API_SERVER: &str = "kube-apiserver";
/// Process name of the API server's store.
pub const ETCD: &str = "etcd";
/// Records request metadata only, no bodies.
const AUDIT_POLICY: &str = r#"{
    "apiVersion": "audit.k8s.io/v1", "kind": "Policy",
    "omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]
}"#;

/// A running control plane.
pub struct ControlPlane {
    /// Killed in the reverse of this order, and before their directory is removed.
    processes: Vec<Process>,
    directory: TempDir,
    tokens: Tokens,
    /// Time from the start until the API server was ready.
    pub ready_after: Duration,
}

/// Reason why a control plane did not start.
#[derive(Debug, Error)]
enum StartError {
    /// A child process ended before the API server was ready.
    #[error(transparent)]
    Ended(#[from] Ended),
    /// Anything else.
    #[error(transparent)]
    Other(#[from] anyhow::Error),
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        while self.processes.pop().is_some() {}
    }
}

impl ControlPlane {
    /// Starts a control plane and waits until its API server is ready.
    pub async fn start(programs: &Programs, patience: Duration) -> Result<Self> {
        let mut attempt = 1;
        loop {
            match Self::attempt(programs, patience).await {
                Err(StartError::Ended(ended)) if attempt < ATTEMPTS && ended.port_was_taken() => attempt += 1,
                outcome => return Ok(outcome?),
            }
        }
    }

    async fn attempt(programs: &Programs, patience: Duration) -> Result<Self, StartError> {
        let start = Instant::now();
        let directory = tempfile::Builder::new().prefix("stowage-e2e-").tempdir();
        let directory = directory.context("can't make a temporary directory")?;
        let tokens = Tokens::generate()?;
        let mut plane = Self { processes: Vec::new(), directory, tokens, ready_after: Duration::ZERO };
        let ports = Ports::free().context("no free port")?;
        plane.write("tokens.csv", &plane.tokens.file())?;
        plane.write("audit.json", AUDIT_POLICY)?;
        let (server, authority) = (format!("https://127.0.0.1:{}", ports.apiserver), plane.path(CERTIFICATE));
        for (name, user) in [(KUBECONFIG, User::Admin), ("controller-manager.kubeconfig", User::ControllerManager)] {
            let kubeconfig = plane.tokens.kubeconfig(&server, &authority.display().to_string(), user);
            plane.write(name, &kubeconfig.to_string())?;
        }

        plane.spawn(ETCD, &programs.etcd, etcd_flags(&ports))?;
        plane.spawn(API_SERVER, &programs.apiserver, apiserver_flags(&ports))?;
        let ready = timeout(patience, plane.ready()).await;
        ready.map_err(|_| anyhow!("the API server was not ready within {} s", patience.as_secs()))??;
        plane.spawn("kube-controller-manager", &programs.controller_manager, controller_manager_flags())?;
        plane.ready_after = start.elapsed();
        let admin = plane.client(User::Admin).await?;
        rights::of_tenants(&admin).await?;
        rights::of_installed(&admin).await?;
        Ok(plane)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, content: &str) -> Result<()> {
        std::fs::write(self.path(name), content).with_context(|| format!("can't write {name}"))
    }

    fn spawn(&mut self, name: &'static str, program: &Path, flags: Vec<String>) -> Result<()> {
        let process = Process::start(name, program, flags, self.directory.path())?;
        self.processes.push(process);
        Ok(())
    }

    /// Waits until the API server is ready, or returns an error if a process ends first.
    async fn ready(&mut self) -> Result<(), Ended> {
        loop {
            self.check()?;
            // The server writes its key after its certificate, so the certificate is complete by
            // now.
            if self.path(KEY).exists()
                && let Ok(client) = self.client(User::Admin).await
                && answers_ok(&client).await
            {
                return Ok(());
            }
            sleep(LOOK).await;
        }
    }

    /// Returns an error if one of the processes has ended.
    pub fn check(&mut self) -> Result<(), Ended> {
        self.processes.iter_mut().find_map(Process::ended).map_or(Ok(()), Err)
    }

    /// Creates a client of the API server for one of its users.
    pub async fn client(&self, user: User) -> Result<Client> {
        Ok(Client::try_from(self.config(user).await?)?)
    }

    /// Returns the client configuration of one of the API server's users.
    pub async fn config(&self, user: User) -> Result<kube::Config> {
        let file = Kubeconfig::read_from(self.path(KUBECONFIG))?;
        let options = KubeConfigOptions { context: Some(user.name().to_owned()), ..KubeConfigOptions::default() };
        Ok(kube::Config::from_custom_kubeconfig(file, &options).await?)
    }

    /// Returns the path of a kubeconfig with a context for each user.
    pub fn kubeconfig(&self) -> PathBuf {
        self.path(KUBECONFIG)
    }

    /// Writes a kubeconfig with this user's context as the current one, for programs that are not
    /// given a context.
    pub fn kubeconfig_of(&self, user: User) -> Result<PathBuf> {
        let failed = || format!("can't write a kubeconfig for {}", user.name());
        let text = std::fs::read_to_string(self.path(KUBECONFIG)).with_context(failed)?;
        let mut kubeconfig: serde_json::Value = serde_json::from_str(&text).with_context(failed)?;
        kubeconfig["current-context"] = user.name().into();
        let name = format!("{}-direct.kubeconfig", user.name());
        self.write(&name, &kubeconfig.to_string())?;
        Ok(self.path(&name))
    }

    /// Returns the process group of the process with this name.
    pub fn group(&self, name: &str) -> Option<i32> {
        self.processes.iter().find(|process| process.name() == name).map(Process::group)
    }

    /// Writes a kubeconfig that sends the operator's requests to `server`, without TLS, instead of
    /// the API server.
    pub fn operator_kubeconfig(&self, server: &str) -> Result<PathBuf> {
        let name = "operator.kubeconfig";
        self.write(name, &self.tokens.kubeconfig_of(User::Operator, server).to_string())?;
        Ok(self.path(name))
    }

    /// Returns the path of the API server's audit log.
    pub fn audit_log(&self) -> PathBuf {
        self.path(AUDIT_LOG)
    }

    /// Returns the logs of the processes, by file name.
    pub fn logs(&self) -> Result<Vec<(String, String)>> {
        let read = |process: &Process| {
            let (path, name) = (process.log(), process.log().file_name().unwrap_or_default());
            let text = std::fs::read(path).with_context(|| format!("can't keep {}", path.display()))?;
            Ok((name.to_string_lossy().into_owned(), String::from_utf8_lossy(&text).into_owned()))
        };
        self.processes.iter().map(read).collect()
    }
}

async fn answers_ok(client: &Client) -> bool {
    let Ok(request) = http::Request::get("/readyz").body(Vec::new()) else { return false };
    client.request_text(request).await.is_ok_and(|answer| answer == "ok")
}

/// Ports that were free when they were allocated.
struct Ports {
    etcd: u16,
    apiserver: u16,
}

impl Ports {
    fn free() -> io::Result<Self> {
        // Both listeners stay open until both ports are known, so that the ports differ.
        let (etcd, apiserver) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
        Ok(Self { etcd: etcd.local_addr()?.port(), apiserver: apiserver.local_addr()?.port() })
    }
}

/// File name of the kubeconfig. Each context is named like its user.
const KUBECONFIG: &str = "kubeconfig";
const AUDIT_LOG: &str = "audit.log";
const CERTIFICATE: &str = "certificates/apiserver.crt";
const KEY: &str = "certificates/apiserver.key";

fn etcd_flags(ports: &Ports) -> Vec<String> {
    let clients = format!("http://127.0.0.1:{}", ports.etcd);
    vec![
        "--data-dir=etcd".to_owned(),
        // The data doesn't outlive the process, so there is no use in waiting for the disk.
        "--unsafe-no-fsync".to_owned(),
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
        // There are no peers, so any port will do.
        "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
    ]
}

fn apiserver_flags(ports: &Ports) -> Vec<String> {
    vec![
        format!("--etcd-servers=http://127.0.0.1:{}", ports.etcd),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", ports.apiserver),
        // The address of the Service `kubernetes`, which nothing uses here. It is set because the
        // server can't find an address on a machine without a network. 192.0.2.1 is reserved for
        // documentation (TEST-NET-1).
        "--advertise-address=192.0.2.1".to_owned(),
        // The server generates its certificate. Its key also signs service account tokens, of which
        // there are none here.
        "--cert-dir=certificates".to_owned(),
        format!("--service-account-issuer=https://127.0.0.1:{}", ports.apiserver),
        format!("--service-account-key-file={KEY}"),
        format!("--service-account-signing-key-file={KEY}"),
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        "--token-auth-file=tokens.csv".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        "--audit-policy-file=audit.json".to_owned(),
        format!("--audit-log-path={AUDIT_LOG}"),
        // In megabytes. The default rotates the log after 100, and the rotated files would not be
        // read.
        "--audit-log-maxsize=100000".to_owned(),
    ]
}

fn controller_manager_flags() -> Vec<String> {
    vec![
        "--kubeconfig=controller-manager.kubeconfig".to_owned(),
        "--controllers=namespace-controller,garbage-collector-controller".to_owned(),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
    ]
}
