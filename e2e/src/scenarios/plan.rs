//! What `plan` and `why` say of real objects, before the operator comes to them and after.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};
use stowage_operator::api::BucketAccess;
use tokio::time::sleep;

use crate::stage::Stage;
use crate::testbed::Testbed;

/// How often it is asked whether there is still something to do.
const GLANCE: Duration = Duration::from_millis(500);

/// The exit code where there is something to do.
const SOMETHING: i32 = 2;

/// An access to a claim that is not there.
const ACCESS: &str = "reader";

pub(super) async fn play(testbed: &Testbed) -> Result<String> {
    let stage = testbed.stage("plan").await?;
    let mut operator = stage.start_operator(&[]).await?;
    stage.under(&mut operator, bound(&stage)).await?;
    at_rest(&stage).await.context("once all claims are bound")?;
    operator.terminate().await?;

    let steps = edited(&stage).await?;
    let before = versions(&stage).await?;
    let plan = told(&stage, SOMETHING).await?;
    for (name, words) in &steps {
        let says = of_claim(&plan, name)?["words"].as_str().unwrap_or_default().to_owned();
        ensure!(says.starts_with(words), "plan says of {name}: {says}, not {words}");
    }
    let access = named(&plan, "accesses", ACCESS)?["words"].as_str().unwrap_or_default().to_owned();
    ensure!(access.starts_with("begin to serve the access, and wait"), "plan says of the access: {access}");
    let (code, why) = stage.ask(&["why", "-n", &stage.tenant, "new", "-o", "json"]).await?;
    ensure!(code == Some(0) && why.contains("begin to serve the claim"), "why says {why}");
    let (code, why) = stage.ask(&["why", "-n", &stage.tenant, &format!("bucketaccess/{ACCESS}"), "-o", "json"]).await?;
    ensure!(code == Some(0) && why.contains("ClaimNotBound"), "why says of the access {why}");
    ensure!(versions(&stage).await? == before, "plan or why has changed something");

    let mut operator = stage.start_operator(&[]).await?;
    stage.under(&mut operator, done(&stage)).await?;
    operator.terminate().await?;
    Ok(format!("plan told the next step of {} claims, which the operator took, and then nothing", steps.len()))
}

async fn bound(stage: &Stage<'_>) -> Result<()> {
    for name in ["revoked", "mended", "limited", "leaving"] {
        stage.claim(name, json!({})).await?;
    }
    for name in ["revoked", "mended", "limited", "leaving"] {
        stage.ready(name).await?;
    }
    Ok(())
}

/// What people do while no operator runs. Returns what is next of each claim.
async fn edited(stage: &Stage<'_>) -> Result<[(&'static str, String); 5]> {
    let revoke = json!({"metadata": {"annotations": {"broker.stowage.io/revoke": "now"}}});
    stage.patch("revoked", revoke).await?;
    let secrets = stage.secrets(&stage.tenant);
    secrets.delete("mended-s3", &DeleteParams::default()).await.context("can't delete the Secret")?;
    stage.patch("limited", json!({"spec": {"quota": {"hard": "1Gi"}}})).await?;
    stage.ask_to_delete("leaving").await?;
    stage.claim("new", json!({})).await?;
    let spec = json!({"buckets": [{"claimRef": {"name": "nobody"}}], "writeConnectionSecretToRef": {"name": ACCESS}});
    accesses(stage).create(&PostParams::default(), &BucketAccess::new(ACCESS, serde_json::from_value(spec)?)).await?;
    let bucket = |claim: &str| format!("bucket {}-{claim} at S3Backend {}", stage.tenant, stage.backend);
    Ok([
        ("revoked", "revoke every key, and make another".to_owned()),
        ("mended", "write the connection into Secret mended-s3".to_owned()),
        ("limited", "bring the key of generation 1 up to date".to_owned()),
        ("leaving", format!("end every access to {}: the claim is deleted", bucket("leaving"))),
        ("new", format!("begin to serve the claim: {}", bucket("new"))),
    ])
}

async fn done(stage: &Stage<'_>) -> Result<()> {
    for name in ["revoked", "mended", "limited", "new"] {
        stage.ready(name).await?;
    }
    at_rest(stage).await.context("once the operator has done it")
}

/// Waits until there is nothing to do any more.
async fn at_rest(stage: &Stage<'_>) -> Result<()> {
    let deadline = Instant::now() + stage.testbed.patience;
    loop {
        let (code, says) = stage.ask(&["plan", "-n", &stage.tenant, "--pending"]).await?;
        match code {
            Some(0) => return Ok(()),
            Some(SOMETHING) if Instant::now() < deadline => sleep(GLANCE).await,
            code => bail!("plan ended with {code:?} and says {says}"),
        }
    }
}

/// The document of a plan, which has to end with this code.
async fn told(stage: &Stage<'_>, expected: i32) -> Result<Value> {
    let (code, says) = stage.ask(&["plan", "-n", &stage.tenant, "-o", "json"]).await?;
    ensure!(code == Some(expected), "plan ended with {code:?} and says {says}");
    serde_json::from_str(&says).with_context(|| format!("plan printed no document: {says}"))
}

fn of_claim<'a>(plan: &'a Value, name: &str) -> Result<&'a Value> {
    named(plan, "claims", name)
}

/// The object of this name in this list of a plan.
fn named<'a>(plan: &'a Value, list: &str, name: &str) -> Result<&'a Value> {
    let mut all = plan[list].as_array().into_iter().flatten();
    all.find(|object| object["name"] == name).with_context(|| format!("plan does not tell of {name}: {plan}"))
}

fn accesses(stage: &Stage<'_>) -> Api<BucketAccess> {
    Api::namespaced(stage.testbed.client.clone(), &stage.tenant)
}

/// The version of each claim, access and Secret of the scenario.
async fn versions(stage: &Stage<'_>) -> Result<Vec<(String, Option<String>)>> {
    let all = ListParams::default();
    let claims = stage.claims().list(&all).await.context("can't list claims")?;
    let mut versions: Vec<_> = claims.iter().map(|it| (it.name_any(), it.resource_version())).collect();
    let all_accesses = accesses(stage).list(&all).await.context("can't list accesses")?;
    versions.extend(all_accesses.iter().map(|it| (it.name_any(), it.resource_version())));
    for namespace in [&stage.system, &stage.tenant] {
        let secrets = stage.secrets(namespace).list(&all).await.context("can't list Secrets")?;
        versions.extend(secrets.iter().map(|it| (it.name_any(), it.resource_version())));
    }
    Ok(versions)
}
