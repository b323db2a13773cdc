//! Server-side apply of objects of any kind.

use std::time::Duration;

use anyhow::{Context as _, Result};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Client, discovery};
use serde_json::Value;

use super::checks;

/// Time limit for expected reactions of the API server.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// Field manager of the objects that exist before the chart is installed.
pub(super) const BEFORE: &str = "kubectl";

/// Applies an object with the field manager [`BEFORE`].
pub(super) async fn apply(client: &Client, object: &Value) -> Result<DynamicObject> {
    put(client, object, &PatchParams::apply(BEFORE).force()).await
}

/// Applies an object with these parameters.
pub(super) async fn put(client: &Client, object: &Value, how: &PatchParams) -> Result<DynamicObject> {
    let (kind, name) = (checks::kind(object), checks::name(object));
    let api = api_of(client, object).await?;
    api.patch(name, how, &Patch::Apply(object)).await.with_context(|| format!("{kind} {name} is not taken"))
}

/// Returns the API for an object's kind and namespace.
pub(super) async fn api_of(client: &Client, object: &Value) -> Result<Api<DynamicObject>> {
    let kind = checks::kind(object);
    let (group, version) = match object["apiVersion"].as_str().unwrap_or_default().split_once('/') {
        Some(both) => both,
        None => ("", object["apiVersion"].as_str().unwrap_or_default()),
    };
    let asked = discovery::pinned_kind(client, &GroupVersionKind::gvk(group, version, kind)).await;
    let (resource, _) = asked.with_context(|| format!("there is no kind {kind}"))?;
    Ok(match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    })
}
