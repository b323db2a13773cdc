//! The definitions on a real server.

use anyhow::{Context as _, Result, bail, ensure};
use http::{Request, header};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use kube::client::Body;
use kube::runtime::wait::conditions;
use serde_json::Value;
use stowage_operator::api;

use crate::testbed::Testbed;

pub(super) async fn play(testbed: &Testbed) -> Result<String> {
    for definition in api::crds() {
        let name = definition.name_any();
        let warnings = apply(testbed, &definition).await?;
        ensure!(warnings.is_empty(), "{name} is accepted with warnings: {}", warnings.join("; "));
        established(testbed, &name).await?;
    }
    Ok(format!("{} definitions applied without a warning, established", api::crds().len()))
}

/// Puts the definitions into the cluster. Returns the names of those that weren't there before.
pub(crate) async fn install(testbed: &Testbed) -> Result<Vec<String>> {
    let mut new = Vec::new();
    for definition in api::crds() {
        let name = definition.name_any();
        let found = definitions(testbed).get_opt(&name).await;
        if found.with_context(|| format!("can't read {name}"))?.is_none() {
            new.push(name.clone());
        }
        apply(testbed, &definition).await?;
        established(testbed, &name).await?;
    }
    Ok(new)
}

/// Takes the definitions of these names away, and with them all their objects.
pub(crate) async fn uninstall(testbed: &Testbed, names: &[String]) -> Result<()> {
    for name in names {
        let deleted = definitions(testbed).delete(name, &DeleteParams::default()).await;
        deleted.with_context(|| format!("can't delete {name}"))?;
    }
    Ok(())
}

pub(super) fn definitions(testbed: &Testbed) -> Api<CustomResourceDefinition> {
    Api::all(testbed.client.clone())
}

pub(super) async fn established(testbed: &Testbed, name: &str) -> Result<()> {
    let established = conditions::is_crd_established();
    testbed.wait(&definitions(testbed), name, "established", established).await.map(|_| ())
}

/// Server-side apply by hand, because the client doesn't show headers. Returns the warnings.
pub(super) async fn apply(testbed: &Testbed, definition: &CustomResourceDefinition) -> Result<Vec<String>> {
    let name = definition.name_any();
    let failed = || format!("can't apply {name}");
    let body = serde_json::to_vec(definition).with_context(failed)?;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let request = Request::patch(format!("{path}/{name}?fieldManager=stowage-e2e&force=true"))
        .header(header::CONTENT_TYPE, "application/apply-patch+yaml")
        .body(Body::from(body))
        .with_context(failed)?;
    let answer = testbed.client.send(request).await.with_context(failed)?;
    let (head, body) = answer.into_parts();
    let body = body.collect_bytes().await.with_context(failed)?;
    if !head.status.is_success() {
        let status: Value = serde_json::from_slice(&body).unwrap_or_default();
        bail!("{}: {}", failed(), status["message"].as_str().unwrap_or(head.status.as_str()));
    }
    let warnings = head.headers.get_all(header::WARNING).iter();
    Ok(warnings.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect())
}
