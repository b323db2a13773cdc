//! Two operators at once, as in a rollout with overlap or after a node returns.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;
use stowage_operator::api::BucketClaim;
use stowage_operator::api::wire::Role;
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::setup::Setup;
use stowage_testbed::objects::text;
use tokio::time::sleep;

use super::rotation::expiry;
use super::whole::{Given, given};

const CLAIMS: usize = 12;
/// Polling interval while objects may still disagree.
const LOOK: Duration = Duration::from_millis(50);

/// Both work on all claims from beginning to end; one is killed in between and restarted.
pub(super) async fn operators(environment: &Environment) -> Result<String> {
    let setup = environment.setup("two").await?;
    let mut first = setup.start_operator(&[]).await?;
    let second = setup.start_another_operator(&[]).await?;
    let told = setup.under(&mut first, async {
        let claims = come(&setup, 0..CLAIMS).await?;
        second.kill().await?;
        let second = setup.start_another_operator(&[]).await?;
        let claims = [claims, come(&setup, CLAIMS..2 * CLAIMS).await?].concat();
        try_join_all(claims.iter().map(|claim| goes(&setup, claim))).await?;
        second.terminate().await?;
        Ok(format!("{} claims came, each with one current key and one bucket, and went", claims.len()))
    });
    let told = told.await?;
    first.terminate().await?;
    Ok(told)
}

/// Creates claims at the same time, and checks that each is bound as by one operator.
async fn come(setup: &Setup<'_>, numbers: std::ops::Range<usize>) -> Result<Vec<BucketClaim>> {
    try_join_all(numbers.map(|number| async move {
        let name = format!("claim-{number:02}");
        setup.claim(&name, json!({"deletionPolicy": "Delete", "forceDelete": true})).await?;
        let claim = setup.ready(&name).await?;
        let given = one_current(setup, &claim).await?;
        setup.environment.store.put(&given.bucket, number).await?;
        Ok(claim)
    }))
    .await
}

/// Waits until the claim has one current key. An operator that finds that the other one has begun
/// may mint another key. The claim then switches to it: the consumer Secret shows it first, then
/// the status, and then the first key gets its expiry. Until then these objects disagree.
async fn one_current(setup: &Setup<'_>, claim: &BucketClaim) -> Result<Given> {
    let deadline = Instant::now() + setup.environment.patience;
    loop {
        match settled(setup, &claim.name_any()).await {
            Err(_) if Instant::now() < deadline => sleep(LOOK).await,
            settled => return settled,
        }
    }
}

/// Fails unless the claim has exactly one current key, which its status and its consumer Secret
/// show.
async fn settled(setup: &Setup<'_>, name: &str) -> Result<Given> {
    let claim = setup.claims().get(name).await.with_context(|| format!("can't read claim {name}"))?;
    let keys = setup.internal(&claim, Role::VirtualCredential).await?;
    let given = given(setup, &claim).await?;
    let current: Vec<String> =
        keys.iter().filter(|key| expiry(key).is_none()).map(|key| text(key, "access_key_id")).collect();
    ensure!(
        current == [given.key_id.clone()],
        "claim {name} has the current keys {current:?}, and shows {}",
        given.key_id
    );
    Ok(given)
}

/// Deletes a claim with its bucket, and checks that nothing is left.
async fn goes(setup: &Setup<'_>, claim: &BucketClaim) -> Result<()> {
    setup.delete(claim).await?;
    // Secrets that one operator creates while the other releases the claim are swept by either.
    setup.swept(claim, &[Role::BucketRecord, Role::VirtualCredential]).await?;
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let left = setup.environment.store.tags(&format!("{}-{name}", setup.tenant)).await?;
    ensure!(left.is_none(), "the bucket of claim {name} is still there");
    let consumers = setup.secrets(&setup.tenant).list(&ListParams::default()).await;
    let consumers = consumers.context("can't list the consumer Secrets")?;
    let mine = format!("{name}-s3");
    let consumer = consumers.iter().find(|secret| secret.metadata.name.as_deref() == Some(&mine));
    ensure!(consumer.is_none(), "Secret {mine} is still there");
    Ok(())
}
