//! What one scenario makes for itself, and what it does with claims there.

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
use crate::failure::sentence;
use crate::gateway::Gateway;
use crate::objects::from_json;
use crate::operator::Operator;
use crate::rig::Rig;
use crate::store::Key;
use crate::testbed::Testbed;
use crate::way::Way;

/// The gateway that consumer Secrets name where a scenario has none.
pub(crate) const GATEWAY: &str = "http://gateway.stowage-e2e.invalid:9000";
/// Name of the admin Secret of each scenario's backend.
const ADMIN: &str = "store-admin";
/// Name of the Secret with which the gateway asks that backend's store.
const GATEWAYS: &str = "store-gateway";

/// One scenario's part of the testbed: an operator namespace with the admin Secret, a tenant
/// namespace, a backend.
pub(crate) struct Stage<'a> {
    pub(crate) testbed: &'a Testbed,
    pub(crate) system: String,
    pub(crate) tenant: String,
    pub(crate) backend: String,
}

impl Testbed {
    /// Makes what a scenario needs. Names begin with `prefix` and the scenario's name.
    pub(crate) async fn stage(&self, scenario: &str) -> Result<Stage<'_>> {
        let stage = self.stage_names(scenario);
        self.make_namespace(&stage.tenant).await?;
        if self.home().is_none() {
            self.make_home(&stage).await?;
        }
        stage.make_backend().await?;
        Ok(stage)
    }

    /// Makes the operator's namespace, with what it finds there.
    async fn make_home(&self, stage: &Stage<'_>) -> Result<()> {
        self.make_namespace(&stage.system).await?;
        self.make_key(stage, ADMIN, &self.operator_key).await?;
        let Some(rig) = &self.rig else { return Ok(()) };
        self.make_key(stage, GATEWAYS, rig.gateway_key()).await?;
        rig.admit(&self.client, &stage.system).await
    }

    /// Makes a Secret that backends may name, with a key for the store.
    async fn make_key(&self, stage: &Stage<'_>, name: &str, key: &Key) -> Result<()> {
        let Key { id, secret } = key;
        let secret: Secret = from_json(json!({
            "metadata": {
                "name": name,
                "labels": {wire::BACKEND_CREDENTIALS: "true"},
                "annotations": {wire::ENDPOINTS: self.endpoint},
            },
            "stringData": {"AWS_ACCESS_KEY_ID": id, "AWS_SECRET_ACCESS_KEY": secret},
        }));
        let made = stage.secrets(&stage.system).create(&PostParams::default(), &secret).await;
        made.with_context(|| format!("can't make the Secret {name}")).map(|_| ())
    }

    fn home(&self) -> Option<&'static str> {
        self.rig.as_ref().and_then(Rig::home)
    }

    fn stage_names(&self, scenario: &str) -> Stage<'_> {
        let base = format!("{}-{scenario}", self.prefix);
        let system = self.home().map_or_else(|| format!("{base}-system"), str::to_owned);
        let tenant = format!("{base}-tenant");
        Stage { testbed: self, system, tenant, backend: base }
    }
}

impl Stage<'_> {
    /// Secrets of a namespace.
    pub(crate) fn secrets(&self, namespace: &str) -> Api<Secret> {
        Api::namespaced(self.testbed.client.clone(), namespace)
    }

    /// Claims of the tenant, as the tenant.
    pub(crate) fn claims(&self) -> Api<BucketClaim> {
        Api::namespaced(self.testbed.tenant.clone(), &self.tenant)
    }

    /// All backends.
    pub(crate) fn backends(&self) -> Api<S3Backend> {
        Api::all(self.testbed.client.clone())
    }

    /// Makes this stage's backend.
    pub(crate) async fn make_backend(&self) -> Result<()> {
        let mut backend = json!({
            "apiVersion": "broker.stowage.io/v1alpha1", "kind": "S3Backend", "metadata": {"name": self.backend},
            "spec": {
                "endpoint": self.testbed.endpoint, "region": self.testbed.store.region,
                "adminCredentialsSecretRef": {"name": ADMIN, "namespace": self.system},
            },
        });
        // Only in a cluster of the harness' own there are gateways, and a key for them.
        if self.testbed.rig.is_some() {
            let gateways = json!({"name": GATEWAYS, "namespace": self.system});
            json_merge(&mut backend["spec"], json!({"gatewayCredentialsSecretRef": gateways}));
        }
        let made = self.backends().create(&PostParams::default(), &from_json(backend)).await;
        made.context("can't make the S3Backend").map(|_| ())
    }

    /// Starts the operator with this stage's operator namespace.
    pub(crate) async fn start_operator(&self, further: &[&str]) -> Result<Operator> {
        self.start_operator_behind(GATEWAY, further).await
    }

    /// Starts the operator with this stage's operator namespace, for tenants of this gateway.
    pub(crate) async fn start_operator_behind(&self, gateway: &str, further: &[&str]) -> Result<Operator> {
        if let Some(rig) = &self.testbed.rig {
            rig.way.new_operator().await?;
        }
        self.launch(&[], gateway, further).await
    }

    /// Starts an operator beside the one that runs.
    pub(crate) async fn start_another_operator(&self, further: &[&str]) -> Result<Operator> {
        self.launch(&[], GATEWAY, further).await
    }

    /// Has the operator's program tell something as a command, with what an operator of this stage
    /// is told. Returns its exit code and what it printed.
    pub(crate) async fn ask(&self, words: &[&str]) -> Result<(Option<i32>, String)> {
        self.testbed.launcher.ask(&self.system, words).await
    }

    /// Starts the operator with a clock that is so many days ahead.
    pub(crate) async fn start_operator_ahead(&self, clock: &FakeClock, days: u32) -> Result<Operator> {
        self.way()?.new_operator().await?;
        self.launch(&clock.ahead(days), GATEWAY, &[]).await
    }

    async fn launch(&self, under: &[String], gateway: &str, further: &[&str]) -> Result<Operator> {
        let arguments = [&["--gateway-endpoint", gateway], further].concat();
        self.testbed.launcher.start(under, &self.system, &arguments, &self.testbed.log).await
    }

    /// Starts a gateway for this stage's tenants, of whom nobody has to hear of its end.
    pub(crate) async fn start_gateway(&self) -> Result<Gateway> {
        self.start_gateway_that_drains(0).await
    }

    /// The same of one that takes connections for so many seconds once it is told to end, where it
    /// is a process.
    pub(crate) async fn start_gateway_that_drains(&self, seconds: u64) -> Result<Gateway> {
        self.rig()?.gateway(&self.system, seconds, self.testbed.patience).await
    }

    /// The same with a proxy between it and the store.
    pub(crate) async fn start_gateway_behind_proxy(&self) -> Result<Gateway> {
        self.rig()?.gateway_behind_proxy(&self.system, self.testbed.patience).await
    }

    fn rig(&self) -> Result<&Rig> {
        self.testbed.rig.as_ref().context("there is a gateway only in a cluster of the harness' own")
    }

    /// The operator's way to its servers, for scenarios that are played only where there is one.
    pub(crate) fn way(&self) -> Result<&Way> {
        self.way_if_any().context("faults happen only before a cluster of the harness' own")
    }

    /// The same; `None` where cluster and store are not the harness' own.
    pub(crate) fn way_if_any(&self) -> Option<&Way> {
        self.testbed.rig.as_ref().map(|rig| &rig.way)
    }

    /// Plays `scenario` as long as the operator runs; a failure tells the last lines of its log. An
    /// operator that is to die by a plan is killed, and started again.
    pub(crate) async fn under<T>(
        &self,
        operator: &mut Operator,
        scenario: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let mut scenario = pin!(scenario);
        loop {
            tokio::select! {
                outcome = &mut scenario => return outcome.map_err(|why| match self.testbed.log.tail() {
                    lines if lines.is_empty() => why,
                    lines => anyhow!("{}; the operator's log ends: {}", sentence(&why), lines.join(" | ")),
                }),
                way = self.death() => {
                    let way = way?;
                    operator.die().await?;
                    way.new_operator().await?;
                    operator.start_again().await?;
                    way.crashed();
                }
                why = operator.ended() => return Err(why),
            }
        }
    }

    /// Comes to an end when the operator is to die by a plan.
    async fn death(&self) -> Result<&Way> {
        match &self.testbed.rig {
            Some(rig) => rig.way.death().await.map(|()| &rig.way),
            None => std::future::pending().await,
        }
    }

    /// Makes a claim on this stage's backend, with these further fields of its spec.
    pub(crate) async fn claim(&self, name: &str, further: Value) -> Result<BucketClaim> {
        let mut claim = json!({
            "apiVersion": "broker.stowage.io/v1alpha1", "kind": "BucketClaim", "metadata": {"name": name},
            "spec": {"backendRef": {"name": self.backend}},
        });
        json_merge(&mut claim["spec"], further);
        let made = self.claims().create(&PostParams::default(), &from_json(claim)).await;
        made.with_context(|| format!("can't make claim {name}"))
    }

    /// Waits until a claim is Ready for its current generation.
    pub(crate) async fn ready(&self, name: &str) -> Result<BucketClaim> {
        self.shows(name, "Bound").await
    }

    /// Waits until the condition `Ready` of a claim has this reason, for its current generation.
    pub(crate) async fn shows(&self, name: &str, reason: &'static str) -> Result<BucketClaim> {
        let condition = |claim: Option<&BucketClaim>| claim.is_some_and(|claim| ready_reason(claim) == Some(reason));
        let found = self.testbed.wait(&self.claims(), name, reason, condition).await?;
        found.with_context(|| format!("claim {name} is gone"))
    }

    /// Edits a claim by a merge patch.
    pub(crate) async fn patch(&self, name: &str, patch: Value) -> Result<()> {
        let patched = self.claims().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.with_context(|| format!("can't patch claim {name}")).map(|_| ())
    }

    /// Asks for a claim's deletion.
    pub(crate) async fn ask_to_delete(&self, name: &str) -> Result<()> {
        let deleted = self.claims().delete(name, &DeleteParams::default()).await;
        deleted.with_context(|| format!("can't delete claim {name}")).map(|_| ())
    }

    /// Waits until a claim is gone.
    pub(crate) async fn gone(&self, claim: &BucketClaim) -> Result<()> {
        let (name, uid) = (claim.name_any(), claim.uid().unwrap_or_default());
        self.testbed.wait(&self.claims(), &name, "gone", is_deleted(&uid)).await.map(|_| ())
    }

    /// Deletes a claim and waits until it is gone.
    pub(crate) async fn delete(&self, claim: &BucketClaim) -> Result<()> {
        self.ask_to_delete(&claim.name_any()).await?;
        self.gone(claim).await
    }

    /// Checks that no internal Secret of a claim is left.
    pub(crate) async fn nothing_left(&self, claim: &BucketClaim) -> Result<()> {
        for role in [wire::Role::BucketRecord, wire::Role::VirtualCredential, wire::Role::AnonymousBinding] {
            let left = self.internal(claim, role).await?.len();
            ensure!(left == 0, "{left} Secrets of role {} of {} are left", role.as_str(), claim.name_any());
        }
        Ok(())
    }

    /// Waits until no internal Secret of a claim with one of these roles is left.
    pub(crate) async fn swept(&self, claim: &BucketClaim, roles: &[wire::Role]) -> Result<()> {
        for role in roles {
            while let Some(left) = self.internal(claim, *role).await?.first() {
                let (secrets, uid) = (self.secrets(&self.system), left.uid().unwrap_or_default());
                self.testbed.wait(&secrets, &left.name_any(), "swept", is_deleted(&uid)).await?;
            }
        }
        Ok(())
    }

    /// Internal Secrets of a claim with this role.
    pub(crate) async fn internal(&self, claim: &BucketClaim, role: wire::Role) -> Result<Vec<Secret>> {
        let uid = claim.uid().unwrap_or_default();
        let selector = format!("{}={uid},{}={}", wire::CLAIM_UID, wire::ROLE, role.as_str());
        let list = self.secrets(&self.system).list(&ListParams::default().labels(&selector)).await;
        Ok(list.context("can't list the internal Secrets")?.items)
    }
}

/// Reason of the condition `Ready`, if it speaks of the claim's current generation.
pub(crate) fn ready_reason(claim: &BucketClaim) -> Option<&str> {
    let ready = ready(claim)?;
    (ready.observed_generation == claim.metadata.generation).then_some(ready.reason.as_str())
}

/// Message of the condition `Ready`; empty if there is none.
pub(crate) fn ready_message(claim: &BucketClaim) -> &str {
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
