//! Two releases on one cluster: the policies of each apply only to objects that its own operator
//! serves (spec §3.9).

use anyhow::{Context as _, Result};
use kube::Client;
use kube::api::{Api, DeleteParams, PatchParams};
use serde_json::{Value, json};
use stowage_operator::api::{S3Backend, wire};
use stowage_testbed::console::print;

use super::apply::{apply, put};
use super::life::Life;
use super::policies::{access, backend, claim, is_refused};

/// Namespace of the second release and its operator.
pub(super) const OTHER: &str = "other-system";
/// The namespace that it serves.
pub(super) const SERVED: &str = "team-b";
/// The `served-by` annotation of the second release's operator.
const NOTE: &str = "other-system/blue";
/// The `served-by` annotation of the first release's operator.
const FIRST: &str = "stowage-system/green";

/// Installs a second release beside one with these values, and uninstalls both.
pub(super) async fn play(life: &Life<'_>) -> Result<()> {
    life.install(&["--set", "secrets.metadataPrefixes={a.example/}"]).await?;
    let chart = life.chart.display().to_string();
    let settings = "crds.install=false,operator.watchNamespaces={team-b},operator.installationId=blue";
    let install = ["install", "other", &chart, "--set", settings, "--set", "secrets.metadataPrefixes={b.example/}"];
    let endpoint = ["--set", "gateway.endpoint=https://other.example.org"];
    let installed = life.helm.within(&life.kubeconfig, OTHER, &[&install[..], &endpoint].concat()).await;
    installed.context("a second release can't be installed")?;
    judged(&life.client).await?;
    life.helm.within(&life.kubeconfig, OTHER, &["uninstall", "other", "--wait"]).await?;
    life.uninstall().await?;
    print("two releases on one cluster: each refuses what its own operator would, and nothing of the other's")
}

async fn judged(client: &Client) -> Result<()> {
    let dry = PatchParams::apply("somebody").dry_run().force();
    let of = |name: &str, namespace: &str| {
        let secret = json!({"name": "admin", "namespace": namespace});
        backend(name, &json!({"adminCredentialsSecretRef": secret}))
    };
    for object in [noted(of("first", "stowage-system"), FIRST), noted(of("second", OTHER), NOTE)] {
        apply(client, &object).await.context("one of the releases refuses the other's backend")?;
    }
    let template = |prefix: &str| json!({"secretTemplate": {"labels": {(format!("{prefix}.example/team")): "x"}}});
    let shared = json!([{"claimRef": {"name": "photos"}}]);
    let taken = [
        // It has no operator yet, and the first release reads its Secret.
        of("new", "stowage-system"),
        claim("default", "films", "first", &template("a")),
        claim(SERVED, "films", "second", &template("b")),
        noted(access(SERVED, &shared, &template("b")), NOTE),
    ];
    for object in &taken {
        put(client, object, &dry).await.context("one of the releases refuses what the other one serves")?;
    }
    let refused = [
        (of("new", OTHER), "the operator of stowage-system reads no Secrets in other-system"),
        (noted(of("first", "kube-system"), FIRST), "the operator of stowage-system reads no Secrets in kube-system"),
        (noted(of("second", "kube-system"), NOTE), "the operator of other-system reads no Secrets in kube-system"),
        (claim("default", "films", "first", &template("b")), "spec.secretTemplate may not write b.example/team"),
        (claim(SERVED, "films", "second", &template("a")), "spec.secretTemplate may not write a.example/team"),
        (noted(access(SERVED, &shared, &template("a")), NOTE), "spec.secretTemplate may not write a.example/team"),
    ];
    for (object, words) in refused {
        is_refused(client, &object, &dry, words).await?;
    }
    for name in ["first", "second"] {
        Api::<S3Backend>::all(client.clone()).delete(name, &DeleteParams::default()).await?;
    }
    Ok(())
}

/// Returns the object with the annotation of the operator that serves it.
fn noted(mut object: Value, by: &str) -> Value {
    object["metadata"]["annotations"] = json!({(wire::SERVED_BY): by});
    object
}
