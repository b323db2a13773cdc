//! A cluster and a store that the harness started itself, so that it can read all requests to
//! either afterwards, and disturb them on their way.

use std::time::Duration;

use anyhow::Result;
use kube::Client;
use stowage_world::serve::S3Request;

use crate::audit::{self, AuditLog, Place};
use crate::control_plane::{ControlPlane, Programs};
use crate::fault_proxy::FaultProxy;
use crate::gateway::{Gateway, Here, Spawned};
use crate::judge;
use crate::kind::{self, Cluster};
use crate::log::Log;
use crate::operator::Launcher;
use crate::rights;
use crate::simulated::Simulated;
use crate::store::Key;
use crate::users::User;

/// Cluster and store of one worker, which plays its scenarios one after the other. Dropping it
/// removes everything.
pub struct OwnCluster {
    servers: Servers,
    /// The proxy between the operator and its servers.
    pub fault_proxy: FaultProxy,
    audit: AuditLog,
    /// Number of the first request to the store in the current scenario.
    first_request: usize,
}

/// The servers of an own cluster.
enum Servers {
    /// A control plane of child processes, and a store in this process.
    Processes(Box<Processes>),
    /// A kind cluster that contains all of them.
    Kind(Box<Cluster>),
}

/// A control plane and a store.
struct Processes {
    plane: ControlPlane,
    simulated: Simulated,
    /// Command that starts a gateway: program, and arguments that come before `run`.
    gateway: Vec<String>,
    /// Log of the gateways of the current scenario.
    gateway_log: Log,
}

impl OwnCluster {
    /// Starts a control plane and a store. `command` starts operators, `gateway` starts gateways.
    /// Also returns a launcher of operators.
    pub async fn of_processes(
        programs: &Programs,
        command: &[String],
        gateway: &[String],
        patience: Duration,
    ) -> Result<(Self, Launcher)> {
        let simulated = Simulated::start().await?;
        let plane = ControlPlane::start(programs, patience).await?;
        let (fault_proxy, kubeconfig) = FaultProxy::here(&plane, &simulated.endpoint(), &simulated.gateway).await?;
        let audit = AuditLog::new(Place::File(plane.audit_log()));
        let launcher = Launcher::Process { command: command.to_vec(), kubeconfig, context: None };
        let processes = Processes { plane, simulated, gateway: gateway.to_vec(), gateway_log: Log::default() };
        Ok((Self { servers: Servers::Processes(Box::new(processes)), fault_proxy, audit, first_request: 0 }, launcher))
    }

    /// Creates a kind cluster of this name. Also returns a launcher of operators.
    pub async fn of_kind(settings: &kind::Settings, name: &str, patience: Duration) -> Result<(Self, Launcher)> {
        let cluster = Cluster::start(settings, name, patience).await?;
        rights::of_tenants(&cluster.client(User::Admin).await?).await?;
        let fault_proxy = FaultProxy::there(cluster.proxy(), Cluster::operators_store());
        let audit = AuditLog::new(Place::Node { node: cluster.node(), file: kind::AUDIT_LOG });
        let launcher = Launcher::Deployment(cluster.operator());
        Ok((Self { servers: Servers::Kind(Box::new(cluster)), fault_proxy, audit, first_request: 0 }, launcher))
    }

    /// Returns the time from the start until everything was ready.
    pub fn ready_after(&self) -> Duration {
        match &self.servers {
            Servers::Processes(processes) => processes.plane.ready_after,
            Servers::Kind(cluster) => cluster.ready_after,
        }
    }

    /// Returns instructions for a cluster that is kept after the run.
    pub fn kept(&self) -> Option<String> {
        match &self.servers {
            Servers::Processes(_) => None,
            Servers::Kind(cluster) => cluster.how_to_reach(),
        }
    }

    /// Creates a client of the API server for one of its users.
    pub async fn client(&self, user: User) -> Result<Client> {
        match &self.servers {
            Servers::Processes(processes) => processes.plane.client(user).await,
            Servers::Kind(cluster) => cluster.client(user).await,
        }
    }

    /// Returns the operator's namespace if it is installed already; otherwise each scenario creates
    /// one.
    pub fn home(&self) -> Option<&'static str> {
        match &self.servers {
            Servers::Processes(_) => None,
            Servers::Kind(_) => Some(kind::NAMESPACE),
        }
    }

    /// Returns the harness' URL of the store, and its key there.
    pub fn store(&self) -> (String, &Key) {
        match &self.servers {
            Servers::Processes(processes) => (processes.simulated.endpoint(), &processes.simulated.admin),
            Servers::Kind(cluster) => (cluster.store().to_owned(), cluster.observer()),
        }
    }

    /// Returns the operator's key for the store.
    pub fn operator_key(&self) -> &Key {
        match &self.servers {
            Servers::Processes(processes) => &processes.simulated.operator,
            Servers::Kind(cluster) => &cluster.keys.operator,
        }
    }

    /// Returns the gateway's key for the store.
    pub fn gateway_key(&self) -> &Key {
        match &self.servers {
            Servers::Processes(processes) => &processes.simulated.gateway,
            Servers::Kind(cluster) => &cluster.keys.gateway,
        }
    }

    /// Grants operator and gateway their rights in a namespace created for the operator.
    pub async fn admit(&self, client: &Client, namespace: &str) -> Result<()> {
        match &self.servers {
            Servers::Processes(_) => rights::of_installed_in(client, namespace).await,
            // The manifests install the rights together with the namespace.
            Servers::Kind(_) => Ok(()),
        }
    }

    /// Starts a gateway that reads credentials from this namespace. A gateway process keeps
    /// accepting connections for `drain` seconds after SIGTERM.
    pub async fn gateway(&self, namespace: &str, drain: u64, patience: Duration) -> Result<Gateway> {
        match &self.servers {
            Servers::Processes(processes) => {
                let Processes { plane, gateway, gateway_log, .. } = &**processes;
                let kubeconfig = plane.kubeconfig();
                let started = Spawned::start(gateway, &kubeconfig, namespace, None, drain, gateway_log, patience).await;
                started.map(Gateway::Process)
            }
            // The installed gateway reads the operator's namespace, which is fixed too.
            Servers::Kind(cluster) => cluster.start_gateway(patience).await.map(Gateway::There),
        }
    }

    /// Starts a gateway with a proxy between it and the store. In a kind cluster there is no such
    /// proxy.
    pub async fn gateway_behind_proxy(&self, namespace: &str, patience: Duration) -> Result<Gateway> {
        match &self.servers {
            Servers::Processes(processes) => {
                let client = processes.plane.client(User::Gateway).await?;
                let store = processes.simulated.endpoint();
                Here::start(client, namespace, &store, patience).await.map(Gateway::Here)
            }
            Servers::Kind(_) => self.gateway(namespace, 0, patience).await,
        }
    }

    /// Begins a scenario: later reads leave out everything logged before.
    pub async fn begin(&mut self) -> Result<()> {
        if let Servers::Processes(processes) = &self.servers {
            processes.gateway_log.clear();
        }
        self.audit.begin_here().await?;
        self.first_request += self.store_requests().await?.len();
        Ok(())
    }

    /// Returns the requests of operator or gateway to the API server in this scenario.
    async fn requests_of(&self, user: User) -> Result<Vec<audit::Request>> {
        let name = match (&self.servers, user) {
            (Servers::Kind(_), User::Operator) => kind::SERVICE_ACCOUNT,
            (Servers::Kind(_), User::Gateway) => kind::GATEWAYS_ACCOUNT,
            (_, user) => user.name(),
        };
        self.audit.requests(name).await
    }

    /// Returns all requests to the store in this scenario.
    pub async fn store_requests(&self) -> Result<Vec<S3Request>> {
        match &self.servers {
            Servers::Processes(processes) => processes.simulated.requests(self.first_request),
            Servers::Kind(cluster) => cluster.store_requests(self.first_request).await,
        }
    }

    /// Returns the operator's requests in this scenario that changed something in the store
    /// successfully.
    pub async fn operator_changes(&self) -> Result<Vec<S3Request>> {
        let operator = &self.operator_key().id;
        let requests = self.store_requests().await?;
        Ok(requests.into_iter().filter(|request| judge::changes(request, operator)).collect())
    }

    /// Returns the audit log of this scenario.
    pub async fn audit_text(&self) -> Result<String> {
        self.audit.text().await
    }

    /// Returns the logs of the servers, by file name.
    pub async fn logs(&self) -> Result<Vec<(String, String)>> {
        match &self.servers {
            Servers::Processes(processes) => {
                let mut logs = processes.plane.logs()?;
                // The log is empty in a scenario without a gateway.
                match processes.gateway_log.lines() {
                    lines if lines.is_empty() => {}
                    lines => logs.push(("gateway.log".to_owned(), lines.join("\n") + "\n")),
                }
                Ok(logs)
            }
            Servers::Kind(cluster) => Ok(cluster.logs().await),
        }
    }

    /// Checks the scenario by the requests to API server and store.
    pub async fn judge(&mut self) -> Result<()> {
        if let Servers::Processes(processes) = &mut self.servers {
            processes.plane.check()?;
        }
        judge::reader(&self.requests_of(User::Gateway).await?)?;
        let asked = self.requests_of(User::Operator).await?;
        judge::requests(&asked)?;
        judge::answers(self.fault_proxy.calls().await?.all())?;
        judge::store(self.fault_proxy.endpoint(), &self.operator_changes().await?, &asked)
    }
}
