//! What two may not share.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use serde_json::json;
use stowage_operator::api::wire::Role;

use crate::objects::from_json;
use crate::stage::Stage;
use crate::testbed::Testbed;

pub(super) async fn name(testbed: &Testbed) -> Result<String> {
    let stage = testbed.stage("name").await?;
    let mut operator = stage.start_operator(&[]).await?;
    stage.under(&mut operator, one_name(&stage)).await?;
    operator.terminate().await?;
    Ok("the second claim waited, and was bound once the first was gone".to_owned())
}

async fn one_name(stage: &Stage<'_>) -> Result<()> {
    let bucket = format!("{}-shared", stage.tenant);
    let spec = json!({"bucketName": bucket});
    stage.claim("first", spec.clone()).await?;
    let first = stage.ready("first").await?;
    let second = stage.claim("second", spec).await?;
    stage.shows("second", "BucketNameConflict").await?;
    for role in [Role::BucketRecord, Role::VirtualCredential] {
        let held = stage.internal(&second, role).await?;
        ensure!(held.is_empty(), "the loser holds a Secret of role {}", role.as_str());
    }
    // Otherwise the retained bucket would be in the second claim's way: its tags name the first.
    stage.testbed.store.remove(&bucket).await?;
    stage.delete(&first).await?;
    let bound = stage.ready("second").await?;
    let tags = stage.testbed.store.tags(&bucket).await?.context("the second claim is bound without a bucket")?;
    let holder = tags.get(stowage_operator::api::wire::TAG_CLAIM_UID);
    ensure!(holder == bound.metadata.uid.as_ref(), "the tags of {bucket} are {tags:?}");
    Ok(())
}

pub(super) async fn secret(testbed: &Testbed) -> Result<String> {
    let stage = testbed.stage("secret").await?;
    let mut operator = stage.start_operator(&[]).await?;
    stage.under(&mut operator, foreign_secret(&stage)).await?;
    operator.terminate().await?;
    Ok("the other's Secret is as it was; the claim let go of everything when deleted".to_owned())
}

async fn foreign_secret(stage: &Stage<'_>) -> Result<()> {
    let secrets = stage.secrets(&stage.tenant);
    let foreign: Secret =
        from_json(json!({"metadata": {"name": "data-s3"}, "stringData": {"AWS_ACCESS_KEY_ID": "somebody's"}}));
    let before = secrets.create(&PostParams::default(), &foreign).await.context("can't make the Secret")?;
    stage.claim("data", json!({})).await?;
    let claim = stage.shows("data", "SecretConflict").await?;
    stage.delete(&claim).await?;
    let after = secrets.get("data-s3").await.context("the other's Secret is gone")?;
    ensure!(after == before, "the other's Secret was changed");
    let left = stage.internal(&claim, Role::VirtualCredential).await?;
    ensure!(left.is_empty(), "a credential is left");
    Ok(())
}
