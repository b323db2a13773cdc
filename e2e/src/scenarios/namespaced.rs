//! An operator serves one namespace, with rights in that one only.

use anyhow::{Context as _, Result, ensure};
use kube::ResourceExt;
use kube::api::{Api, PostParams};
use serde_json::json;
use stowage_operator::api::{BucketAccess, BucketClaim, wire};
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::setup::Setup;
use stowage_testbed::objects::from_json;
use stowage_testbed::rights;

use super::rotation;

/// Installation id in the tags of this operator's buckets.
const INSTALLATION: &str = "one-of-two";

/// Plays the scenario, and restores the operator's rights for later scenarios even if it fails.
pub(super) async fn play(environment: &Environment) -> Result<String> {
    let setup = environment.setup("namespaced").await?;
    rights::narrow(&environment.client, &setup.system, &setup.tenant).await?;
    let served = serves(&setup).await;
    rights::widen(&environment.client).await?;
    served
}

async fn serves(setup: &Setup<'_>) -> Result<String> {
    let elsewhere = format!("{}-elsewhere", setup.tenant);
    setup.environment.make_namespace(&elsewhere).await?;
    let claims: Api<BucketClaim> = Api::namespaced(setup.environment.tenant.clone(), &elsewhere);
    let claim = from_json(json!({
        "apiVersion": "broker.stowage.io/v1alpha1", "kind": "BucketClaim", "metadata": {"name": "others"},
        "spec": {"backendRef": {"name": setup.backend}},
    }));
    claims.create(&PostParams::default(), &claim).await.context("can't make claim others")?;

    let alone = ["--watch-namespace", &setup.tenant, "--installation-id", INSTALLATION];
    let mut operator = setup.start_operator(&alone).await?;
    setup.under(&mut operator, lives(setup)).await?;
    operator.terminate().await?;

    let untouched = claims.get("others").await.context("claim others is gone")?;
    ensure!(untouched.finalizers().is_empty(), "claim others has the finalizers {:?}", untouched.finalizers());
    // The API server adds a default status without conditions.
    let told = untouched.status.is_some_and(|status| !status.conditions.is_empty());
    ensure!(!told, "claim others has a status");
    Ok("a claim was bound, rotated, opened to an access and deleted; one in another namespace was left alone"
        .to_owned())
}

/// A claim is created, gets a new key, is shared with an access, and is deleted with its bucket.
async fn lives(setup: &Setup<'_>) -> Result<()> {
    setup.claim("data", json!({"deletionPolicy": "Delete"})).await?;
    let claim = setup.ready("data").await?;
    let bucket = claim.status.as_ref().and_then(|status| status.bucket_name.clone()).context("no bucket")?;
    let tags = setup.environment.store.tags(&bucket).await?.context("the bucket is not there")?;
    let installation = tags.get(wire::TAG_INSTALLATION).map(String::as_str);
    ensure!(installation == Some(INSTALLATION), "the bucket is of the installation {installation:?}");

    let accesses: Api<BucketAccess> = Api::namespaced(setup.environment.tenant.clone(), &setup.tenant);
    let access = from_json(json!({
        "apiVersion": "broker.stowage.io/v1alpha1", "kind": "BucketAccess", "metadata": {"name": "reader"},
        "spec": {
            "buckets": [{"claimRef": {"name": "data"}, "mode": "ReadOnly"}],
            "writeConnectionSecretToRef": {"name": "reader-s3"},
        },
    }));
    accesses.create(&PostParams::default(), &access).await.context("can't make the access")?;
    let is_open = |access: Option<&BucketAccess>| {
        let conditions = access.and_then(|access| access.status.as_ref()).map(|status| &status.conditions);
        conditions.is_some_and(|all| all.iter().any(|it| it.type_ == "Ready" && it.status == "True"))
    };
    setup.environment.wait(&accesses, "reader", "open", is_open).await?.context("the access is gone")?;

    let first = claim.status.as_ref().and_then(|status| status.access_key_id.clone());
    setup.patch("data", json!({"metadata": {"annotations": {wire::ROTATE: "now"}}})).await?;
    let rotated = |claim: Option<&BucketClaim>| {
        let status = claim.and_then(|claim| claim.status.as_ref());
        status.is_some_and(|status| status.access_key_id.is_some() && status.access_key_id != first)
    };
    let (limit, claims) = (rotation::limit(setup), setup.claims());
    setup.environment.wait_for_up_to(limit, &claims, "data", "rotated", rotated).await?.context("the claim is gone")?;

    setup.delete(&claim).await?;
    setup.nothing_left(&claim).await?;
    ensure!(setup.environment.store.tags(&bucket).await?.is_none(), "bucket {bucket} is still there");
    Ok(())
}
