//! The cluster that scenarios work on, and what one scenario makes in it.

use std::fmt::Debug;
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;
use kube::runtime::wait::{Condition, await_condition, conditions::is_deleted};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stowage_operator::api::{BucketClaim, S3Backend, wire};
use stowage_sim::serve::Server;
use tokio::time::timeout;

use crate::control_plane::User;
use crate::operator::{Log, Operator};
use crate::rig::Rig;
use crate::store::{Key, Store};

/// The gateway that consumer Secrets name where a scenario has none.
pub(crate) const GATEWAY: &str = "http://gateway.stowage-e2e.invalid:9000";
/// Name of the admin Secret of each scenario's backend.
const ADMIN: &str = "store-admin";

/// What scenarios that are played one after the other share.
pub(crate) struct World {
    /// The administrator's client.
    pub(crate) client: Client,
    /// The tenants' client.
    pub(crate) tenant: Client,
    /// How the operator finds the cluster.
    pub(crate) kubeconfig: PathBuf,
    pub(crate) context: Option<String>,
    pub(crate) store: Store,
    /// The key that the operator has for the store.
    pub(crate) operator_key: Key,
    /// The operator's program, and arguments that come before `run`.
    pub(crate) command: Vec<String>,
    /// For each thing waited for.
    pub(crate) patience: Duration,
    /// What every name made in this run begins with.
    pub(crate) prefix: String,
    /// What the operators of the present scenario have logged.
    pub(crate) log: Log,
    /// The cluster and the store, where they are the harness' own.
    pub(crate) rig: Option<Rig>,
}

/// One scenario's part of the world: an operator namespace with the admin Secret, a tenant namespace, a backend.
pub(crate) struct Stage<'a> {
    pub(crate) world: &'a World,
    pub(crate) system: String,
    pub(crate) tenant: String,
    pub(crate) backend: String,
}

/// Turns an error into a sentence.
pub(crate) fn explain<T>(what: impl std::fmt::Display, result: kube::Result<T>) -> Result<T, String> {
    result.map_err(|error| match error {
        kube::Error::Api(status) => format!("{what}: {}", status.message),
        other => format!("{what}: {other}"),
    })
}

impl World {
    /// Makes what a scenario needs. Names begin with `prefix` and the scenario's name.
    pub(crate) async fn stage(&self, scenario: &str) -> Result<Stage<'_>, String> {
        let stage = self.stage_names(scenario);
        for namespace in [&stage.system, &stage.tenant] {
            self.make_namespace(namespace).await?;
        }
        let Key { id, secret } = &self.operator_key;
        let secret: Secret = from_json(json!({
            "metadata": {"name": ADMIN},
            "stringData": {"AWS_ACCESS_KEY_ID": id, "AWS_SECRET_ACCESS_KEY": secret},
        }));
        explain(
            "can't make the admin Secret",
            stage.secrets(&stage.system).create(&PostParams::default(), &secret).await,
        )?;
        stage.make_backend().await?;
        Ok(stage)
    }

    /// A scenario begins.
    pub(crate) fn begin(&mut self) -> Result<(), String> {
        self.log.clear();
        self.rig.as_mut().map_or(Ok(()), Rig::begin)
    }

    /// Judges the scenario that was played by what can be seen from outside.
    pub(crate) fn judge(&mut self) -> Result<(), String> {
        let told = self.log.lines().iter().any(|line| line.contains(&self.operator_key.secret));
        check(!told, || "the store's secret key is in the operator's log".to_owned())?;
        self.rig.as_mut().map_or(Ok(()), Rig::judge)
    }

    /// Fails when the operator has changed anything in this bucket during the scenario. Only a store of the harness'
    /// own tells; about another, its state has to be enough.
    pub(crate) fn unchanged_by_operator(&self, bucket: &str) -> Result<(), String> {
        let Some(rig) = &self.rig else { return Ok(()) };
        let changes = rig.operator_changes()?;
        let change = changes.iter().find(|change| change.bucket.as_deref() == Some(bucket));
        change.map_or(Ok(()), |change| Err(format!("the operator did {} in bucket {bucket}", change.operation)))
    }

    fn stage_names(&self, scenario: &str) -> Stage<'_> {
        let base = format!("{}-{scenario}", self.prefix);
        let (system, tenant) = (format!("{base}-system"), format!("{base}-tenant"));
        Stage { world: self, system, tenant, backend: base }
    }

    /// Makes a namespace.
    pub(crate) async fn make_namespace(&self, name: &str) -> Result<(), String> {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        let api: Api<Namespace> = Api::all(self.client.clone());
        explain(format!("can't make namespace {name}"), api.create(&PostParams::default(), &namespace).await)
            .map(|_| ())
    }

    /// Takes away everything whose name begins with the prefix of this run: claims (without waiting for an
    /// operator), backends, namespaces, buckets.
    pub(crate) async fn clean_up(&self) -> Result<(), String> {
        let mine = |name: &str| name.starts_with(&self.prefix);
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        for namespace in explain("clean-up", namespaces.list(&ListParams::default()).await)? {
            let name = namespace.name_any();
            if mine(&name) && namespace.metadata.deletion_timestamp.is_none() {
                remove_all(&Api::<BucketClaim>::namespaced(self.client.clone(), &name), |_| true).await?;
                explain("clean-up", unless_absent(namespaces.delete(&name, &DeleteParams::default()).await))?;
            }
        }
        remove_all(&Api::<S3Backend>::all(self.client.clone()), mine).await?;
        self.store.remove_all(&self.prefix).await
    }

    /// Waits until an object meets a condition, and returns it; `None` when it is gone.
    pub(crate) async fn wait<K>(
        &self,
        api: &Api<K>,
        name: &str,
        what: &str,
        condition: impl Condition<K>,
    ) -> Result<Option<K>, String>
    where
        K: Clone + Debug + Send + DeserializeOwned + Resource + 'static,
    {
        self.wait_for_up_to(self.patience, api, name, what, condition).await
    }

    /// The same for what takes its time by contract.
    pub(crate) async fn wait_for_up_to<K>(
        &self,
        limit: Duration,
        api: &Api<K>,
        name: &str,
        what: &str,
        condition: impl Condition<K>,
    ) -> Result<Option<K>, String>
    where
        K: Clone + Debug + Send + DeserializeOwned + Resource + 'static,
    {
        match timeout(limit, await_condition(api.clone(), name, condition)).await {
            Ok(Ok(object)) => Ok(object),
            Ok(Err(error)) => Err(format!("waiting for {name} {what}: {error}")),
            Err(_) => Err(format!("{name} was not {what} within {} s", limit.as_secs())),
        }
    }
}

/// Reads an object that stands in this crate's own source.
pub(crate) fn from_json<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("an object written in this crate is well formed")
}

/// Takes away the objects with these names, whatever finalizers they have.
async fn remove_all<K>(api: &Api<K>, mine: impl Fn(&str) -> bool) -> Result<(), String>
where
    K: Clone + Debug + DeserializeOwned + Resource,
{
    let objects = match api.list(&ListParams::default()).await {
        // The kind may not be served any more, or not yet.
        Err(error) if is_absent(&error) => return Ok(()),
        listed => explain("clean-up", listed)?,
    };
    for name in objects.iter().map(ResourceExt::name_any).filter(|name| mine(name)) {
        let no_finalizers = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        explain("clean-up", unless_absent(api.patch(&name, &PatchParams::default(), &no_finalizers).await))?;
        explain("clean-up", unless_absent(api.delete(&name, &DeleteParams::default()).await))?;
    }
    Ok(())
}

fn is_absent(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

fn unless_absent<T>(result: kube::Result<T>) -> kube::Result<()> {
    match result {
        Err(error) if !is_absent(&error) => Err(error),
        _ => Ok(()),
    }
}

impl Stage<'_> {
    /// Secrets of a namespace.
    pub(crate) fn secrets(&self, namespace: &str) -> Api<Secret> {
        Api::namespaced(self.world.client.clone(), namespace)
    }

    /// Claims of the tenant, as the tenant.
    pub(crate) fn claims(&self) -> Api<BucketClaim> {
        Api::namespaced(self.world.tenant.clone(), &self.tenant)
    }

    /// All backends.
    pub(crate) fn backends(&self) -> Api<S3Backend> {
        Api::all(self.world.client.clone())
    }

    /// Makes this stage's backend.
    pub(crate) async fn make_backend(&self) -> Result<(), String> {
        let backend = from_json(json!({
            "apiVersion": "broker.stowage.io/v1alpha1", "kind": "S3Backend", "metadata": {"name": self.backend},
            "spec": {
                "endpoint": self.world.store.endpoint, "region": self.world.store.region,
                "adminCredentialsSecretRef": {"name": ADMIN, "namespace": self.system},
            },
        }));
        let made = self.backends().create(&PostParams::default(), &backend).await;
        explain("can't make the S3Backend", made).map(|_| ())
    }

    /// Starts the operator with this stage's operator namespace.
    pub(crate) fn start_operator(&self, further: &[&str]) -> Result<Operator, String> {
        self.start_operator_behind(GATEWAY, further)
    }

    /// Starts the operator with this stage's operator namespace, for tenants of this gateway.
    pub(crate) fn start_operator_behind(&self, gateway: &str, further: &[&str]) -> Result<Operator, String> {
        let kubeconfig = self.world.kubeconfig.display().to_string();
        let mut arguments = vec!["run", "--kubeconfig", &kubeconfig, "--namespace", &self.system];
        if let Some(context) = &self.world.context {
            arguments.extend(["--context", context]);
        }
        arguments.extend(["--gateway-endpoint", gateway, "--admin-address", "127.0.0.1:0"]);
        arguments.extend(further);
        let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
        Operator::start(&self.world.command, &arguments, &self.world.log)
    }

    /// Starts a gateway for this stage's tenants.
    pub(crate) async fn start_gateway(&self) -> Result<Server, String> {
        let rig = self.world.rig.as_ref().ok_or("there is a gateway only on a control plane of the harness' own")?;
        let client = rig.plane.client(User::Gateway).await?;
        rig.simulated.gateway(client, &self.system, &self.backend, self.world.patience).await
    }

    /// Plays `scenario` as long as the operator runs; a failure tells the last lines of its log.
    pub(crate) async fn under<T>(
        &self,
        operator: &mut Operator,
        scenario: impl Future<Output = Result<T, String>>,
    ) -> Result<T, String> {
        tokio::select! {
            outcome = scenario => outcome.map_err(|why| match self.world.log.tail() {
                lines if lines.is_empty() => why,
                lines => format!("{why}; the operator's log ends: {}", lines.join(" | ")),
            }),
            why = operator.ended() => Err(why),
        }
    }

    /// Makes a claim on this stage's backend, with these further fields of its spec.
    pub(crate) async fn claim(&self, name: &str, further: Value) -> Result<BucketClaim, String> {
        let mut claim = json!({
            "apiVersion": "broker.stowage.io/v1alpha1", "kind": "BucketClaim", "metadata": {"name": name},
            "spec": {"backendRef": {"name": self.backend}},
        });
        json_merge(&mut claim["spec"], further);
        let made = self.claims().create(&PostParams::default(), &from_json(claim)).await;
        explain(format!("can't make claim {name}"), made)
    }

    /// Waits until a claim is Ready for its current generation.
    pub(crate) async fn ready(&self, name: &str) -> Result<BucketClaim, String> {
        self.shows(name, "Bound").await
    }

    /// Waits until the condition `Ready` of a claim has this reason, for its current generation.
    pub(crate) async fn shows(&self, name: &str, reason: &'static str) -> Result<BucketClaim, String> {
        let condition = |claim: Option<&BucketClaim>| claim.is_some_and(|claim| ready_reason(claim) == Some(reason));
        let found = self.world.wait(&self.claims(), name, reason, condition).await?;
        found.ok_or_else(|| format!("claim {name} is gone"))
    }

    /// Edits a claim by a merge patch.
    pub(crate) async fn patch(&self, name: &str, patch: Value) -> Result<(), String> {
        let patched = self.claims().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        explain(format!("can't patch claim {name}"), patched).map(|_| ())
    }

    /// Asks for a claim's deletion.
    pub(crate) async fn ask_to_delete(&self, name: &str) -> Result<(), String> {
        let deleted = self.claims().delete(name, &DeleteParams::default()).await;
        explain(format!("can't delete claim {name}"), deleted).map(|_| ())
    }

    /// Waits until a claim is gone.
    pub(crate) async fn gone(&self, claim: &BucketClaim) -> Result<(), String> {
        let (name, uid) = (claim.name_any(), claim.uid().unwrap_or_default());
        self.world.wait(&self.claims(), &name, "gone", is_deleted(&uid)).await.map(|_| ())
    }

    /// Deletes a claim and waits until it is gone.
    pub(crate) async fn delete(&self, claim: &BucketClaim) -> Result<(), String> {
        self.ask_to_delete(&claim.name_any()).await?;
        self.gone(claim).await
    }

    /// Checks that no internal Secret of a claim is left.
    pub(crate) async fn nothing_left(&self, claim: &BucketClaim) -> Result<(), String> {
        for role in [wire::Role::BucketRecord, wire::Role::VirtualCredential, wire::Role::AnonymousBinding] {
            let left = self.internal(claim, role).await?.len();
            check(left == 0, || format!("{left} Secrets of role {} of {} are left", role.as_str(), claim.name_any()))?;
        }
        Ok(())
    }

    /// Internal Secrets of a claim with this role.
    pub(crate) async fn internal(&self, claim: &BucketClaim, role: wire::Role) -> Result<Vec<Secret>, String> {
        let uid = claim.uid().unwrap_or_default();
        let selector = format!("{}={uid},{}={}", wire::CLAIM_UID, wire::ROLE, role.as_str());
        let list = self.secrets(&self.system).list(&ListParams::default().labels(&selector)).await;
        Ok(explain("can't list the internal Secrets", list)?.items)
    }
}

/// Reason of the condition `Ready`, if it speaks of the claim's current generation.
pub(crate) fn ready_reason(claim: &BucketClaim) -> Option<&str> {
    let conditions = &claim.status.as_ref()?.conditions;
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
    (ready.observed_generation == claim.metadata.generation).then_some(ready.reason.as_str())
}

/// The text of a Secret's field; empty when there is none.
pub(crate) fn text(secret: &Secret, key: &str) -> String {
    let bytes = secret.data.as_ref().and_then(|data| data.get(key));
    bytes.map(|bytes| String::from_utf8_lossy(&bytes.0).into_owned()).unwrap_or_default()
}

/// Fails with `why` unless `holds`.
pub(crate) fn check(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

fn json_merge(object: &mut Value, further: Value) {
    if let (Value::Object(fields), Value::Object(further)) = (object, further) {
        fields.extend(further);
    }
}
