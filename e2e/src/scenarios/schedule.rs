//! Keys that are replaced at a certain age, under an operator with its clock set ahead.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::runtime::wait::conditions::is_deleted;
use serde_json::json;
use stowage_operator::api::BucketClaim;
use stowage_operator::api::wire::Role;
use stowage_testbed::clock::FakeClock;
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::setup::Setup;

use super::rotation::expiry;
use super::whole::given;

const CLAIM: &str = "data";
/// The shortest interval that the contract allows.
const INTERVAL_DAYS: u32 = 7;
/// Overlap of keys, in seconds.
const OVERLAP: i64 = 300;
/// A day more than the interval.
const LATER: u32 = INTERVAL_DAYS + 1;

/// After a week the key is replaced. With the clock set back nothing happens. After another week
/// the old key is gone, and the next one is replaced.
pub(super) async fn rotation(environment: &Environment, clock: &FakeClock) -> Result<String> {
    let setup = environment.setup("schedule").await?;
    let mut operator = setup.start_operator(&[]).await?;
    let first = setup.under(&mut operator, async {
        let policy = json!({"mode": "TimeBased", "intervalDays": INTERVAL_DAYS, "overlapSeconds": OVERLAP});
        setup.claim(CLAIM, json!({"rotationPolicy": policy})).await?;
        let claim = setup.ready(CLAIM).await?;
        given(&setup, &claim).await
    });
    let first = first.await?.key_id;
    operator.terminate().await?;

    let before = Timestamp::now();
    let mut operator = setup.start_operator_ahead(clock, LATER).await?;
    let claim = setup.under(&mut operator, replaced(&setup, 2, &first, (before, LATER))).await?;
    operator.terminate().await?;
    let keys = setup.internal(&claim, Role::VirtualCredential).await?;
    ensure!(keys.len() == 2, "after a rotation there are {} keys", keys.len());
    let second = given(&setup, &claim).await?.key_id;

    let mut operator = setup.start_operator(&[]).await?;
    setup.under(&mut operator, at_rest(&setup)).await?;
    operator.terminate().await?;
    let same = versions(&setup.internal(&claim, Role::VirtualCredential).await?);
    ensure!(same == versions(&keys), "keys were changed by an operator whose clock was set back");

    let before = Timestamp::now();
    let mut operator = setup.start_operator_ahead(clock, 2 * LATER).await?;
    let told = setup.under(&mut operator, async {
        let old = keys.iter().find(|key| expiry(key).is_some()).context("no key expires")?;
        let (secrets, uid) = (setup.secrets(&setup.system), old.uid().unwrap_or_default());
        setup.environment.wait(&secrets, &old.name_any(), "gone after its end", is_deleted(&uid)).await?;
        replaced(&setup, 3, &second, (before, 2 * LATER)).await?;
        Ok(format!("two keys replaced in {} days, none by a clock that was set back", 2 * LATER))
    });
    let told = told.await?;
    operator.terminate().await?;
    Ok(told)
}

/// Waits for this generation of keys, from an operator that was started at `before` with its clock
/// `days` days ahead. The old key must expire after the overlap, by the operator's clock.
async fn replaced(
    setup: &Setup<'_>,
    generation: i64,
    old: &str,
    (before, days): (Timestamp, u32),
) -> Result<BucketClaim> {
    let rotated = |claim: Option<&BucketClaim>| {
        claim
            .and_then(|claim| claim.status.as_ref())
            .is_some_and(|status| status.rotation_generation == Some(generation))
    };
    let claim =
        setup.environment.wait(&setup.claims(), CLAIM, "rotated", rotated).await?.context("the claim is gone")?;
    let stamped = |key: Option<&Secret>| key.is_some_and(|key| expiry(key).is_some());
    let name = format!("vc-{}", old.to_lowercase());
    let key = setup.environment.wait(&setup.secrets(&setup.system), &name, "stamped", stamped).await?;
    let end = key.as_ref().and_then(expiry).context("the old key is gone")?;
    let ahead = SignedDuration::from_hours(24 * i64::from(days));
    // Between the operator's start and now, with a second for rounding.
    let (earliest, latest) = (before + ahead, Timestamp::now() + ahead + SignedDuration::from_secs(1));
    let overlap = SignedDuration::from_secs(OVERLAP);
    let in_time = (earliest + overlap..=latest + overlap).contains(&end);
    ensure!(in_time, "the old key ends at {end}, not {OVERLAP} s after {earliest} to {latest}");
    let shown = given(setup, &claim).await?.key_id;
    ensure!(shown != old, "the Secret still holds the old key");
    Ok(claim)
}

/// Waits until an operator has completed its start and has no call pending.
async fn at_rest(setup: &Setup<'_>) -> Result<()> {
    let (fault_proxy, patience) = (setup.fault_proxy()?, setup.environment.patience);
    fault_proxy.until(patience, "come to rest", |calls| calls.has_begun() && calls.are_answered()).await.map(|_| ())
}

fn versions(secrets: &[Secret]) -> BTreeMap<String, Option<String>> {
    secrets.iter().map(|secret| (secret.name_any(), secret.resource_version())).collect()
}
