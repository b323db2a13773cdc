//! The scenes: problems, each played long enough for its alert to fire.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use stowage_world::effects::GatewayPlan;
use stowage_world::fixtures::{access_with, claim, claim_on, claim_with};
use stowage_world::{ADMIN_ACCESS_KEY, Accesses, Foreign, OPERATOR_NAMESPACE, Options};

use super::environment::{Environment, TENANT};
use super::scrapes::INTERVAL;

const CLASS: &str = "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: buckets}, \
                     provisioner: broker.stowage.io/bucket, parameters: {backend: main}}";
/// An ObjectBucketClaim with a limit that no store enforces.
const UNSERVED: &str = "{apiVersion: objectbucket.io/v1alpha1, kind: ObjectBucketClaim, \
                        metadata: {name: charts, namespace: team-a}, spec: {storageClassName: buckets, \
                        generateBucketName: charts, additionalConfig: {maxObjects: \"5\"}}}";

/// A problem to play.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Scene {
    /// No problem: claims are created and deleted, keys rotate, tenants read and write.
    Quiet,
    /// The operator has stopped.
    OperatorDown,
    /// Another process holds the Lease and does no work.
    NoLeader,
    /// A claim names a backend that doesn't exist.
    ClaimNotReady,
    /// A claim requests a bucket that another claim holds.
    ClaimStalled,
    /// A claim is deleted while its bucket contains objects.
    DeletionStuck,
    /// An access requests a bucket that its owner doesn't share.
    AccessNotReady,
    /// An ObjectBucketClaim requests something unsupported.
    ObjectBucketClaimNotBound,
    /// The store no longer accepts the administrator's key.
    BackendNotReady,
    /// The API server fails the status updates of a claim that was edited.
    ReconcileErrors,
    /// The store fails the calls of drift checks.
    UpstreamErrors,
    /// The gateway has stopped.
    GatewayDown,
    /// The API server no longer answers the gateway.
    GatewayStale,
    /// The store denies the gateway requests that a tenant is allowed to make.
    GatewayStoreTrouble,
    /// The gateway can't connect to the store.
    GatewayStoreResting,
    /// A bucket has reached its quota.
    QuotaFull,
    /// The scan of a bucket with a quota fails.
    QuotaScansFail,
}

impl Scene {
    pub(super) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Returns the alert that the scene is for.
    pub(super) fn alert(self) -> Option<&'static str> {
        match self {
            Self::Quiet => None,
            Self::OperatorDown => Some("StowageOperatorDown"),
            Self::NoLeader => Some("StowageNoLeader"),
            Self::ClaimNotReady => Some("StowageClaimNotReady"),
            Self::ClaimStalled => Some("StowageClaimStalled"),
            Self::DeletionStuck => Some("StowageDeletionStuck"),
            Self::AccessNotReady => Some("StowageAccessNotReady"),
            Self::ObjectBucketClaimNotBound => Some("StowageObjectBucketClaimNotBound"),
            Self::BackendNotReady => Some("StowageBackendNotReady"),
            Self::ReconcileErrors => Some("StowageReconcileErrors"),
            Self::UpstreamErrors => Some("StowageUpstreamErrors"),
            Self::GatewayDown => Some("StowageGatewayDown"),
            Self::GatewayStale => Some("StowageGatewayStale"),
            Self::GatewayStoreTrouble => Some("StowageGatewayStoreTrouble"),
            Self::GatewayStoreResting => Some("StowageGatewayStoreResting"),
            Self::QuotaFull => Some("StowageQuotaFull"),
            Self::QuotaScansFail => Some("StowageQuotaScansFail"),
        }
    }

    /// Returns the alerts that fire in it.
    pub(super) fn fires(self) -> BTreeSet<&'static str> {
        self.alert().into_iter().collect()
    }

    pub(super) fn options(self) -> Options {
        Options {
            seed: 1,
            elects: self == Self::NoLeader,
            accesses: Accesses::Served,
            foreign: Some(Foreign::Own),
            gateway_plan: Some(GatewayPlan::default()),
            // As often as an API server sends bookmarks.
            gateway_watch: Some(Duration::from_secs(60)),
            ..Options::default()
        }
    }

    pub(super) async fn play(self, environment: &mut Environment) -> Result<()> {
        match self {
            Self::Quiet => quiet(environment).await,
            Self::OperatorDown => operator_down(environment).await,
            Self::NoLeader => no_leader(environment).await,
            Self::ClaimNotReady => claim_not_ready(environment).await,
            Self::ClaimStalled => claim_stalled(environment).await,
            Self::DeletionStuck => deletion_stuck(environment).await,
            Self::AccessNotReady => access_not_ready(environment).await,
            Self::ObjectBucketClaimNotBound => obc_not_bound(environment).await,
            Self::BackendNotReady => backend_not_ready(environment).await,
            Self::ReconcileErrors => reconcile_errors(environment).await,
            Self::UpstreamErrors => upstream_errors(environment).await,
            Self::GatewayDown => gateway_down(environment).await,
            Self::GatewayStale => gateway_stale(environment).await,
            Self::GatewayStoreTrouble => gateway_store_trouble(environment).await,
            Self::GatewayStoreResting => gateway_store_resting(environment).await,
            Self::QuotaFull => quota_full(environment).await,
            Self::QuotaScansFail => quota_scans_fail(environment).await,
        }
    }
}

async fn quiet(environment: &mut Environment) -> Result<()> {
    environment.apply(&claim_with(TENANT, "photos", "quota: {hard: 1Mi}")).await;
    let (bucket, tenant) = environment.bound("photos").await?;
    tenant.put_object().bucket(&bucket).key("a").body(b"a".to_vec().into()).send().await.context("PutObject")?;
    environment.watch_reader(60, &tenant, &bucket, "a").await;
    environment.edit("photos", &json!({"metadata": {"annotations": {"broker.stowage.io/rotate": "now"}}})).await?;
    environment.apply(&claim(TENANT, "films")).await;
    environment.watch_reader(60, &tenant, &bucket, "a").await;
    environment.delete("films").await?;
    environment.watch(60).await;
    Ok(())
}

async fn operator_down(environment: &mut Environment) -> Result<()> {
    environment.watch(20).await;
    environment.operator.stop();
    environment.operator_answers = false;
    environment.watch(20).await;
    Ok(())
}

/// The holder renews the Lease before its 45 seconds are over, and does nothing else.
async fn no_leader(environment: &mut Environment) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(environment.world.kube(), OPERATOR_NAMESPACE);
    environment.watch(1).await;
    let spec = |transitions: u64| json!({"spec": {"holderIdentity": "somebody", "leaseTransitions": transitions}});
    leases.get("stowage-operator").await.context("nobody has led")?;
    for renewal in 0..60 {
        let patch = Patch::Merge(spec(renewal));
        leases
            .patch("stowage-operator", &PatchParams::default(), &patch)
            .await
            .context("the Lease can't be written")?;
        environment.tick().await;
    }
    Ok(())
}

async fn claim_not_ready(environment: &mut Environment) -> Result<()> {
    environment.watch(5).await;
    environment.apply(&claim_on("nowhere", TENANT, "photos", "")).await;
    environment.watch(30).await;
    Ok(())
}

async fn claim_stalled(environment: &mut Environment) -> Result<()> {
    environment.apply(&claim_with(TENANT, "photos", "bucketName: photos")).await;
    environment.bound("photos").await?;
    environment.apply(&claim_with(TENANT, "more-photos", "bucketName: photos")).await;
    environment.watch(30).await;
    Ok(())
}

async fn deletion_stuck(environment: &mut Environment) -> Result<()> {
    environment.apply(&claim_with(TENANT, "photos", "deletionPolicy: Delete")).await;
    let (bucket, tenant) = environment.bound("photos").await?;
    tenant.put_object().bucket(&bucket).key("a").body(b"a".to_vec().into()).send().await.context("PutObject")?;
    environment.delete("photos").await?;
    environment.watch(90).await;
    Ok(())
}

async fn access_not_ready(environment: &mut Environment) -> Result<()> {
    environment.apply(&claim(TENANT, "photos")).await;
    environment.bound("photos").await?;
    let buckets = format!("buckets: [{{claimRef: {{namespace: {TENANT}, name: photos}}, mode: ReadOnly}}]");
    environment.apply(&access_with("team-b", "reader", &buckets)).await;
    environment.watch(45).await;
    Ok(())
}

async fn obc_not_bound(environment: &mut Environment) -> Result<()> {
    environment.apply(CLASS).await;
    environment.watch(5).await;
    environment.apply(UNSERVED).await;
    environment.watch(30).await;
    Ok(())
}

/// Kept short: if the store denies everything for a quarter of an hour, the alert about failing
/// calls fires too.
async fn backend_not_ready(environment: &mut Environment) -> Result<()> {
    environment.watch(20).await;
    environment.world.store.revoke_key(ADMIN_ACCESS_KEY);
    environment.watch(22).await;
    Ok(())
}

async fn reconcile_errors(environment: &mut Environment) -> Result<()> {
    environment.apply(&claim(TENANT, "photos")).await;
    environment.bound("photos").await?;
    environment.watch(10).await;
    environment.break_operator("kube:patch bucketclaims/status server-error(not)")?;
    environment.edit("photos", &json!({"spec": {"quota": {"hard": "1Gi"}}})).await?;
    environment.watch(60).await;
    Ok(())
}

async fn upstream_errors(environment: &mut Environment) -> Result<()> {
    environment.apply(&claim(TENANT, "photos")).await;
    environment.bound("photos").await?;
    environment.watch(10).await;
    environment.break_operator("s3:GetBucketTagging slow-down")?;
    environment.watch(60).await;
    Ok(())
}

async fn gateway_down(environment: &mut Environment) -> Result<()> {
    environment.watch(10).await;
    environment.gateway_answers = false;
    environment.watch(10).await;
    Ok(())
}

async fn gateway_stale(environment: &mut Environment) -> Result<()> {
    environment.watch(10).await;
    environment.break_gateway("kube:watch secrets hang; kube:list secrets hang")?;
    environment.watch(30).await;
    Ok(())
}

async fn gateway_store_trouble(environment: &mut Environment) -> Result<()> {
    environment.apply(&claim(TENANT, "photos")).await;
    let (bucket, tenant) = environment.bound("photos").await?;
    tenant.put_object().bucket(&bucket).key("a").body(b"a".to_vec().into()).send().await.context("PutObject")?;
    environment.watch_reader(10, &tenant, &bucket, "a").await;
    environment.break_gateway("s3:GetObject access-denied")?;
    environment.watch_reader(20, &tenant, &bucket, "a").await;
    Ok(())
}

/// Kept short: after ten minutes of failing probes the alert about store trouble fires too.
async fn gateway_store_resting(environment: &mut Environment) -> Result<()> {
    environment.apply(&claim(TENANT, "photos")).await;
    let (bucket, tenant) = environment.bound("photos").await?;
    tenant.put_object().bucket(&bucket).key("a").body(b"a".to_vec().into()).send().await.context("PutObject")?;
    environment.watch_reader(10, &tenant, &bucket, "a").await;
    environment.break_gateway("s3:GetObject unreachable")?;
    for _ in 0..18 {
        // A circuit opens for seconds at a time, so only constant requests keep it open.
        for _ in 0..INTERVAL {
            // The request is expected to fail.
            let _ = tenant.get_object().bucket(&bucket).key("a").send().await;
            environment.world.pass(Duration::from_secs(1)).await;
        }
        environment.scrape();
    }
    Ok(())
}

async fn quota_full(environment: &mut Environment) -> Result<()> {
    environment.apply(&claim_with(TENANT, "photos", "quota: {hard: 1Ki}")).await;
    let (bucket, tenant) = environment.bound("photos").await?;
    let content = vec![b'a'; 600];
    tenant.put_object().bucket(&bucket).key("a").body(content.into()).send().await.context("PutObject")?;
    // Objects alone only come close to the limit, because their metadata counts until the next
    // scan. So the limit is lowered.
    environment.apply(&claim_with(TENANT, "photos", "quota: {hard: 512}")).await;
    environment.watch(40).await;
    Ok(())
}

async fn quota_scans_fail(environment: &mut Environment) -> Result<()> {
    environment.watch(10).await;
    environment.break_gateway("s3:ListMultipartUploads internal-error; s3:ListObjectVersions internal-error")?;
    environment.apply(&claim_with(TENANT, "photos", "quota: {hard: 1Mi}")).await;
    environment.watch(90).await;
    Ok(())
}
