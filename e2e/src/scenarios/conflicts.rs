//! What two may not share.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use serde_json::json;
use stowage_operator::api::wire::Role;
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::setup::Setup;
use stowage_testbed::objects::from_json;

pub(super) async fn name(environment: &Environment) -> Result<String> {
    let setup = environment.setup("name").await?;
    let mut operator = setup.start_operator(&[]).await?;
    setup.under(&mut operator, one_name(&setup)).await?;
    operator.terminate().await?;
    Ok("the second claim waited, and was bound once the first was gone".to_owned())
}

async fn one_name(setup: &Setup<'_>) -> Result<()> {
    let bucket = format!("{}-shared", setup.tenant);
    let spec = json!({"bucketName": bucket});
    setup.claim("first", spec.clone()).await?;
    let first = setup.ready("first").await?;
    let second = setup.claim("second", spec).await?;
    setup.shows("second", "BucketNameConflict").await?;
    for role in [Role::BucketRecord, Role::VirtualCredential] {
        let held = setup.internal(&second, role).await?;
        ensure!(held.is_empty(), "the loser holds a Secret of role {}", role.as_str());
    }
    // Otherwise the retained bucket would be in the second claim's way: its tags name the first.
    setup.environment.store.remove(&bucket).await?;
    setup.delete(&first).await?;
    let bound = setup.ready("second").await?;
    let tags = setup.environment.store.tags(&bucket).await?.context("the second claim is bound without a bucket")?;
    let holder = tags.get(stowage_operator::api::wire::TAG_CLAIM_UID);
    ensure!(holder == bound.metadata.uid.as_ref(), "the tags of {bucket} are {tags:?}");
    Ok(())
}

pub(super) async fn secret(environment: &Environment) -> Result<String> {
    let setup = environment.setup("secret").await?;
    let mut operator = setup.start_operator(&[]).await?;
    setup.under(&mut operator, foreign_secret(&setup)).await?;
    operator.terminate().await?;
    Ok("the other's Secret is as it was; the claim let go of everything when deleted".to_owned())
}

async fn foreign_secret(setup: &Setup<'_>) -> Result<()> {
    let secrets = setup.secrets(&setup.tenant);
    let foreign: Secret =
        from_json(json!({"metadata": {"name": "data-s3"}, "stringData": {"AWS_ACCESS_KEY_ID": "somebody's"}}));
    let before = secrets.create(&PostParams::default(), &foreign).await.context("can't make the Secret")?;
    setup.claim("data", json!({})).await?;
    let claim = setup.shows("data", "SecretConflict").await?;
    setup.delete(&claim).await?;
    let after = secrets.get("data-s3").await.context("the other's Secret is gone")?;
    ensure!(after == before, "the other's Secret was changed");
    let left = setup.internal(&claim, Role::VirtualCredential).await?;
    ensure!(left.is_empty(), "a credential is left");
    Ok(())
}
