//! The environment of scenarios: a cluster, a store, and a way to start operators.

pub mod own_cluster;
pub mod setup;

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;
use kube::runtime::wait::{Condition, await_condition};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;
use stowage_operator::api::{BucketAccess, BucketClaim, ObjectBucket, ObjectBucketClaim, S3Backend, wire};
use stowage_world::effects::Plan;
use tokio::time::timeout;

use self::own_cluster::OwnCluster;
use crate::log::Log;
use crate::operator::Launcher;
use crate::store::{Key, Store};

/// State shared by scenarios that are played one after the other.
pub struct Environment {
    /// Client with the administrator's rights.
    pub client: Client,
    /// Client with the tenants' rights.
    pub tenant: Client,
    /// Client of the store, with the administrator's key.
    pub store: Store,
    /// URL of the store as the operator reaches it.
    pub endpoint: String,
    /// The operator's key for the store.
    pub operator_key: Key,
    /// Starts the operator under test.
    pub launcher: Launcher,
    /// Longest time to wait for each expected event.
    pub patience: Duration,
    /// Prefix of every name created in this run.
    pub prefix: String,
    /// Log of the operators of the current scenario.
    pub log: Log,
    /// Cluster and store, if the harness started them.
    pub own_cluster: Option<OwnCluster>,
    /// Faults in addition to the scenario's own.
    pub faults: Plan,
    /// True if the operator is to crash at every crash point of each effect.
    pub thorough: bool,
}

impl Environment {
    /// Begins a scenario that brings these faults; `like` names the simulator's scenario with the
    /// same steps.
    pub async fn begin(&mut self, own: Plan, like: Option<&'static str>) -> Result<()> {
        self.log.clear();
        let Some(own_cluster) = &mut self.own_cluster else { return Ok(()) };
        own_cluster.begin().await?;
        let entries = self.faults.entries.iter().cloned().chain(own.entries).collect();
        own_cluster.fault_proxy.begin(Plan { entries }, like).await
    }

    /// Checks the scenario that was just played, by its logs.
    pub async fn judge(&mut self) -> Result<()> {
        let told = self.log.lines().iter().any(|line| line.contains(&self.operator_key.secret));
        ensure!(!told, "the store's secret key is in the operator's log");
        let Some(own_cluster) = &mut self.own_cluster else { return Ok(()) };
        own_cluster.fault_proxy.all_met().await?;
        own_cluster.judge().await
    }

    /// Fails if the operator has changed anything in this bucket during the scenario. Only the log
    /// of the harness' own store shows that; with another store this checks nothing.
    pub async fn unchanged_by_operator(&self, bucket: &str) -> Result<()> {
        let Some(own_cluster) = &self.own_cluster else { return Ok(()) };
        let changes = own_cluster.operator_changes().await?;
        let change = changes.iter().find(|change| change.bucket.as_deref() == Some(bucket));
        match change {
            Some(change) => Err(anyhow!("the operator did {} in bucket {bucket}", change.operation)),
            None => Ok(()),
        }
    }

    /// Creates a namespace.
    pub async fn make_namespace(&self, name: &str) -> Result<()> {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        let api: Api<Namespace> = Api::all(self.client.clone());
        let made = api.create(&PostParams::default(), &namespace).await;
        made.with_context(|| format!("can't make namespace {name}")).map(|_| ())
    }

    /// Deletes everything with a name that begins with the prefix of this run: claims, accesses and
    /// ObjectBucketClaims (finalizers are removed, so that no operator is needed), backends,
    /// storage classes, namespaces and buckets. Also deletes the internal objects of an installed
    /// operator.
    pub async fn clean_up(&self) -> Result<()> {
        self.launcher.stop().await?;
        let mine = |name: &str| name.starts_with(&self.prefix);
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        for namespace in namespaces.list(&ListParams::default()).await.context("clean-up")? {
            let name = namespace.name_any();
            if mine(&name) && namespace.metadata.deletion_timestamp.is_none() {
                remove_all(&Api::<ObjectBucketClaim>::namespaced(self.client.clone(), &name), |_| true).await?;
                remove_all(&Api::<BucketAccess>::namespaced(self.client.clone(), &name), |_| true).await?;
                remove_all(&Api::<BucketClaim>::namespaced(self.client.clone(), &name), |_| true).await?;
                unless_absent(namespaces.delete(&name, &DeleteParams::default()).await).context("clean-up")?;
            }
        }
        let of_mine = |name: &str| name.strip_prefix("obc-").is_some_and(mine);
        remove_all(&Api::<ObjectBucket>::all(self.client.clone()), of_mine).await?;
        remove_all(&Api::<StorageClass>::all(self.client.clone()), mine).await?;
        remove_all(&Api::<S3Backend>::all(self.client.clone()), mine).await?;
        if let Some(home) = self.own_cluster.as_ref().and_then(OwnCluster::home) {
            let secrets: Api<Secret> = Api::namespaced(self.client.clone(), home);
            let internal = ListParams::default().labels(wire::ROLE);
            secrets.delete_collection(&DeleteParams::default(), &internal).await.context("clean-up")?;
        }
        Ok(self.store.remove_all(&self.prefix).await?)
    }

    /// Waits until an object meets a condition, and returns it; `None` if it is gone.
    pub async fn wait<K>(&self, api: &Api<K>, name: &str, what: &str, condition: impl Condition<K>) -> Result<Option<K>>
    where
        K: Clone + Debug + Send + DeserializeOwned + Resource + 'static,
    {
        self.wait_for_up_to(self.patience, api, name, what, condition).await
    }

    /// Like [`wait`](Self::wait), with its own time limit, for events that take longer by contract.
    pub async fn wait_for_up_to<K>(
        &self,
        limit: Duration,
        api: &Api<K>,
        name: &str,
        what: &str,
        condition: impl Condition<K>,
    ) -> Result<Option<K>>
    where
        K: Clone + Debug + Send + DeserializeOwned + Resource + 'static,
    {
        match timeout(limit, await_condition(api.clone(), name, condition)).await {
            Ok(waited) => waited.with_context(|| format!("waiting for {name} {what}")),
            Err(_) => Err(anyhow!("{name} was not {what} within {} s", limit.as_secs())),
        }
    }
}

/// Deletes the objects with matching names, whatever finalizers they have.
async fn remove_all<K>(api: &Api<K>, mine: impl Fn(&str) -> bool) -> Result<()>
where
    K: Clone + Debug + DeserializeOwned + Resource,
{
    let objects = match api.list(&ListParams::default()).await {
        // The kind may not be served.
        Err(error) if is_absent(&error) => return Ok(()),
        listed => listed.context("clean-up")?,
    };
    for name in objects.iter().map(ResourceExt::name_any).filter(|name| mine(name)) {
        let no_finalizers = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        unless_absent(api.patch(&name, &PatchParams::default(), &no_finalizers).await).context("clean-up")?;
        unless_absent(api.delete(&name, &DeleteParams::default()).await).context("clean-up")?;
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
