//! A crash in the middle of things.

use std::collections::BTreeSet;

use futures::future::{select_all, try_join_all};
use kube::api::ListParams;
use serde_json::json;
use stowage_operator::api::BucketClaim;

use super::whole::whole;
use crate::cluster::{World, check, explain};
use crate::stage::{Stage, ready_reason};

const CLAIMS: usize = 20;

pub(super) async fn play(world: &World) -> Result<String, String> {
    let stage = world.stage("restart").await?;
    // Few at a time, so that some are done, some under way and some not begun when the end comes.
    let mut operator = stage.start_operator(&["--max-concurrent-reconciles", "4"]).await?;
    stage.under(&mut operator, first_of_many(&stage)).await?;
    operator.kill().await?;
    let before = bound(&stage).await?;
    check(before < CLAIMS, || "all claims were bound before the operator was killed".to_owned())?;
    let mut operator = stage.start_operator(&[]).await?;
    stage.under(&mut operator, all_whole(&stage)).await?;
    operator.terminate().await?;
    Ok(format!("{before} of {CLAIMS} claims were bound at the crash, all of them after it"))
}

fn name(index: usize) -> String {
    format!("claim-{index:02}")
}

/// Makes the claims and waits until one of them is bound.
async fn first_of_many(stage: &Stage<'_>) -> Result<(), String> {
    try_join_all((0..CLAIMS).map(|index| async move { stage.claim(&name(index), json!({})).await })).await?;
    let waits = (0..CLAIMS).map(|index| Box::pin(async move { stage.ready(&name(index)).await }));
    let (first, _, _) = select_all(waits).await;
    first.map(|_| ())
}

async fn bound(stage: &Stage<'_>) -> Result<usize, String> {
    let claims = explain("can't list the claims", stage.claims().list(&ListParams::default()).await)?;
    Ok(claims.iter().filter(|claim| ready_reason(claim) == Some("Bound")).count())
}

/// Every claim bound, with one record and one credential, each with a bucket and a key of its own.
async fn all_whole(stage: &Stage<'_>) -> Result<(), String> {
    let waits = (0..CLAIMS).map(|index| async move { stage.ready(&name(index)).await });
    let claims: Vec<BucketClaim> = try_join_all(waits).await?;
    let mut keys = BTreeSet::new();
    let mut buckets = BTreeSet::new();
    for claim in &claims {
        let given = whole(stage, claim).await?;
        keys.insert(given.key_id);
        buckets.insert(given.bucket);
    }
    check(keys.len() == CLAIMS && buckets.len() == CLAIMS, || "claims share a key or a bucket".to_owned())
}
