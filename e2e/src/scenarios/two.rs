//! Two operators at once, as in a rollout that overlaps or a node that comes back.

use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;
use stowage_operator::api::BucketClaim;
use stowage_operator::api::wire::{self, Role};

use super::rotation::expiry;
use super::whole::{Given, given};
use crate::cluster::{World, check, explain, text};
use crate::stage::Stage;

const CLAIMS: usize = 12;

/// Both work on all claims from the beginning to the end; one is killed in between and comes back.
pub(super) async fn operators(world: &World) -> Result<String, String> {
    let stage = world.stage("two").await?;
    let mut first = stage.start_operator(&[]).await?;
    let second = stage.start_another_operator().await?;
    let told = stage.under(&mut first, async {
        let claims = come(&stage, 0..CLAIMS).await?;
        second.kill().await?;
        let second = stage.start_another_operator().await?;
        let claims = [claims, come(&stage, CLAIMS..2 * CLAIMS).await?].concat();
        try_join_all(claims.iter().map(|claim| goes(&stage, claim))).await?;
        second.terminate().await?;
        Ok(format!("{} claims came, each with one current key and one bucket, and went", claims.len()))
    });
    let told = told.await?;
    first.terminate().await?;
    Ok(told)
}

/// Claims are made at once, and each is bound as by one operator.
async fn come(stage: &Stage<'_>, numbers: std::ops::Range<usize>) -> Result<Vec<BucketClaim>, String> {
    try_join_all(numbers.map(|number| async move {
        let name = format!("claim-{number:02}");
        stage.claim(&name, json!({"deletionPolicy": "Delete", "forceDelete": true})).await?;
        let claim = stage.ready(&name).await?;
        let given = one_current(stage, &claim).await?;
        stage.world.store.put(&given.bucket, number).await?;
        Ok(claim)
    }))
    .await
}

/// Where one of them finds that the other has begun it may make another key: then the first one is on its way out, and the
/// consumer Secret shows the other.
async fn one_current(stage: &Stage<'_>, claim: &BucketClaim) -> Result<Given, String> {
    loop {
        let keys = stage.internal(claim, Role::VirtualCredential).await?;
        let generation =
            |key: &Secret| key.labels().get(wire::ROTATION_GENERATION).and_then(|text| text.parse::<u64>().ok());
        let mut current: Vec<&Secret> = keys.iter().filter(|key| expiry(key).is_none()).collect();
        current.sort_by_key(|key| generation(key));
        match &current[..] {
            [] => return Err(format!("claim {} has no current key", claim.name_any())),
            [key] => return told(stage, claim, &text(key, "access_key_id")).await,
            [oldest, ..] => {
                let leaves = |key: Option<&Secret>| key.is_none_or(|key| expiry(key).is_some());
                stage.world.wait(&stage.secrets(&stage.system), &oldest.name_any(), "on its way out", leaves).await?;
            }
        }
    }
}

/// Waits until a claim's status tells of this key, which is then the one that its consumer Secret holds.
async fn told(stage: &Stage<'_>, claim: &BucketClaim, key: &str) -> Result<Given, String> {
    let tells = |claim: Option<&BucketClaim>| {
        claim.and_then(|claim| claim.status.as_ref()).is_some_and(|status| status.access_key_id.as_deref() == Some(key))
    };
    let found = stage.world.wait(&stage.claims(), &claim.name_any(), "told of its key", tells).await?;
    given(stage, &found.ok_or("the claim is gone")?).await
}

/// A claim goes with its bucket, and leaves nothing.
async fn goes(stage: &Stage<'_>, claim: &BucketClaim) -> Result<(), String> {
    stage.delete(claim).await?;
    // What one of them makes while the other lets go is swept by either.
    stage.swept(claim, &[Role::BucketRecord, Role::VirtualCredential]).await?;
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let left = stage.world.store.tags(&format!("{}-{name}", stage.tenant)).await?;
    check(left.is_none(), || format!("the bucket of claim {name} is still there"))?;
    let consumers = stage.secrets(&stage.tenant).list(&ListParams::default()).await;
    let consumers = explain("can't list the consumer Secrets", consumers)?;
    let mine = format!("{name}-s3");
    let consumer = consumers.iter().find(|secret| secret.metadata.name.as_deref() == Some(&mine));
    check(consumer.is_none(), || format!("Secret {mine} is still there"))
}
