//! A typical chart: its rendered objects are applied, and each of its containers finds its
//! environment in ConfigMap and Secret.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;
use stowage_testbed::environment::setup::Setup;
use stowage_testbed::objects::text;

use super::claims::{App, bound, claims, config_maps, gone};

const MANIFESTS: &str = include_str!("../../../obc/chart.yaml");
/// The ObjectBucketClaim in the manifests.
const CLAIM: &str = "gallery-bucket";

/// Applies the chart with this storage class, and makes the requests of its containers.
pub(super) async fn play(setup: &Setup<'_>, class: &str) -> Result<()> {
    let mut containers = Vec::new();
    for mut document in stowage_world::parse("chart.yaml", MANIFESTS)? {
        document.object.metadata.namespace = Some(setup.tenant.clone());
        // As a value of the chart would set it.
        if let Some(of_claim) = document.object.data.pointer_mut("/spec/storageClassName") {
            *of_claim = class.into();
        }
        let applied = stowage_world::apply(&setup.environment.client, &document).await;
        containers.extend(containers_of(&applied?));
    }
    ensure!(containers.len() == 3, "the chart has {} containers", containers.len());
    bound(setup, CLAIM).await?;
    for (name, container) in &containers {
        let env = environment(setup, container).await.with_context(|| format!("container {name}"))?;
        let endpoint = expanded("http://$(BUCKET_HOST):$(BUCKET_PORT)", &env);
        ensure!(env.get("S3_ENDPOINT") == Some(&endpoint), "S3_ENDPOINT of {name} is {:?}", env.get("S3_ENDPOINT"));
        App::of(&env)?.round_trip().await.with_context(|| format!("container {name}"))?;
    }
    let claim = claims(setup).get(CLAIM).await.context("no claim")?;
    gone(setup, &claim).await
}

/// Returns the containers of an object's pod template, by name.
fn containers_of(object: &DynamicObject) -> Vec<(String, Value)> {
    let pod = &object.data["spec"]["template"]["spec"];
    let all = [&pod["initContainers"], &pod["containers"]].into_iter().filter_map(Value::as_array).flatten();
    let name = |container: &Value| format!("{} of {}", container["name"], object.name_any());
    all.map(|container| (name(container), container.clone())).collect()
}

/// Returns a container's environment, built as by the kubelet: first `envFrom`, then `env`, which
/// may refer to other variables. A reference to a missing object is an error, as it would keep the
/// container from starting.
async fn environment(setup: &Setup<'_>, container: &Value) -> Result<BTreeMap<String, String>> {
    let mut env = BTreeMap::new();
    for source in container["envFrom"].as_array().into_iter().flatten() {
        if let Some(name) = source["configMapRef"]["name"].as_str() {
            env.extend(config_map(setup, name).await?);
        }
        if let Some(name) = source["secretRef"]["name"].as_str() {
            env.extend(secret(setup, name).await?);
        }
    }
    for variable in container["env"].as_array().into_iter().flatten() {
        let name = variable["name"].as_str().context("a variable without a name")?;
        let from = &variable["valueFrom"];
        let (config, key) = (&from["configMapKeyRef"], &from["secretKeyRef"]);
        let source = match (config["name"].as_str(), key["name"].as_str()) {
            (Some(of), _) => config_map(setup, of).await?.remove(config["key"].as_str().unwrap_or_default()),
            (None, Some(of)) => secret(setup, of).await?.remove(key["key"].as_str().unwrap_or_default()),
            (None, None) => variable["value"].as_str().map(|value| expanded(value, &env)),
        };
        env.insert(name.to_owned(), source.with_context(|| format!("{name} refers to nothing"))?);
    }
    Ok(env)
}

/// Replaces `$(NAME)` in a value.
fn expanded(value: &str, env: &BTreeMap<String, String>) -> String {
    env.iter().fold(value.to_owned(), |value, (name, with)| value.replace(&format!("$({name})"), with))
}

async fn config_map(setup: &Setup<'_>, name: &str) -> Result<BTreeMap<String, String>> {
    let found = config_maps(setup).get(name).await.with_context(|| format!("no ConfigMap {name}"))?;
    Ok(found.data.unwrap_or_default())
}

async fn secret(setup: &Setup<'_>, name: &str) -> Result<BTreeMap<String, String>> {
    let found = setup.secrets(&setup.tenant).get(name).await.with_context(|| format!("no Secret {name}"))?;
    let names = found.data.iter().flatten().map(|(name, _)| name.clone());
    Ok(names.map(|name| (name.clone(), text(&found, &name))).collect())
}
