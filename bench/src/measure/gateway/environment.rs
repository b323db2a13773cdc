//! Environment of the measurement: a simulated API server with the tenants' Secrets, and a null
//! store.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use jiff::Timestamp;
use kube_sim::{Cluster, GroupVersionResource};
use serde_json::{Value, json};
use stowage_testbed::simulated::REGION;
use stowage_testbed::store::{Key, Store};
use stowage_world::serve::{self, Server};
use tempfile::TempDir;

use super::asks::{Asking, Tenant};
use super::load::{self, Job, Target};
use super::null_store::NullStore;
use super::tls::Tls;
use crate::measure::cpus::Cpus;
use crate::measure::stores::{Program, Serving};

/// The operator's namespace.
pub(super) const HOME: &str = "stowage-system";
/// Prefix of the names of Secrets with a backend's admin key.
const ADMIN: &str = "store-admin";

/// A cluster and a store.
pub(super) struct Environment {
    pub(super) tenants: Vec<Tenant>,
    /// A tenant with a bucket at the store's TLS endpoint.
    pub(super) over_tls: Option<Tenant>,
    pub(super) store: NullStore,
    pub(super) tls: Tls,
    /// A real store, if there is one.
    pub(super) real: Option<Real>,
    /// Number of tenants created so far.
    made: AtomicUsize,
    cluster: Cluster,
    directory: TempDir,
    _api: Server,
}

/// A real store, with a bucket that contains the objects to read.
pub(super) struct Real {
    pub(super) address: SocketAddr,
    /// A tenant with a key for it at the gateway.
    pub(super) tenant: Tenant,
    /// The same bucket, with the store's own key.
    pub(super) owner: Tenant,
    _serving: Serving,
}

impl Environment {
    /// Starts it with this number of tenants, each with a bucket and a key.
    pub(super) async fn start(keys: usize) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("stowage-bench-").tempdir();
        let directory = directory.context("can't make a temporary directory")?;
        let tls = Tls::make(directory.path())?;
        let store = NullStore::start(Some(tls.acceptor.clone()))?;
        let cluster = Cluster::new(Arc::new(Timestamp::now), 7);
        for definition in stowage_operator::api::crds() {
            cluster.install_crd(&definition).map_err(|why| anyhow!("a definition is refused: {why:?}"))?;
        }
        put(&cluster, &kind("", "v1", "namespaces"), "", HOME, json!({}))?;
        let api = serve::api(([127, 0, 0, 1], 0).into(), &cluster).await.context("can't serve an API")?;
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "bench",
            "clusters": [{"name": "bench", "cluster": {"server": api.url()}}],
            "users": [{"name": "bench", "user": {"token": "none"}}],
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        });
        std::fs::write(directory.path().join("kubeconfig"), kubeconfig.to_string()).context("can't write a file")?;
        let mut environment = Self {
            tenants: Vec::new(),
            over_tls: None,
            store,
            tls,
            real: None,
            made: AtomicUsize::new(0),
            cluster,
            directory,
            _api: api,
        };
        let key = Key { id: "NULLSTORE".to_owned(), secret: "null".to_owned() };
        let plain = format!("http://{}", environment.store.plain);
        environment.backend("null", &plain, &key)?;
        for _ in 0..keys {
            let tenant = environment.further_tenant()?;
            environment.tenants.push(tenant);
        }
        if let Some(address) = environment.store.tls {
            let endpoint = format!("https://{address}");
            environment.backend("null-tls", &endpoint, &key)?;
            environment.over_tls = Some(environment.tenant("null-tls", &endpoint)?);
        }
        Ok(environment)
    }

    /// Starts a real store, and puts the objects to read into it.
    pub(super) async fn add_real(&mut self, program: &Program, patience: Duration, cpus: &Cpus) -> Result<()> {
        let serving = program.start(patience, Some(cpus)).await?;
        let address = serving.endpoint.trim_start_matches("http://");
        let address: SocketAddr = address.parse().context("a store whose address is none")?;
        self.backend("real", &serving.endpoint, &serving.key)?;
        let tenant = self.tenant("real", &serving.endpoint)?;
        Store::new(&serving.endpoint, REGION, &serving.key)?.make(&tenant.bucket).await?;
        let owner = Tenant { key: serving.key.clone(), bucket: tenant.bucket.clone() };
        let host = address.to_string();
        let asking = Asking { host: &host, now: Timestamp::now() };
        let clients = vec![asking.objects(&owner)?];
        load::play(Job { target: Target { address, tls: None }, clients, time: Duration::from_millis(500) }).await?;
        self.real = Some(Real { address, tenant, owner, _serving: serving });
        Ok(())
    }

    /// Returns the path of the API server's kubeconfig.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    /// Returns a directory for files of programs.
    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Creates a backend with this name.
    fn backend(&self, name: &str, endpoint: &str, key: &Key) -> Result<()> {
        let admin = json!({
            "metadata": {"labels": {"broker.stowage.io/backend-credentials": "true"},
                         "annotations": {"broker.stowage.io/endpoints": endpoint}},
            "stringData": {"AWS_ACCESS_KEY_ID": key.id, "AWS_SECRET_ACCESS_KEY": key.secret},
        });
        let secret = format!("{ADMIN}-{name}");
        put(&self.cluster, &secrets(), HOME, &secret, admin)?;
        let spec = json!({
            "endpoint": endpoint, "adminCredentialsSecretRef": {"name": secret, "namespace": HOME},
            // The certificate is generated for this measurement and signed by no known authority.
            "tls": {"insecureSkipVerify": true},
        });
        let backends = kind("broker.stowage.io", "v1alpha1", "s3backends");
        put(&self.cluster, &backends, "", name, json!({"spec": spec}))
    }

    /// Creates another tenant, at the null store.
    pub(super) fn further_tenant(&self) -> Result<Tenant> {
        self.tenant("null", &format!("http://{}", self.store.plain))
    }

    /// Creates a tenant with a bucket at this backend.
    fn tenant(&self, backend: &str, endpoint: &str) -> Result<Tenant> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let (id, bucket) = (format!("STWBENCH{number:012}"), format!("bench-bucket-{number:05}"));
        let secret = hex::encode(super::hash::sha256(id.as_bytes())).chars().take(40).collect::<String>();
        let labels = json!({
            "broker.stowage.io/role": "virtual-credential", "broker.stowage.io/claim-namespace": "bench",
            "broker.stowage.io/claim-name": bucket,
        });
        let data = json!({
            "access_key_id": id, "secret_access_key": secret, "claim_uid": format!("bench-uid-{number:05}"),
            "bucket_scopes": json!([{"bucket": bucket, "backend": backend}]).to_string(),
            "bucket_name": bucket, "backend": backend, "endpoint": endpoint,
        });
        let object = json!({"metadata": {"labels": labels}, "stringData": data});
        put(&self.cluster, &secrets(), HOME, &name_of(&id), object)?;
        Ok(Tenant { key: Key { id, secret }, bucket })
    }

    /// Revokes a tenant's key like the operator, by deleting its Secret.
    pub(super) fn revoke(&self, tenant: &Tenant) -> Result<()> {
        let gone = self.cluster.delete(&secrets(), HOME, &name_of(&tenant.key.id));
        gone.map(|_| ()).map_err(|why| anyhow!("a key can't be ended: {why:?}"))
    }
}

/// Returns the name of a key's Secret.
fn name_of(id: &str) -> String {
    format!("vc-{}", id.to_lowercase())
}

fn kind(group: &str, version: &str, plural: &str) -> GroupVersionResource {
    GroupVersionResource::gvr(group, version, plural)
}

fn secrets() -> GroupVersionResource {
    kind("", "v1", "secrets")
}

fn put(cluster: &Cluster, kind: &GroupVersionResource, namespace: &str, name: &str, object: Value) -> Result<()> {
    let put = cluster.put(kind, namespace, name, object);
    put.map(|_| ()).map_err(|why| anyhow!("{name} is refused: {why:?}"))
}
