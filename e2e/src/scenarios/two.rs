//! Two operators at once, as in a rollout that overlaps or a node that comes back.

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
/// Between two looks at what is to come to agree.
const LOOK: Duration = Duration::from_millis(50);

/// Both work on all claims from the beginning to the end; one is killed in between and comes back.
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

/// Claims are made at once, and each is bound as by one operator.
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

/// Where one of them finds that the other has begun it may make another key, and the claim goes
/// over to that: to what the consumer Secret shows first, then to what the status tells, and then
/// the first key is on its way out. In between they disagree.
async fn one_current(setup: &Setup<'_>, claim: &BucketClaim) -> Result<Given> {
    let deadline = Instant::now() + setup.environment.patience;
    loop {
        match settled(setup, &claim.name_any()).await {
            Err(_) if Instant::now() < deadline => sleep(LOOK).await,
            settled => return settled,
        }
    }
}

/// Fails unless the claim has one current key, of which its status and its consumer Secret tell.
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

/// A claim goes with its bucket, and leaves nothing.
async fn goes(setup: &Setup<'_>, claim: &BucketClaim) -> Result<()> {
    setup.delete(claim).await?;
    // What one of them makes while the other lets go is swept by either.
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
