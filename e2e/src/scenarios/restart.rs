//! A crash in the middle of the work on many claims.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use futures::future::{select_all, try_join_all};
use kube::api::ListParams;
use serde_json::json;
use stowage_operator::api::BucketClaim;
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::setup::{Setup, ready_reason};
use stowage_testbed::fault_proxy::FIRST_LIFE;
use stowage_world::effects::{Call, KubeCall, KubeVerb, Line};

use super::whole::whole;

const CLAIMS: usize = 20;

/// Plan that crashes the operator once it has written the status of the first bound claim. It is
/// used on clusters with a fault proxy, because an observer that waits for that status may kill the
/// operator too late.
pub(super) const PLAN: &str = "kube:patch bucketclaims/status@1 crash(after-answer)";

pub(super) async fn play(environment: &Environment) -> Result<String> {
    let setup = environment.setup("restart").await?;
    // Few at a time, so that at the crash some claims are done, some in progress and some not
    // started.
    let mut operator = setup.start_operator(&["--max-concurrent-reconciles", "4"]).await?;
    let before = match setup.fault_proxy_if_any() {
        Some(fault_proxy) => {
            let crash = fault_proxy.next_crash();
            let cut_short = async {
                make(&setup).await?;
                crash.await;
                Ok(fault_proxy.calls().await?.all().iter().filter(|line| is_first_status(line)).count())
            };
            setup.under(&mut operator, cut_short).await?
        }
        None => {
            setup.under(&mut operator, first_of_many(&setup)).await?;
            operator.kill().await?;
            let before = bound(&setup).await?;
            operator = setup.start_operator(&[]).await?;
            before
        }
    };
    ensure!(before < CLAIMS, "all claims were bound before the operator was killed");
    setup.under(&mut operator, all_whole(&setup)).await?;
    operator.terminate().await?;
    Ok(format!("{before} of {CLAIMS} claims were bound at the crash, all of them after it"))
}

/// True if by this call the first operator wrote the status of a claim.
fn is_first_status(line: &Line) -> bool {
    let patches_status = |call: &KubeCall| {
        call.verb == KubeVerb::Patch && call.resource == "bucketclaims" && call.subresource.as_deref() == Some("status")
    };
    line.instance == FIRST_LIFE
        && line.world.is_some_and(|status| status < 300)
        && matches!(&line.call, Call::Kube(call) if patches_status(call))
}

fn name(index: usize) -> String {
    format!("claim-{index:02}")
}

async fn make(setup: &Setup<'_>) -> Result<()> {
    let claims = (0..CLAIMS).map(|index| async move { setup.claim(&name(index), json!({})).await });
    try_join_all(claims).await.map(|_| ())
}

/// Creates the claims and waits until one of them is bound.
async fn first_of_many(setup: &Setup<'_>) -> Result<()> {
    make(setup).await?;
    let waits = (0..CLAIMS).map(|index| Box::pin(async move { setup.ready(&name(index)).await }));
    let (first, _, _) = select_all(waits).await;
    first.map(|_| ())
}

async fn bound(setup: &Setup<'_>) -> Result<usize> {
    let claims = setup.claims().list(&ListParams::default()).await.context("can't list the claims")?;
    Ok(claims.iter().filter(|claim| ready_reason(claim) == Some("Bound")).count())
}

/// Checks that every claim is bound, with one record and one credential, and that buckets and keys
/// are distinct.
async fn all_whole(setup: &Setup<'_>) -> Result<()> {
    let waits = (0..CLAIMS).map(|index| async move { setup.ready(&name(index)).await });
    let claims: Vec<BucketClaim> = try_join_all(waits).await?;
    let mut keys = BTreeSet::new();
    let mut buckets = BTreeSet::new();
    for claim in &claims {
        let given = whole(setup, claim).await?;
        keys.insert(given.key_id);
        buckets.insert(given.bucket);
    }
    ensure!(keys.len() == CLAIMS && buckets.len() == CLAIMS, "claims share a key or a bucket");
    Ok(())
}
