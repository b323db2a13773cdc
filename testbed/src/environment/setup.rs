//! The objects that one scenario creates, and its operations on claims.

use std::pin::pin;

use anyhow::{Context as _, Result, anyhow, ensure};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::conditions::is_deleted;
use serde_json::{Value, json};
use stowage_operator::api::{BucketClaim, S3Backend, wire};

use crate::clock::FakeClock;
use crate::environment::Environment;
use crate::environment::own_cluster::OwnCluster;
use crate::failure::sentence;
use crate::fault_proxy::FaultProxy;
use crate::gateway::Gateway;
use crate::objects::from_json;
use crate::operator::Operator;
use crate::store::Key;

/// Endpoint in consumer Secrets of scenarios without a gateway.
pub const GATEWAY: &str = "http://gateway.stowage-e2e.invalid:9000";
/// Name of the admin Secret of each scenario's backend.
const ADMIN: &str = "store-admin";
/// Name of the Secret with the gateway's key for that backend's store.
const GATEWAYS: &str = "store-gateway";

/// One scenario's part of the environment: an operator namespace with the admin Secret, a tenant
/// namespace, and a backend.
pub struct Setup<'a> {
    /// The cluster and store of the run.
    pub environment: &'a Environment,
    /// The operator's namespace.
    pub system: String,
    /// The tenant's namespace.
    pub tenant: String,
    /// Name of the S3Backend.
    pub backend: String,
}

impl Environment {
    /// Creates the objects that a scenario needs. Names begin with the run's prefix and the
    /// scenario's name.
    pub async fn setup(&self, scenario: &str) -> Result<Setup<'_>> {
        let setup = self.setup_names(scenario);
        self.make_namespace(&setup.tenant).await?;
        if self.home().is_none() {
            self.make_home(&setup).await?;
        }
        setup.make_backend().await?;
        Ok(setup)
    }

    /// Creates the operator's namespace, with the Secrets and rights that the operator needs there.
    async fn make_home(&self, setup: &Setup<'_>) -> Result<()> {
        self.make_namespace(&setup.system).await?;
        self.make_key(setup, ADMIN, &self.operator_key).await?;
        let Some(own_cluster) = &self.own_cluster else { return Ok(()) };
        self.make_key(setup, GATEWAYS, own_cluster.gateway_key()).await?;
        own_cluster.admit(&self.client, &setup.system).await
    }

    /// Creates a Secret with a key for the store, with the label and annotation that let backends
    /// use it.
    async fn make_key(&self, setup: &Setup<'_>, name: &str, key: &Key) -> Result<()> {
        let Key { id, secret } = key;
        let secret: Secret = from_json(json!({
            "metadata": {
                "name": name,
                "labels": {wire::BACKEND_CREDENTIALS: "true"},
                "annotations": {wire::ENDPOINTS: self.endpoint},
            },
            "stringData": {"AWS_ACCESS_KEY_ID": id, "AWS_SECRET_ACCESS_KEY": secret},
        }));
        let made = setup.secrets(&setup.system).create(&PostParams::default(), &secret).await;
        made.with_context(|| format!("can't make the Secret {name}")).map(|_| ())
    }

    fn home(&self) -> Option<&'static str> {
        self.own_cluster.as_ref().and_then(OwnCluster::home)
    }

    fn setup_names(&self, scenario: &str) -> Setup<'_> {
        let base = format!("{}-{scenario}", self.prefix);
        let system = self.home().map_or_else(|| format!("{base}-system"), str::to_owned);
        let tenant = format!("{base}-a");
        Setup { environment: self, system, tenant, backend: base }
    }
}

impl Setup<'_> {
    /// Returns the API of a namespace's Secrets.
    pub fn secrets(&self, namespace: &str) -> Api<Secret> {
        Api::namespaced(self.environment.client.clone(), namespace)
    }

    /// Returns the API of the tenant's claims, with the tenant's rights.
    pub fn claims(&self) -> Api<BucketClaim> {
        Api::namespaced(self.environment.tenant.clone(), &self.tenant)
    }

    /// Returns the API of all backends.
    pub fn backends(&self) -> Api<S3Backend> {
        Api::all(self.environment.client.clone())
    }

    /// Creates the backend.
    pub async fn make_backend(&self) -> Result<()> {
        let mut backend = json!({
            "apiVersion": "broker.stowage.io/v1alpha1", "kind": "S3Backend", "metadata": {"name": self.backend},
            "spec": {
                "endpoint": self.environment.endpoint, "region": self.environment.store.region,
                "adminCredentialsSecretRef": {"name": ADMIN, "namespace": self.system},
            },
        });
        // Gateways, and a key for them, exist only in the harness' own cluster.
        if self.environment.own_cluster.is_some() {
            let gateways = json!({"name": GATEWAYS, "namespace": self.system});
            json_merge(&mut backend["spec"], json!({"gatewayCredentialsSecretRef": gateways}));
        }
        let made = self.backends().create(&PostParams::default(), &from_json(backend)).await;
        made.context("can't make the S3Backend").map(|_| ())
    }

    /// Starts the operator on the operator namespace of this setup.
    pub async fn start_operator(&self, further: &[&str]) -> Result<Operator> {
        self.start_operator_behind(GATEWAY, further).await
    }

    /// Starts the operator on the operator namespace of this setup, with this gateway endpoint.
    pub async fn start_operator_behind(&self, gateway: &str, further: &[&str]) -> Result<Operator> {
        if let Some(own_cluster) = &self.environment.own_cluster {
            own_cluster.fault_proxy.new_operator().await?;
        }
        self.launch(&[], gateway, further).await
    }

    /// Starts a second operator beside the one that runs.
    pub async fn start_another_operator(&self, further: &[&str]) -> Result<Operator> {
        self.launch(&[], GATEWAY, further).await
    }

    /// Runs a subcommand of the operator's program for this setup. Returns its exit code and
    /// output.
    pub async fn ask(&self, words: &[&str]) -> Result<(Option<i32>, String)> {
        self.environment.launcher.ask(&self.system, words).await
    }

    /// Starts the operator with a clock that is `days` days ahead.
    pub async fn start_operator_ahead(&self, clock: &FakeClock, days: u32) -> Result<Operator> {
        self.fault_proxy()?.new_operator().await?;
        self.launch(&clock.ahead(days), GATEWAY, &[]).await
    }

    async fn launch(&self, under: &[String], gateway: &str, further: &[&str]) -> Result<Operator> {
        let arguments = [&["--gateway-endpoint", gateway], further].concat();
        self.environment.launcher.start(under, &self.system, &arguments, &self.environment.log).await
    }

    /// Starts a gateway for the tenants that doesn't drain connections when it ends.
    pub async fn start_gateway(&self) -> Result<Gateway> {
        self.start_gateway_that_drains(0).await
    }

    /// Starts a gateway that, as a process, keeps accepting connections for `seconds` seconds after
    /// SIGTERM.
    pub async fn start_gateway_that_drains(&self, seconds: u64) -> Result<Gateway> {
        self.own_cluster()?.gateway(&self.system, seconds, self.environment.patience).await
    }

    /// Starts a gateway with a proxy between it and the store.
    pub async fn start_gateway_behind_proxy(&self) -> Result<Gateway> {
        self.own_cluster()?.gateway_behind_proxy(&self.system, self.environment.patience).await
    }

    fn own_cluster(&self) -> Result<&OwnCluster> {
        self.environment.own_cluster.as_ref().context("there is a gateway only in a cluster of the harness' own")
    }

    /// Returns the fault proxy, for scenarios that need one.
    pub fn fault_proxy(&self) -> Result<&FaultProxy> {
        self.fault_proxy_if_any().context("faults happen only before a cluster of the harness' own")
    }

    /// Returns the fault proxy; `None` if cluster and store are not the harness' own.
    pub fn fault_proxy_if_any(&self) -> Option<&FaultProxy> {
        self.environment.own_cluster.as_ref().map(|own_cluster| &own_cluster.fault_proxy)
    }

    /// Plays `scenario` while the operator runs. An error message ends with the last lines of the
    /// operator's log. An operator that the plan crashes is killed and started again.
    pub async fn under<T>(&self, operator: &mut Operator, scenario: impl Future<Output = Result<T>>) -> Result<T> {
        let mut scenario = pin!(scenario);
        loop {
            tokio::select! {
                outcome = &mut scenario => return outcome.map_err(|why| match self.environment.log.tail() {
                    lines if lines.is_empty() => why,
                    lines => anyhow!("{}; the operator's log ends: {}", sentence(&why), lines.join(" | ")),
                }),
                fault_proxy = self.death() => {
                    let fault_proxy = fault_proxy?;
                    operator.die().await?;
                    fault_proxy.new_operator().await?;
                    operator.start_again().await?;
                    fault_proxy.crashed();
                }
                why = operator.ended() => return Err(why),
            }
        }
    }

    /// Completes when the plan crashes the operator.
    async fn death(&self) -> Result<&FaultProxy> {
        match &self.environment.own_cluster {
            Some(own_cluster) => own_cluster.fault_proxy.death().await.map(|()| &own_cluster.fault_proxy),
            None => std::future::pending().await,
        }
    }

    /// Creates a claim on the backend, with these further fields of its spec.
    pub async fn claim(&self, name: &str, further: Value) -> Result<BucketClaim> {
        let mut claim = json!({
            "apiVersion": "broker.stowage.io/v1alpha1", "kind": "BucketClaim", "metadata": {"name": name},
            "spec": {"backendRef": {"name": self.backend}},
        });
        json_merge(&mut claim["spec"], further);
        let made = self.claims().create(&PostParams::default(), &from_json(claim)).await;
        made.with_context(|| format!("can't make claim {name}"))
    }

    /// Waits until a claim is Ready for its current generation.
    pub async fn ready(&self, name: &str) -> Result<BucketClaim> {
        self.shows(name, "Bound").await
    }

    /// Waits until the condition `Ready` of a claim has this reason, for its current generation.
    pub async fn shows(&self, name: &str, reason: &'static str) -> Result<BucketClaim> {
        let condition = |claim: Option<&BucketClaim>| claim.is_some_and(|claim| ready_reason(claim) == Some(reason));
        let found = self.environment.wait(&self.claims(), name, reason, condition).await?;
        found.with_context(|| format!("claim {name} is gone"))
    }

    /// Edits a claim by a merge patch.
    pub async fn patch(&self, name: &str, patch: Value) -> Result<()> {
        let patched = self.claims().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.with_context(|| format!("can't patch claim {name}")).map(|_| ())
    }

    /// Requests the deletion of a claim.
    pub async fn ask_to_delete(&self, name: &str) -> Result<()> {
        let deleted = self.claims().delete(name, &DeleteParams::default()).await;
        deleted.with_context(|| format!("can't delete claim {name}")).map(|_| ())
    }

    /// Waits until a claim is gone.
    pub async fn gone(&self, claim: &BucketClaim) -> Result<()> {
        let (name, uid) = (claim.name_any(), claim.uid().unwrap_or_default());
        self.environment.wait(&self.claims(), &name, "gone", is_deleted(&uid)).await.map(|_| ())
    }

    /// Deletes a claim and waits until it is gone.
    pub async fn delete(&self, claim: &BucketClaim) -> Result<()> {
        self.ask_to_delete(&claim.name_any()).await?;
        self.gone(claim).await
    }

    /// Fails if an internal Secret of a claim is left.
    pub async fn nothing_left(&self, claim: &BucketClaim) -> Result<()> {
        for role in [wire::Role::BucketRecord, wire::Role::VirtualCredential, wire::Role::AnonymousBinding] {
            let left = self.internal(claim, role).await?.len();
            ensure!(left == 0, "{left} Secrets of role {} of {} are left", role.as_str(), claim.name_any());
        }
        Ok(())
    }

    /// Waits until no internal Secret of a claim with one of these roles is left.
    pub async fn swept(&self, claim: &BucketClaim, roles: &[wire::Role]) -> Result<()> {
        for role in roles {
            while let Some(left) = self.internal(claim, *role).await?.first() {
                let (secrets, uid) = (self.secrets(&self.system), left.uid().unwrap_or_default());
                self.environment.wait(&secrets, &left.name_any(), "swept", is_deleted(&uid)).await?;
            }
        }
        Ok(())
    }

    /// Lists the internal Secrets of a claim with this role.
    pub async fn internal(&self, claim: &BucketClaim, role: wire::Role) -> Result<Vec<Secret>> {
        let uid = claim.uid().unwrap_or_default();
        let selector = format!("{}={uid},{}={}", wire::CLAIM_UID, wire::ROLE, role.as_str());
        let list = self.secrets(&self.system).list(&ListParams::default().labels(&selector)).await;
        Ok(list.context("can't list the internal Secrets")?.items)
    }
}

/// Returns the reason of the condition `Ready` if the condition is about the claim's current
/// generation.
pub fn ready_reason(claim: &BucketClaim) -> Option<&str> {
    let ready = ready(claim)?;
    (ready.observed_generation == claim.metadata.generation).then_some(ready.reason.as_str())
}

/// Returns the message of the condition `Ready`; empty if there is none.
pub fn ready_message(claim: &BucketClaim) -> &str {
    ready(claim).map_or("", |ready| ready.message.as_str())
}

fn ready(claim: &BucketClaim) -> Option<&Condition> {
    claim.status.as_ref()?.conditions.iter().find(|condition| condition.type_ == "Ready")
}

fn json_merge(object: &mut Value, further: Value) {
    if let (Value::Object(fields), Value::Object(further)) = (object, further) {
        fields.extend(further);
    }
}
