//! From a claim to Bound, away again, and back.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::Api;
use kube::runtime::wait::conditions::is_deleted;
use kube::{Resource, ResourceExt};
use serde_json::json;
use stowage_operator::api::wire::{self, Role};
use stowage_operator::api::{BucketClaim, BucketOrigin, BucketRecord, Phase};
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::setup::{GATEWAY, Setup};
use stowage_testbed::objects::text;

const CLAIM: &str = "data";
/// Roles of the Secrets that a bound claim without public access has in the operator namespace.
const ROLES: [Role; 2] = [Role::BucketRecord, Role::VirtualCredential];

pub(super) async fn play(environment: &Environment) -> Result<String> {
    let setup = environment.setup("bind").await?;
    let mut operator = setup.start_operator(&[]).await?;
    let bucket = setup.under(&mut operator, round_trip(&setup)).await?;
    operator.terminate().await?;
    Ok(format!("bucket {bucket} made, kept and adopted again; the operator ended on SIGTERM"))
}

async fn round_trip(setup: &Setup<'_>) -> Result<String> {
    setup.claim(CLAIM, json!({"quota": {"hard": "1.5Gi"}})).await?;
    let claim = setup.ready(CLAIM).await?;
    let bucket = check_bound(setup, &claim, BucketOrigin::Created).await?;
    check_tags(setup, &claim, &bucket).await?;
    let consumer = setup.secrets(&setup.tenant).get(&consumer_name()).await.context("no consumer Secret")?;

    setup.delete(&claim).await?;
    for role in ROLES {
        let left = setup.internal(&claim, role).await?;
        ensure!(left.is_empty(), "{} Secrets of role {} are left", left.len(), role.as_str());
    }
    let uid = consumer.uid().unwrap_or_default();
    let secrets = setup.secrets(&setup.tenant);
    setup.environment.wait(&secrets, &consumer_name(), "gone", is_deleted(&uid)).await?;
    let kept = setup.environment.store.tags(&bucket).await?;
    ensure!(kept.is_some(), "bucket {bucket} is gone with its claim");

    setup.claim(CLAIM, json!({})).await?;
    let again = setup.ready(CLAIM).await?;
    check_bound(setup, &again, BucketOrigin::Adopted).await
}

fn consumer_name() -> String {
    format!("{CLAIM}-s3")
}

/// What a bound claim looks like. Returns the bucket's name.
async fn check_bound(setup: &Setup<'_>, claim: &BucketClaim, origin: BucketOrigin) -> Result<String> {
    let status = claim.status.clone().unwrap_or_default();
    ensure!(status.phase == Some(Phase::Bound), "the phase is {:?}", status.phase);
    ensure!(status.bucket_origin == Some(origin), "the origin is {:?}", status.bucket_origin);
    let bucket = status.bucket_name.context("the status names no bucket")?;
    let expected = format!("{}-{CLAIM}", setup.tenant);
    ensure!(bucket == expected, "the bucket is {bucket}, not {expected}");

    let consumer = setup.secrets(&setup.tenant).get(&consumer_name()).await.context("no consumer Secret")?;
    check_consumer(claim, &consumer, &bucket)?;
    for role in ROLES {
        let found = setup.internal(claim, role).await?.len();
        ensure!(found == 1, "there are {found} Secrets of role {}", role.as_str());
    }
    let credential = setup.internal(claim, Role::VirtualCredential).await?.remove(0);
    for (internal, shown) in [("access_key_id", "AWS_ACCESS_KEY_ID"), ("secret_access_key", "AWS_SECRET_ACCESS_KEY")] {
        let same = text(&credential, internal) == text(&consumer, shown);
        ensure!(same, "{shown} of the consumer Secret is not that of the credential");
    }
    ensure!(text(&credential, "bucket_name") == bucket, "the credential is for another bucket");
    let record = setup.internal(claim, Role::BucketRecord).await?.remove(0);
    let record = BucketRecord::read(&record)?;
    let adopted = origin == BucketOrigin::Adopted;
    ensure!(record.bucket.as_str() == bucket && record.adopted == adopted, "the record says {record:?}");
    Ok(bucket)
}

fn check_consumer(claim: &BucketClaim, consumer: &Secret, bucket: &str) -> Result<()> {
    let mut keys = BTreeSet::from([
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_S3",
        "BUCKET_NAME",
        "S3_ADDRESSING_STYLE",
    ]);
    if claim.spec.quota.is_some() {
        keys.insert("QUOTA_HARD_BYTES");
        let quota = text(consumer, "QUOTA_HARD_BYTES");
        ensure!(quota == "1610612736", "QUOTA_HARD_BYTES is {quota}");
    }
    let found: BTreeSet<&str> = consumer.data.iter().flatten().map(|(key, _)| key.as_str()).collect();
    ensure!(found == keys, "the consumer Secret has the keys {found:?}");
    ensure!(text(consumer, "BUCKET_NAME") == bucket, "BUCKET_NAME is another");
    ensure!(text(consumer, "AWS_ENDPOINT_URL") == GATEWAY, "AWS_ENDPOINT_URL is another");
    let owner = claim.controller_owner_ref(&()).context("the claim has no UID")?;
    let owners = consumer.owner_references();
    let owned = owners.iter().any(|found| found.uid == owner.uid && found.controller == Some(true));
    ensure!(owned, "the consumer Secret's owners are {owners:?}");
    Ok(())
}

async fn check_tags(setup: &Setup<'_>, claim: &BucketClaim, bucket: &str) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(setup.environment.client.clone());
    let installation = namespaces.get("kube-system").await.context("can't read namespace kube-system")?;
    let expected = BTreeMap::from([
        (wire::TAG_INSTALLATION.to_owned(), installation.uid().unwrap_or_default()),
        (wire::TAG_CLAIM.to_owned(), format!("{}/{CLAIM}", setup.tenant)),
        (wire::TAG_CLAIM_UID.to_owned(), claim.uid().unwrap_or_default()),
    ]);
    let tags = setup.environment.store.tags(bucket).await?;
    ensure!(tags.as_ref() == Some(&expected), "the tags of {bucket} are {tags:?}");
    Ok(())
}
