//! Installation of the project's CustomResourceDefinitions in a cluster.

use anyhow::{Context as _, Result, bail};
use http::{Request, header};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use kube::client::Body;
use kube::runtime::wait::conditions;
use serde_json::Value;
use stowage_operator::api;

use crate::environment::Environment;

/// Applies the definitions to the cluster. Returns the names of those that didn't exist before.
pub async fn install(environment: &Environment) -> Result<Vec<String>> {
    let mut new = Vec::new();
    for definition in api::crds() {
        let name = definition.name_any();
        let found = definitions(environment).get_opt(&name).await;
        if found.with_context(|| format!("can't read {name}"))?.is_none() {
            new.push(name.clone());
        }
        apply(environment, &definition).await?;
        established(environment, &name).await?;
    }
    Ok(new)
}

/// Deletes the definitions with these names, and with them all their objects.
pub async fn uninstall(environment: &Environment, names: &[String]) -> Result<()> {
    for name in names {
        let deleted = definitions(environment).delete(name, &DeleteParams::default()).await;
        deleted.with_context(|| format!("can't delete {name}"))?;
    }
    Ok(())
}

/// Returns the API of a cluster's definitions.
pub fn definitions(environment: &Environment) -> Api<CustomResourceDefinition> {
    Api::all(environment.client.clone())
}

/// Waits until a definition is established.
///
/// # Errors
/// Fails if that takes longer than the environment's patience.
pub async fn established(environment: &Environment, name: &str) -> Result<()> {
    let established = conditions::is_crd_established();
    environment.wait(&definitions(environment), name, "established", established).await.map(|_| ())
}

/// Applies a definition server-side and returns the API server's warnings. The request is built by
/// hand, because the client doesn't expose response headers.
pub async fn apply(environment: &Environment, definition: &CustomResourceDefinition) -> Result<Vec<String>> {
    let name = definition.name_any();
    let failed = || format!("can't apply {name}");
    let body = serde_json::to_vec(definition).with_context(failed)?;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let request = Request::patch(format!("{path}/{name}?fieldManager=stowage-e2e&force=true"))
        .header(header::CONTENT_TYPE, "application/apply-patch+yaml")
        .body(Body::from(body))
        .with_context(failed)?;
    let answer = environment.client.send(request).await.with_context(failed)?;
    let (head, body) = answer.into_parts();
    let body = body.collect_bytes().await.with_context(failed)?;
    if !head.status.is_success() {
        let status: Value = serde_json::from_slice(&body).unwrap_or_default();
        bail!("{}: {}", failed(), status["message"].as_str().unwrap_or(head.status.as_str()));
    }
    let warnings = head.headers.get_all(header::WARNING).iter();
    Ok(warnings.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect())
}
