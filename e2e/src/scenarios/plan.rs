//! Output of `plan` and `why` about real objects, before and after the operator handles them.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};
use stowage_operator::api::BucketAccess;
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::setup::Setup;
use tokio::time::sleep;

/// Interval of calls that check if there is still something to do.
const GLANCE: Duration = Duration::from_millis(500);

/// Exit code for "there is something to do".
const SOMETHING: i32 = 2;

/// An access to a claim that doesn't exist.
const ACCESS: &str = "reader";

pub(super) async fn play(environment: &Environment) -> Result<String> {
    let setup = environment.setup("plan").await?;
    let mut operator = setup.start_operator(&[]).await?;
    setup.under(&mut operator, bound(&setup)).await?;
    at_rest(&setup).await.context("once all claims are bound")?;
    operator.terminate().await?;

    let steps = edited(&setup).await?;
    let before = versions(&setup).await?;
    let plan = told(&setup, SOMETHING).await?;
    for (name, words) in &steps {
        let says = of_claim(&plan, name)?["words"].as_str().unwrap_or_default().to_owned();
        ensure!(says.starts_with(words), "plan says of {name}: {says}, not {words}");
    }
    let access = named(&plan, "accesses", ACCESS)?["words"].as_str().unwrap_or_default().to_owned();
    ensure!(access.starts_with("begin to serve the access, and wait"), "plan says of the access: {access}");
    let (code, why) = setup.ask(&["why", "-n", &setup.tenant, "new", "-o", "json"]).await?;
    ensure!(code == Some(0) && why.contains("begin to serve the claim"), "why says {why}");
    let (code, why) = setup.ask(&["why", "-n", &setup.tenant, &format!("bucketaccess/{ACCESS}"), "-o", "json"]).await?;
    ensure!(code == Some(0) && why.contains("ClaimNotBound"), "why says of the access {why}");
    ensure!(versions(&setup).await? == before, "plan or why has changed something");

    let mut operator = setup.start_operator(&[]).await?;
    setup.under(&mut operator, done(&setup)).await?;
    operator.terminate().await?;
    Ok(format!("plan told the next step of {} claims, which the operator took, and then nothing", steps.len()))
}

async fn bound(setup: &Setup<'_>) -> Result<()> {
    for name in ["revoked", "mended", "limited", "leaving"] {
        setup.claim(name, json!({})).await?;
    }
    for name in ["revoked", "mended", "limited", "leaving"] {
        setup.ready(name).await?;
    }
    Ok(())
}

/// Edits objects while no operator runs. Returns the next step of each claim.
async fn edited(setup: &Setup<'_>) -> Result<[(&'static str, String); 5]> {
    let revoke = json!({"metadata": {"annotations": {"broker.stowage.io/revoke": "now"}}});
    setup.patch("revoked", revoke).await?;
    let secrets = setup.secrets(&setup.tenant);
    secrets.delete("mended-s3", &DeleteParams::default()).await.context("can't delete the Secret")?;
    setup.patch("limited", json!({"spec": {"quota": {"hard": "1Gi"}}})).await?;
    setup.ask_to_delete("leaving").await?;
    setup.claim("new", json!({})).await?;
    let spec = json!({"buckets": [{"claimRef": {"name": "nobody"}}], "writeConnectionSecretToRef": {"name": ACCESS}});
    accesses(setup).create(&PostParams::default(), &BucketAccess::new(ACCESS, serde_json::from_value(spec)?)).await?;
    let bucket = |claim: &str| format!("bucket {}-{claim} at S3Backend {}", setup.tenant, setup.backend);
    Ok([
        ("revoked", "revoke every key, and make another".to_owned()),
        ("mended", "write the connection into Secret mended-s3".to_owned()),
        ("limited", "bring the key of generation 1 up to date".to_owned()),
        ("leaving", format!("end every access to {}: the claim is deleted", bucket("leaving"))),
        ("new", format!("begin to serve the claim: {}", bucket("new"))),
    ])
}

async fn done(setup: &Setup<'_>) -> Result<()> {
    for name in ["revoked", "mended", "limited", "new"] {
        setup.ready(name).await?;
    }
    at_rest(setup).await.context("once the operator has done it")
}

/// Waits until there is nothing left to do.
async fn at_rest(setup: &Setup<'_>) -> Result<()> {
    let deadline = Instant::now() + setup.environment.patience;
    loop {
        let (code, says) = setup.ask(&["plan", "-n", &setup.tenant, "--pending"]).await?;
        match code {
            Some(0) => return Ok(()),
            Some(SOMETHING) if Instant::now() < deadline => sleep(GLANCE).await,
            code => bail!("plan ended with {code:?} and says {says}"),
        }
    }
}

/// Returns the JSON document of `plan`, which must end with this exit code.
async fn told(setup: &Setup<'_>, expected: i32) -> Result<Value> {
    let (code, says) = setup.ask(&["plan", "-n", &setup.tenant, "-o", "json"]).await?;
    ensure!(code == Some(expected), "plan ended with {code:?} and says {says}");
    serde_json::from_str(&says).with_context(|| format!("plan printed no document: {says}"))
}

fn of_claim<'a>(plan: &'a Value, name: &str) -> Result<&'a Value> {
    named(plan, "claims", name)
}

/// Returns the object with this name in a list of a plan.
fn named<'a>(plan: &'a Value, list: &str, name: &str) -> Result<&'a Value> {
    let mut all = plan[list].as_array().into_iter().flatten();
    all.find(|object| object["name"] == name).with_context(|| format!("plan does not tell of {name}: {plan}"))
}

fn accesses(setup: &Setup<'_>) -> Api<BucketAccess> {
    Api::namespaced(setup.environment.client.clone(), &setup.tenant)
}

/// Returns the version of each claim, access and Secret of the scenario.
async fn versions(setup: &Setup<'_>) -> Result<Vec<(String, Option<String>)>> {
    let all = ListParams::default();
    let claims = setup.claims().list(&all).await.context("can't list claims")?;
    let mut versions: Vec<_> = claims.iter().map(|it| (it.name_any(), it.resource_version())).collect();
    let all_accesses = accesses(setup).list(&all).await.context("can't list accesses")?;
    versions.extend(all_accesses.iter().map(|it| (it.name_any(), it.resource_version())));
    for namespace in [&setup.system, &setup.tenant] {
        let secrets = setup.secrets(namespace).list(&all).await.context("can't list Secrets")?;
        versions.extend(secrets.iter().map(|it| (it.name_any(), it.resource_version())));
    }
    Ok(versions)
}
