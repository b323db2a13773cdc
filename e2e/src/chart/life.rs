//! The chart on a real API server: installed over the objects of `kubectl apply -k`, upgraded and
//! uninstalled. No pod runs there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use kube::api::{DynamicObject, PatchParams, ValidationDirective};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use stowage_operator::api::{self, GROUP};
use stowage_testbed::console::print;

use super::apply::{BEFORE, api_of, apply, put};
use super::helm::{Helm, NAMESPACE, RELEASE};
use super::values::Values;
use super::{checks, policies};

/// Kinds of the Prometheus operator, which this API server doesn't serve.
const OF_PROMETHEUS: [&str; 2] = ["PrometheusRule", "ServiceMonitor"];

/// Creates the CustomResourceDefinitions, and the namespaces that charts use.
pub(super) async fn prepare(client: &Client, namespaces: &[&str]) -> Result<()> {
    for definition in api::crds() {
        apply(client, &serde_json::to_value(definition)?).await?;
    }
    for name in [NAMESPACE].iter().chain(namespaces) {
        // The label that kind-config sets.
        let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        apply(client, &namespace).await?;
    }
    Ok(())
}

/// Applies objects as a dry run, with strict validation. Skips kinds that the API server doesn't
/// serve. Returns the number of accepted objects.
pub(super) async fn dry_run(client: &Client, objects: &[Value]) -> Result<usize> {
    let mut taken = 0;
    for object in objects {
        if OF_PROMETHEUS.contains(&checks::kind(object)) {
            continue;
        }
        let mut how = PatchParams::apply(BEFORE).dry_run().force();
        how.field_validation = Some(ValidationDirective::Strict);
        put(client, object, &how).await?;
        taken += 1;
    }
    Ok(taken)
}

/// A chart with its values and a cluster to install it in.
pub(super) struct Life<'a> {
    pub(super) helm: &'a Helm,
    pub(super) chart: &'a Path,
    pub(super) values: &'a Values,
    pub(super) kubeconfig: PathBuf,
    pub(super) client: Client,
    /// True if helm is to wait until workloads are ready.
    pub(super) waits: bool,
}

/// UIDs of objects, by kind and name.
type Uids = BTreeMap<String, Option<String>>;

impl Life<'_> {
    /// Installs it over these objects, upgrades it and uninstalls it; claims survive all of it.
    pub(super) async fn play(&self, manifests: Vec<Value>) -> Result<()> {
        for object in &manifests {
            apply(&self.client, object).await?;
        }
        let claims = self.claims().await?;
        let (installed, owned) = (self.uids(&manifests).await?, self.uids(&claims).await?);
        self.helm("install", &["--take-ownership"]).await?;
        ensure!(self.uids(&manifests).await? == installed, "objects that were there were made anew");
        ensure!(self.uids(&claims).await? == owned, "claims were made anew");
        for object in manifests.iter().filter(|object| checks::kind(object) != "Namespace") {
            let there = api_of(&self.client, object).await?.get(checks::name(object)).await?;
            let by = there.labels().get("app.kubernetes.io/managed-by");
            ensure!(
                by.is_some_and(|by| by == "Helm"),
                "{} {} is not taken over",
                checks::kind(object),
                there.name_any()
            );
        }
        print(&format!("installed over kind-config: {} objects taken over, none made anew", installed.len()))?;
        policies::play(&self.client).await?;
        print("its admission policies refuse what the operator would, and nothing else")?;
        self.helm("upgrade", &["--set", "operator.resyncInterval=900"]).await?;
        ensure!(self.resync().await?.as_deref() == Some("900"), "an upgrade has no effect");
        ensure!(self.uids(&manifests).await? == installed, "an upgrade makes objects anew");
        self.helm.on(&self.kubeconfig, &["rollback", RELEASE, "1"]).await?;
        ensure!(self.resync().await?.as_deref() == Some("600"), "a rollback has no effect");
        self.uninstall().await?;
        let left = self.uids(&manifests).await?;
        let left: Vec<&String> =
            left.iter().filter(|(what, uid)| uid.is_some() && !is_kept(what)).map(|(it, _)| it).collect();
        ensure!(left.is_empty(), "these outlive the release: {left:?}");
        ensure!(self.uids(&claims).await? == owned, "claims went with the release");
        print("upgraded, rolled back and removed: definitions and claims stay")
    }

    /// Installs the chart, with further arguments.
    pub(super) async fn install(&self, more: &[&str]) -> Result<()> {
        self.helm("install", &[more, &["--take-ownership"]].concat()).await.map(drop)
    }

    /// Uninstalls the release.
    pub(super) async fn uninstall(&self) -> Result<()> {
        self.helm.on(&self.kubeconfig, &["uninstall", RELEASE, "--wait"]).await.map(drop)
    }

    /// Installs another chart, upgrades it to this one with a flag instead of values, and
    /// uninstalls it. Values that were set are kept; those that the other chart doesn't have get
    /// their defaults.
    pub(super) async fn upgrade_from(&self, other: &Path, flag: &str) -> Result<()> {
        let values = self.values.path.display().to_string();
        let (before, after) = (other.display().to_string(), self.chart.display().to_string());
        let set = ["--values", &values, "--set", "operator.resyncInterval=900", "--take-ownership"];
        self.helm.on(&self.kubeconfig, &[&["install", RELEASE, &before][..], &set].concat()).await?;
        self.helm.on(&self.kubeconfig, &["upgrade", RELEASE, &after, flag]).await?;
        ensure!(self.resync().await?.as_deref() == Some("900"), "what was set is lost");
        let operator = self.operator().await?;
        ensure!(operator.data["spec"]["replicas"] == 2, "there are {} operators", operator.data["spec"]["replicas"]);
        self.uninstall().await
    }

    async fn helm(&self, verb: &str, more: &[&str]) -> Result<String> {
        let (chart, values) = (self.chart.display().to_string(), self.values.path.display().to_string());
        let wait: &[&str] = if self.waits { &["--wait", "--timeout", "60s"] } else { &[] };
        self.helm.on(&self.kubeconfig, &[&[verb, RELEASE, &chart, "--values", &values], wait, more].concat()).await
    }

    /// Returns a backend, a claim, and their CustomResourceDefinitions.
    async fn claims(&self) -> Result<Vec<Value>> {
        let version = format!("{GROUP}/v1alpha1");
        let backend = json!({
            "apiVersion": version, "kind": "S3Backend", "metadata": {"name": "main"},
            "spec": {"endpoint": "http://127.0.0.1:9", "adminCredentialsSecretRef": {"name": "main-admin", "namespace": NAMESPACE}},
        });
        let claim = json!({
            "apiVersion": version, "kind": "BucketClaim", "metadata": {"name": "photos", "namespace": "default"},
            "spec": {"backendRef": {"name": "main"}},
        });
        for object in [&backend, &claim] {
            apply(&self.client, object).await?;
        }
        let definitions = api::crds().into_iter().map(|definition| {
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                   "metadata": {"name": definition.name_any()}})
        });
        Ok([backend, claim].into_iter().chain(definitions).collect())
    }

    async fn uids(&self, objects: &[Value]) -> Result<Uids> {
        let mut uids = Uids::new();
        for object in objects {
            let (kind, name) = (checks::kind(object), checks::name(object));
            let there = api_of(&self.client, object).await?.get_opt(name).await?;
            let place = object["metadata"]["namespace"].as_str().unwrap_or_default();
            uids.insert(format!("{kind} {place}/{name}"), there.and_then(|there| there.metadata.uid));
        }
        Ok(uids)
    }

    /// Returns the operator's Deployment.
    async fn operator(&self) -> Result<DynamicObject> {
        let operator = json!({"apiVersion": "apps/v1", "kind": "Deployment",
                              "metadata": {"name": "stowage-operator", "namespace": NAMESPACE}});
        Ok(api_of(&self.client, &operator).await?.get("stowage-operator").await?)
    }

    /// Returns the operator's resync interval, as set in its Deployment.
    async fn resync(&self) -> Result<Option<String>> {
        let there = self.operator().await?;
        let variables = there.data.pointer("/spec/template/spec/containers/0/env").and_then(Value::as_array);
        let of = |variable: &&Value| variable["name"] == "STOWAGE_RESYNC_INTERVAL";
        let found = variables.into_iter().flatten().find(of);
        Ok(found.and_then(|variable| variable["value"].as_str()).map(str::to_owned))
    }
}

/// True for objects that remain after the release is uninstalled.
fn is_kept(what: &str) -> bool {
    what.starts_with("Namespace ")
}
