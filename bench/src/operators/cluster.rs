//! A cluster as seen from outside: objects of all kinds, as JSON.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Error};
use serde_json::Value;
use stowage_testbed::failure::sentence;
use tokio::time::{Instant, sleep};

/// The harness' name as a field manager.
const MANAGER: &str = "stowage-e2e";
/// Longest time to wait for each expected event.
const PATIENCE: Duration = Duration::from_secs(60);
/// Polling interval.
const LOOK: Duration = Duration::from_millis(50);

/// Kinds of objects in the checks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Website,
    BucketClaim,
    ConfigMap,
    Secret,
    Namespace,
    Lease,
    /// The core group's kind.
    CoreEvent,
    Event,
    Definition,
}

impl Kind {
    fn resource(self) -> ApiResource {
        let (group, version, kind) = match self {
            Self::Website => ("example.org", "v1", "Website"),
            Self::BucketClaim => ("broker.stowage.io", "v1alpha1", "BucketClaim"),
            Self::ConfigMap => ("", "v1", "ConfigMap"),
            Self::Secret => ("", "v1", "Secret"),
            Self::Namespace => ("", "v1", "Namespace"),
            Self::Lease => ("coordination.k8s.io", "v1", "Lease"),
            Self::CoreEvent => ("", "v1", "Event"),
            Self::Event => ("events.k8s.io", "v1", "Event"),
            Self::Definition => ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        };
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
    }
}

/// Kind, namespace (empty for a cluster-scoped object) and name of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a>(pub(super) Kind, pub(super) &'a str, pub(super) &'a str);

/// An API server, with the administrator's rights.
#[derive(Clone)]
pub(super) struct Cluster(pub(super) Client);

impl Cluster {
    fn api(&self, kind: Kind, namespace: &str) -> Api<DynamicObject> {
        match namespace {
            "" => Api::all_with(self.0.clone(), &kind.resource()),
            namespace => Api::namespaced_with(self.0.clone(), namespace, &kind.resource()),
        }
    }

    pub(super) async fn get(&self, place: Place<'_>) -> Result<Option<Value>> {
        let Place(kind, namespace, name) = place;
        let found = self.api(kind, namespace).get_opt(name).await.with_context(|| format!("can't read {place:?}"))?;
        found.map(json).transpose()
    }

    /// Lists the objects of a kind that match a field selector.
    pub(super) async fn list(&self, kind: Kind, namespace: &str, fields: &str) -> Result<Vec<Value>> {
        let params = ListParams::default().fields(fields);
        let found = self.api(kind, namespace).list(&params).await.with_context(|| format!("can't list {kind:?}"))?;
        found.items.into_iter().map(json).collect()
    }

    /// Applies this object, which has no kind, server-side.
    pub(super) async fn apply(&self, place: Place<'_>, content: Value) -> Result<()> {
        self.patch(place, content, false).await
    }

    /// Applies this status server-side.
    pub(super) async fn apply_status(&self, place: Place<'_>, content: Value) -> Result<()> {
        self.patch(place, content, true).await
    }

    async fn patch(&self, place: Place<'_>, mut content: Value, is_status: bool) -> Result<()> {
        let Place(kind, namespace, name) = place;
        let resource = kind.resource();
        content["apiVersion"] = resource.api_version.into();
        content["kind"] = resource.kind.into();
        content["metadata"]["name"] = name.into();
        let (api, params) = (self.api(kind, namespace), PatchParams::apply(MANAGER).force());
        let patch = Patch::Apply(&content);
        let done = match is_status {
            true => api.patch_status(name, &params, &patch).await,
            false => api.patch(name, &params, &patch).await,
        };
        done.map(drop).with_context(|| format!("can't apply {place:?}"))
    }

    pub(super) async fn delete(&self, place: Place<'_>, params: DeleteParams) -> Result<()> {
        let Place(kind, namespace, name) = place;
        let done = self.api(kind, namespace).delete(name, &params).await;
        done.map(drop).with_context(|| format!("can't delete {place:?}"))
    }

    /// Increments a field of a ConfigMap like other concurrent writers: reads it, writes it with
    /// the version that was read, and retries after a conflict. Returns the number of conflicts.
    pub(super) async fn count(&self, namespace: &str, name: &str, field: &str) -> Result<usize> {
        let api = self.api(Kind::ConfigMap, namespace);
        let failed = || format!("can't count in {name}");
        let mut conflicts = 0;
        loop {
            let found = api.get_opt(name).await.with_context(failed)?;
            let is_there = found.is_some();
            let mut map = found.unwrap_or_else(|| DynamicObject::new(name, &Kind::ConfigMap.resource()));
            let count: u64 = map.data["data"][field].as_str().map_or(Ok(0), str::parse).with_context(failed)?;
            map.data["data"][field] = (count + 1).to_string().into();
            let written = match is_there {
                true => api.replace(name, &PostParams::default(), &map).await,
                false => api.create(&PostParams::default(), &map).await,
            };
            match written {
                Ok(_) => return Ok(conflicts),
                Err(Error::Api(status)) if status.code == 409 => conflicts += 1,
                Err(error) => return Err(error).with_context(failed),
            }
        }
    }
}

fn json(object: DynamicObject) -> Result<Value> {
    serde_json::to_value(object).context("an object is no JSON")
}

/// Polls until `look` returns a value. Errors are retried, because the server may be starting.
///
/// # Errors
/// Fails after a time limit, with a description of the expected event and the last error.
pub(super) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
    let begun = Instant::now();
    loop {
        let seen = look().await;
        if let Ok(Some(found)) = seen {
            return Ok(found);
        }
        if begun.elapsed() > PATIENCE {
            let why = seen.err().map_or_else(String::new, |error| format!(": {}", sentence(&error)));
            return Err(anyhow!("{what}: not within {} s{why}", PATIENCE.as_secs()));
        }
        sleep(LOOK).await;
    }
}
