//! A key is replaced while it is in use.

use std::cell::Cell;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use futures::future::try_join3;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use serde_json::json;
use stowage_operator::api::BucketClaim;
use stowage_operator::api::wire::{self, Role};
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::setup::Setup;
use stowage_testbed::objects::text;

use tokio::time::{interval, timeout};

use crate::tenant::Tenant;

const CLAIM: &str = "data";
/// Time for which the old key works after the switch, in seconds.
const OVERLAP: i64 = 4;
/// Minimum age of a key that is replaced (spec §3.3), which is most of the scenario's duration.
const YOUNGEST: Duration = Duration::from_secs(60);
/// Interval of uses per tenant.
const PACE: Duration = Duration::from_millis(20);
/// Value of the annotation that requests a rotation.
const REQUEST: &str = "first";

/// Two tenants use the bucket constantly: one reads the Secret before each use, the other keeps the
/// key that it read at first.
pub(super) async fn overlap(environment: &Environment) -> Result<String> {
    let setup = environment.setup("rotation").await?;
    let gateway = setup.start_gateway().await?;
    let mut operator = setup.start_operator_behind(&gateway.url(), &[]).await?;
    let seen = setup.under(&mut operator, in_use(&setup)).await?;
    operator.terminate().await?;
    gateway.end().await?;
    Ok(seen)
}

async fn in_use(setup: &Setup<'_>) -> Result<String> {
    setup.claim(CLAIM, json!({"rotationPolicy": {"overlapSeconds": OVERLAP}})).await?;
    setup.ready(CLAIM).await?;
    let held = Tenant::of(&connection(setup).await?)?;
    let other = format!("{}-other", setup.tenant);
    setup.environment.store.make(&other).await?;
    held.is_kept_out_of(&other).await?;

    let ended = Cell::new(false);
    let holds = async {
        let seen = holds_on(setup, &held).await;
        ended.set(true);
        seen
    };
    let reads = reads_again(setup, &ended, &held.key_id);
    let (expires, held, read) = try_join3(rotate(setup, &held.key_id), holds, reads).await?;
    ensure!(held.refused_at >= expires, "the old key was refused at {}, and expires at {expires}", held.refused_at);
    let earliest = read.old_until + SignedDuration::from_secs(OVERLAP);
    ensure!(expires >= earliest, "the Secret held the old key at {}, and that expires at {expires}", read.old_until);
    Ok(format!(
        "{} uses by who reads the Secret again, {} with the old key until it expired: 0 failed",
        read.count, held.count
    ))
}

/// Returns the time limit for the rotation.
pub(super) fn limit(setup: &Setup<'_>) -> Duration {
    YOUNGEST + setup.environment.patience
}

async fn connection(setup: &Setup<'_>) -> Result<Secret> {
    setup.secrets(&setup.tenant).get(&format!("{CLAIM}-s3")).await.context("no consumer Secret")
}

/// Requests a rotation and waits for it. Returns the expiry of the old key.
async fn rotate(setup: &Setup<'_>, old: &str) -> Result<Timestamp> {
    setup.patch(CLAIM, json!({"metadata": {"annotations": {wire::ROTATE: REQUEST}}})).await?;
    let rotated = |claim: Option<&BucketClaim>| {
        let status = claim.and_then(|claim| claim.status.as_ref());
        status.is_some_and(|status| {
            status.rotation_generation == Some(2) && status.handled_rotate_request.as_deref() == Some(REQUEST)
        })
    };
    let claim = setup.environment.wait_for_up_to(limit(setup), &setup.claims(), CLAIM, "rotated", rotated).await?;
    let claim = claim.context("the claim is gone")?;
    // The expiry is set by a later pass, which has seen the Secret with the new key.
    let (secrets, name) = (setup.secrets(&setup.system), format!("vc-{}", old.to_lowercase()));
    let stamped = |key: Option<&Secret>| key.is_some_and(|key| expiry(key).is_some());
    let stamped = setup.environment.wait(&secrets, &name, "stamped", stamped).await?.context("the old key is gone")?;
    let keys = setup.internal(&claim, Role::VirtualCredential).await?;
    let current: Vec<&Secret> = keys.iter().filter(|key| expiry(key).is_none()).collect();
    let shown = claim.status.and_then(|status| status.access_key_id).unwrap_or_default();
    let right = keys.len() == 2 && current.len() == 1 && text(current[0], "access_key_id") == shown;
    ensure!(right, "of {} keys {} don't expire, and the status shows {shown}", keys.len(), current.len());
    expiry(&stamped).context("the old key doesn't expire")
}

/// Returns the expiry of a key, if it has one.
pub(super) fn expiry(key: &Secret) -> Option<Timestamp> {
    key.annotations().get(wire::EXPIRES_AT)?.parse().ok()
}

/// Result of the tenant that keeps its first key.
struct Held {
    count: usize,
    refused_at: Timestamp,
}

/// Uses one key until it is refused, which must not be before its expiry.
async fn holds_on(setup: &Setup<'_>, tenant: &Tenant) -> Result<Held> {
    let mut count = 0;
    let mut pace = interval(PACE);
    let used = async {
        loop {
            pace.tick().await;
            match tenant.use_bucket(count).await {
                Ok(()) => count += 1,
                Err(why) if why.is_unknown_key() => return Ok(Timestamp::now()),
                Err(why) => return Err(why).with_context(|| format!("use {count} of the old key")),
            }
        }
    };
    let refused_at = timeout(limit(setup), used).await;
    let refused_at =
        refused_at.map_err(|_| anyhow!("the old key still works after {} s", limit(setup).as_secs()))??;
    Ok(Held { count, refused_at })
}

/// Result of the tenant that reads the Secret before each use.
struct Read {
    count: usize,
    /// Time of the last read that returned the old key; the switch happened after it was requested.
    old_until: Timestamp,
}

/// Uses the bucket with the current content of the Secret, until `ended`.
async fn reads_again(setup: &Setup<'_>, ended: &Cell<bool>, old: &str) -> Result<Read> {
    let mut read = Read { count: 0, old_until: Timestamp::now() };
    let mut tenant = Tenant::of(&connection(setup).await?)?;
    let mut pace = interval(PACE);
    while !ended.get() {
        pace.tick().await;
        let asked = Timestamp::now();
        let secret = connection(setup).await?;
        let id = text(&secret, "AWS_ACCESS_KEY_ID");
        if id == old {
            read.old_until = asked;
        }
        if id != tenant.key_id {
            tenant = Tenant::of(&secret)?;
        }
        tenant.use_bucket(read.count).await.with_context(|| format!("use {} of key {id}", read.count))?;
        read.count += 1;
    }
    ensure!(tenant.key_id != old, "the Secret still holds the old key");
    Ok(read)
}
