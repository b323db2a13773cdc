//! Installation of the manifests of `kind-config/stage` in the cluster, with the images of this
//! run.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, LogParams, Patch, PatchParams};
use kube::runtime::wait::{await_condition, conditions::is_deployment_completed};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::settings::Settings;
use crate::store::Key;
use crate::tools;

/// The namespace of all installed objects.
pub const NAMESPACE: &str = "stowage-system";
/// Username of the operator's service account.
pub const SERVICE_ACCOUNT: &str = "system:serviceaccount:stowage-system:stowage-operator";
/// Username of the gateway's service account.
pub const GATEWAYS_ACCOUNT: &str = "system:serviceaccount:stowage-system:stowage-gateway";
/// The label that selects the pods of a Deployment.
const LABEL: &str = "app.kubernetes.io/name";
/// Deployments that run from the start; scenarios start operator and gateway.
const RUNNING: [&str; 2] = ["stowage-store", "stowage-proxy"];

/// Objects as kustomize renders them.
pub(super) struct Manifests(Vec<Value>);

/// The keys of the store.
pub struct Keys {
    pub operator: Key,
    pub gateway: Key,
    pub observer: Key,
}

impl Manifests {
    /// Renders `kind-config/stage`.
    pub(super) async fn render(directory: &Path) -> Result<Self> {
        let stage = directory.join("stage").display().to_string();
        Self::read(&tools::run("kubectl", &["kustomize", &stage]).await?)
    }

    fn read(rendered: &str) -> Result<Self> {
        let documents = stowage_world::parse("kind-config/stage", rendered)?;
        let objects = documents.into_iter().map(|document| serde_json::to_value(document.object));
        Ok(Self(objects.collect::<Result<_, _>>()?))
    }

    pub(super) fn keys(&self) -> Result<Keys> {
        let (operator, gateway) = (self.key("store-admin")?, self.key("store-gateway")?);
        Ok(Keys { operator, gateway, observer: self.key("store-observer")? })
    }

    fn key(&self, secret: &str) -> Result<Key> {
        let found = self.0.iter().find(|object| object["kind"] == "Secret" && object["metadata"]["name"] == secret);
        let text = |field: &str| found.and_then(|object| object["stringData"][field].as_str()).map(str::to_owned);
        match (text("AWS_ACCESS_KEY_ID"), text("AWS_SECRET_ACCESS_KEY")) {
            (Some(id), Some(secret)) => Ok(Key { id, secret }),
            _ => Err(anyhow!("the manifests have no key in a Secret {secret}")),
        }
    }

    /// Applies the objects, and waits until the Deployments that are to run are complete.
    pub(super) async fn install(
        self,
        settings: &Settings,
        kubeconfig: &str,
        client: &Client,
        patience: Duration,
    ) -> Result<()> {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": self.of(settings)}).to_string();
        let apply = ["--kubeconfig", kubeconfig, "apply", "--server-side", "-f", "-"];
        tools::feed("kubectl", &apply, Some(&list)).await?;
        for name in RUNNING {
            completed(client, name, patience).await?;
        }
        Ok(())
    }

    /// Returns the objects of a run: with the images of this run, with operator and gateway scaled
    /// to zero, and without a backend, because each scenario creates one.
    fn of(self, settings: &Settings) -> Vec<Value> {
        let mut objects = self.0;
        objects.retain(|object| object["kind"] != "S3Backend");
        for deployment in objects.iter_mut().filter(|object| object["kind"] == "Deployment") {
            let name = deployment["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let image = match &*name {
                "stowage-operator" => &settings.operator_image,
                "stowage-gateway" => &settings.gateway_image,
                _ => &settings.sim_image,
            };
            deployment["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
            deployment["spec"]["replicas"] = json!(u8::from(RUNNING.contains(&&*name)));
        }
        objects
    }
}

/// Patches a Deployment, and waits until its rollout is complete.
pub(super) async fn change(client: &Client, name: &str, change: Value, patience: Duration) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    let patched = deployments.patch(name, &PatchParams::default(), &Patch::Strategic(change)).await;
    patched.with_context(|| format!("can't change Deployment {name}"))?;
    completed(client, name, patience).await
}

async fn completed(client: &Client, name: &str, patience: Duration) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    let waited = timeout(patience, await_condition(deployments, name, is_deployment_completed())).await;
    let waited = waited.map_err(|_| anyhow!("{name} did not run within {} s", patience.as_secs()))?;
    waited.map(|_| ()).with_context(|| format!("waiting for {name}"))
}

/// Returns the label selector for the pods of a Deployment.
pub(super) fn pods_of(name: &str) -> String {
    format!("{LABEL}={name}")
}

/// Returns the log of a Deployment's pod.
pub(super) async fn log(client: &Client, name: &str) -> Result<String> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let listed = pods.list(&ListParams::default().labels(&pods_of(name))).await.context("can't list pods")?;
    let pod = listed.items.first().with_context(|| format!("{name} has no pod"))?;
    let log = pods.logs(&pod.name_any(), &LogParams::default()).await;
    log.with_context(|| format!("can't read the log of {name}"))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const RENDERED: &str = "
apiVersion: v1
kind: Secret
metadata: {name: store-admin}
stringData: {AWS_ACCESS_KEY_ID: ID, AWS_SECRET_ACCESS_KEY: KEY}
---
apiVersion: broker.stowage.io/v1alpha1
kind: S3Backend
metadata: {name: main}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: stowage-operator}
spec: {replicas: 1, template: {spec: {containers: [{name: operator, image: 'stowage-operator:dev'}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: stowage-gateway}
spec: {replicas: 2, template: {spec: {containers: [{name: gateway, image: 'stowage-gateway:dev'}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: stowage-store}
spec: {replicas: 1, template: {spec: {containers: [{name: store, image: 'stowage-sim:dev'}]}}}
";

    #[test]
    fn a_run_has_its_own_images_and_backends_and_starts_its_operator_itself() {
        let settings = Settings {
            operator_image: "peer:1".to_owned(),
            gateway_image: "front:3".to_owned(),
            sim_image: "sim:2".to_owned(),
            node_image: None,
            manifests: PathBuf::new(),
            keep: false,
        };
        let objects = Manifests::read(RENDERED).unwrap().of(&settings);
        let told = |object: &Value| {
            let (name, spec) = (&object["metadata"]["name"], &object["spec"]);
            format!("{name} {} {}", spec["replicas"], spec["template"]["spec"]["containers"][0]["image"])
        };
        let told: Vec<String> = objects.iter().map(told).collect();
        let expected = [
            "\"store-admin\" null null",
            "\"stowage-operator\" 0 \"peer:1\"",
            "\"stowage-gateway\" 0 \"front:3\"",
            "\"stowage-store\" 1 \"sim:2\"",
        ];
        assert_eq!(told, expected);
    }

    /// Renders the project's manifests with kubectl; `None` on a machine without it.
    async fn rendered() -> Option<Manifests> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kind-config");
        match Manifests::render(&directory).await {
            Err(why) if why.to_string().contains("can't start kubectl") => None,
            rendered => Some(rendered.unwrap()),
        }
    }

    #[tokio::test]
    async fn the_stage_has_a_gateway_whose_calls_the_proxy_lets_pass() {
        let Some(manifests) = rendered().await else { return };
        let keys = manifests.keys().unwrap();
        assert!(keys.gateway.id != keys.operator.id && keys.gateway.id != keys.observer.id);
        let of_kind = |kind: &str, name: &str| {
            let is_it = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
            manifests.0.iter().find(is_it).unwrap_or_else(|| panic!("there is no {kind} {name}"))
        };
        let container = |name: &str| &of_kind("Deployment", name)["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container("stowage-gateway")["image"], "stowage-gateway:dev");
        let passes = container("stowage-proxy")["env"].as_array().unwrap().iter();
        let passes: Vec<&Value> = passes.filter(|variable| variable["name"] == "STOWAGE_UNNUMBERED_KEY").collect();
        assert_eq!(passes.len(), 1);
        assert_eq!(passes[0]["valueFrom"]["secretKeyRef"]["name"], "store-gateway");
        let backend = &of_kind("S3Backend", "main")["spec"];
        assert_eq!(backend["gatewayCredentialsSecretRef"]["name"], "store-gateway");
        let opted_in = &of_kind("Secret", "store-gateway")["metadata"]["annotations"]["broker.stowage.io/endpoints"];
        assert_eq!(*opted_in, backend["endpoint"]);
        for kind in ["PodDisruptionBudget", "NetworkPolicy", "ServiceAccount", "Role", "ClusterRole"] {
            of_kind(kind, "stowage-gateway");
        }
    }

    #[test]
    fn keys_are_those_of_the_manifests() {
        let manifests = Manifests::read(RENDERED).unwrap();
        let key = manifests.key("store-admin").unwrap();
        assert_eq!((&*key.id, &*key.secret), ("ID", "KEY"));
        assert!(manifests.keys().is_err_and(|why| why.to_string().contains("store-gateway")));
    }
}
