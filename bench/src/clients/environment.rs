//! The environment of clients: a control plane, a store, operator and gateway, as processes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use stowage_operator::api::{BucketAccess, BucketAccessStatus};
use stowage_testbed::control_plane::ControlPlane;
use stowage_testbed::definitions;
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::setup::Setup;
use stowage_testbed::gateway::{Certificate, Spawned};
use stowage_testbed::log::Log;
use stowage_testbed::objects::from_json;
use stowage_testbed::operator::{Launcher, Operator};
use stowage_testbed::rights;
use stowage_testbed::simulated::REGION;
use stowage_testbed::store::Store;
use stowage_testbed::users::User;
use stowage_world::effects::Plan as Faults;
use tempfile::TempDir;

use super::means::{Means, Over};
use crate::measure::stores::Serving;
use crate::tls;

/// Longest time to wait for each expected event.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// Prefix of every name. It needn't be unique, because the environment is not shared.
const PREFIX: &str = "e2e";

/// Control plane and store, with their endpoints.
pub(super) struct Cluster {
    environment: Environment,
    over: Over,
    directory: TempDir,
    plane: ControlPlane,
    _serving: Serving,
    gateway: Vec<String>,
}

/// Operator and gateway, with their objects.
pub(super) struct Installation<'a> {
    cluster: &'a Cluster,
    /// `None` if clients call the store itself.
    running: Option<Running<'a>>,
}

struct Running<'a> {
    setup: Setup<'a>,
    operator: Operator,
    gateway: Spawned,
    /// Certificate authority of the gateway.
    authority: Option<PathBuf>,
}

/// Credentials of a client.
pub(super) struct Access {
    /// The fields of a claim's Secret.
    pub(super) fields: BTreeMap<String, String>,
    /// Certificate authority that it has to trust.
    pub(super) authority: Option<PathBuf>,
}

impl Cluster {
    /// Starts a control plane for this store.
    pub(super) async fn start(means: &Means, serving: Serving, over: Over) -> Result<Self> {
        let endpoint = serving.endpoint.clone();
        Self::start_behind(means, serving, over, endpoint).await
    }

    /// Starts a control plane for this store, which operator and gateway reach at this endpoint.
    pub(super) async fn start_behind(means: &Means, serving: Serving, over: Over, endpoint: String) -> Result<Self> {
        let plane = ControlPlane::start(&means.programs, PATIENCE).await?;
        let launcher = Launcher::Process {
            command: means.operator.clone(),
            kubeconfig: plane.kubeconfig(),
            context: Some(User::Operator.name().to_owned()),
        };
        let environment = Environment {
            client: plane.client(User::Admin).await?,
            tenant: plane.client(User::Tenant).await?,
            store: Store::new(&serving.endpoint, REGION, &serving.key)?,
            endpoint,
            operator_key: serving.key.clone(),
            launcher,
            patience: PATIENCE,
            prefix: PREFIX.to_owned(),
            log: Log::default(),
            own_cluster: None,
            faults: Faults::default(),
            thorough: false,
        };
        definitions::install(&environment).await?;
        let directory = tempfile::Builder::new().prefix("stowage-clients-").tempdir();
        let directory = directory.context("can't make a temporary directory")?;
        let gateway = means.gateway.clone();
        Ok(Self { environment, over, directory, plane, _serving: serving, gateway })
    }

    /// Starts operator and gateway there, unless clients call the store itself.
    pub(super) async fn installation(&self) -> Result<Installation<'_>> {
        let running = match self.over {
            Over::Http => Some(self.running(None).await?),
            Over::Https => Some(self.running(Some(tls::certificate(self.directory.path())?)).await?),
            Over::Store => None,
        };
        Ok(Installation { cluster: self, running })
    }

    async fn running(&self, certificate: Option<Certificate>) -> Result<Running<'_>> {
        let setup = self.environment.setup("clients").await?;
        rights::of_installed_in(&self.environment.client, &setup.system).await?;
        let (kubeconfig, certificate) = (self.plane.kubeconfig(), certificate.as_ref());
        let log = &self.environment.log;
        let gateway = Spawned::start(&self.gateway, &kubeconfig, &setup.system, certificate, 0, log, PATIENCE).await?;
        let operator = setup.start_operator_behind(gateway.url(), &[]).await?;
        Ok(Running { setup, operator, gateway, authority: certificate.map(|it| it.authority.clone()) })
    }
}

impl Installation<'_> {
    /// Returns the credentials of the client with this name: a claim's Secret, or the store's own
    /// key with a new bucket.
    pub(super) async fn access(&mut self, client: &str) -> Result<Access> {
        match &mut self.running {
            Some(running) => running.claim(client, json!({})).await,
            None => self.cluster.bucket(client).await,
        }
    }

    /// Creates a claim with this name and with these further fields of its spec. Returns its bucket
    /// and key.
    ///
    /// # Errors
    /// Fails if it isn't bound in time, or if there is no operator.
    pub(super) async fn claim(&mut self, name: &str, further: Value) -> Result<Access> {
        self.running()?.claim(name, further).await
    }

    /// Creates an access with this name and returns its key. Its entries are claims, each with a
    /// mode and a prefix.
    ///
    /// # Errors
    /// Fails if it isn't open in time, or if there is no operator.
    pub(super) async fn share(&mut self, name: &str, entries: &[(&str, &str, Option<&str>)]) -> Result<Access> {
        self.running()?.share(name, entries).await
    }

    /// Terminates operator and gateway.
    ///
    /// # Errors
    /// Fails if one of them ends with an error or too late.
    pub(super) async fn end(self) -> Result<()> {
        let Some(running) = self.running else { return Ok(()) };
        running.operator.terminate().await?;
        running.gateway.terminate().await
    }
}

impl<'a> Installation<'a> {
    fn running(&mut self) -> Result<&mut Running<'a>> {
        self.running.as_mut().context("there is no operator where clients ask the store itself")
    }
}

impl Running<'_> {
    async fn claim(&mut self, client: &str, further: Value) -> Result<Access> {
        let setup = &self.setup;
        let secret = setup.under(&mut self.operator, async {
            setup.claim(client, further).await?;
            setup.ready(client).await?;
            let secret = setup.secrets(&setup.tenant).get(&format!("{client}-s3")).await;
            secret.with_context(|| format!("claim {client} has no consumer Secret"))
        });
        let secret = secret.await?;
        Ok(self.access(secret))
    }

    async fn share(&mut self, name: &str, entries: &[(&str, &str, Option<&str>)]) -> Result<Access> {
        let setup = &self.setup;
        let entry = |(claim, mode, prefix): &(&str, &str, Option<&str>)| {
            let claim = json!({"name": claim, "namespace": setup.tenant});
            match prefix {
                Some(prefix) => json!({"claimRef": claim, "mode": mode, "prefix": prefix}),
                None => json!({"claimRef": claim, "mode": mode}),
            }
        };
        let secret_name = format!("{name}-key");
        let access: BucketAccess = from_json(json!({
            "apiVersion": "broker.stowage.io/v1alpha1", "kind": "BucketAccess", "metadata": {"name": name},
            "spec": {
                "buckets": entries.iter().map(entry).collect::<Vec<_>>(),
                "writeConnectionSecretToRef": {"name": secret_name},
            },
        }));
        let accesses: Api<BucketAccess> = Api::namespaced(setup.environment.tenant.clone(), &setup.tenant);
        let secret = setup.under(&mut self.operator, async {
            let made = accesses.create(&PostParams::default(), &access).await;
            made.with_context(|| format!("can't make access {name}"))?;
            let found = setup.environment.wait(&accesses, name, "Open", is_open).await?;
            found.ok_or_else(|| anyhow!("access {name} is gone"))?;
            let secret = setup.secrets(&setup.tenant).get(&secret_name).await;
            secret.with_context(|| format!("access {name} has no Secret"))
        });
        let secret = secret.await?;
        Ok(self.access(secret))
    }

    fn access(&self, secret: Secret) -> Access {
        let fields = secret.data.unwrap_or_default().into_iter();
        let fields = fields.map(|(name, value)| (name, String::from_utf8_lossy(&value.0).into_owned())).collect();
        Access { fields, authority: self.authority.clone() }
    }
}

/// True if an access's key opens all of its entries.
fn is_open(access: Option<&BucketAccess>) -> bool {
    let status = access.and_then(|access| access.status.as_ref());
    let is_it = |status: &BucketAccessStatus| {
        status.conditions.iter().any(|condition| condition.type_ == "Ready" && condition.reason == "Open")
    };
    status.is_some_and(is_it)
}

impl Cluster {
    async fn bucket(&self, client: &str) -> Result<Access> {
        let Environment { store, endpoint, operator_key, .. } = &self.environment;
        let bucket = format!("{PREFIX}-{client}");
        store.make(&bucket).await?;
        let fields = [
            ("AWS_ACCESS_KEY_ID", operator_key.id.as_str()),
            ("AWS_SECRET_ACCESS_KEY", &operator_key.secret),
            ("AWS_REGION", REGION),
            ("AWS_DEFAULT_REGION", REGION),
            ("AWS_ENDPOINT_URL", endpoint),
            ("AWS_ENDPOINT_URL_S3", endpoint),
            ("BUCKET_NAME", &bucket),
            ("S3_ADDRESSING_STYLE", "path"),
        ];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        Ok(Access { fields, authority: None })
    }
}
