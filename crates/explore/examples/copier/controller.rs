//! An ordinary controller: copies each ConfigMap labelled `copy: "true"` into the bucket `copies`,
//! and deletes the copy with it. Nothing in it depends on the simulation.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_s3::Client as S3;
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::{Controller, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

const FINALIZER: &str = "example.com/copier";
const BUCKET: &str = "copies";
/// Bounds a reconciliation, in case an answer never arrives.
const DEADLINE: Duration = Duration::from_secs(10);

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The moment at which the finalizer is set on an object that is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Before the copy is written, which is correct.
    FinalizerFirst,
    /// After the copy is written, which is a bug: an object deleted in between leaves its copy
    /// behind.
    CopyFirst,
}

struct Context {
    client: Client,
    store: S3,
    order: Order,
}

/// Runs the controller until it is dropped.
pub async fn run(client: Client, store: S3, order: Order) {
    let labelled = watcher::Config::default().labels("copy=true");
    let maps: Api<ConfigMap> = Api::all(client.clone());
    let reconcile = |map: Arc<ConfigMap>, context: Arc<Context>| async move {
        let done = tokio::time::timeout(DEADLINE, reconcile(&map, &context)).await;
        done.map_err(Error::from).flatten().map(|()| Action::await_change()).map_err(std::io::Error::other)
    };
    Controller::new(maps, labelled)
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(2)), Arc::new(Context { client, store, order }))
        .for_each(|_| std::future::ready(()))
        .await;
}

async fn reconcile(map: &ConfigMap, context: &Context) -> Result<(), Error> {
    let key = format!("{}/{}", map.namespace().unwrap_or_default(), map.name_any());
    let kept = map.finalizers().iter().any(|finalizer| finalizer == FINALIZER);
    if map.metadata.deletion_timestamp.is_some() {
        if kept {
            context.store.delete_object().bucket(BUCKET).key(&key).send().await?;
            keep(map, context, json!([])).await?;
        }
        return Ok(());
    }
    if !kept && context.order == Order::FinalizerFirst {
        // This change triggers another reconciliation.
        return keep(map, context, json!([FINALIZER])).await;
    }
    let content = serde_json::to_vec(&map.data)?;
    context.store.put_object().bucket(BUCKET).key(&key).body(content.into()).send().await?;
    if kept { Ok(()) } else { keep(map, context, json!([FINALIZER])).await }
}

/// Sets the finalizers, on condition that the object is still the version that was read.
async fn keep(map: &ConfigMap, context: &Context, finalizers: serde_json::Value) -> Result<(), Error> {
    let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), &map.namespace().unwrap_or_default());
    let (uid, version) = (&map.metadata.uid, &map.metadata.resource_version);
    let patch = json!({"metadata": {"finalizers": finalizers, "uid": uid, "resourceVersion": version}});
    maps.patch(&map.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}
