//! All obstacles to `Ready` of `team-a/photos`, each caused as in real life.

use std::time::Duration;

use s3_sim::Protection;
use serde_json::json;
use stowage_world::{ADMIN_ACCOUNT, OPERATOR_NAMESPACE};

use crate::support::{Stage, claim, claim_with, ready, secrets};

/// Longer than the interval of drift checks and resyncs, including jitter.
pub const RESYNC: Duration = Duration::from_secs(700);
const BUCKET: &str = "team-a-photos";

/// A reason of `Ready=False`, and its cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    BackendNotReady,
    BackendNotAllowed,
    TemplateInvalid,
    BucketNameConflict,
    BucketExists,
    BucketMissing,
    SecretConflict,
    CreationInconsistent,
    ServedByAnother,
    BackendError,
    BucketNotEmpty,
    DeletionBlocked,
}

impl Trouble {
    /// Returns the reason in `Ready`.
    pub fn reason(self) -> String {
        format!("{self:?}")
    }

    /// Causes the trouble, and waits until the claim reports it.
    pub async fn make(self, stage: &Stage) {
        match self {
            Self::BackendNotReady => stage.apply(&claim("team-a", "photos").replace("main", "nowhere")).await,
            Self::BackendNotAllowed => {
                let nobody = json!({"spec": {"allowedNamespaces": {}}});
                stage.patch("s3backends", "", "main", nobody).await;
                stage.world.pass(Duration::from_secs(5)).await;
                stage.apply(&claim("team-a", "photos")).await;
            }
            Self::TemplateInvalid => {
                let short = json!({"spec": {"bucketNameTemplate": "{{ .Name }}..{{ .Namespace }}"}});
                stage.patch("s3backends", "", "main", short).await;
                stage.world.pass(Duration::from_secs(5)).await;
                stage.apply(&claim("team-a", "photos")).await;
            }
            Self::BucketNameConflict => {
                stage.apply(&claim_with("team-b", "holder", &format!("bucketName: {BUCKET}"))).await;
                stage.until_ready_is("team-b", "holder", "Bound").await;
                stage.apply(&claim("team-a", "photos")).await;
            }
            Self::BucketExists => {
                stage.world.store.put_bucket(ADMIN_ACCOUNT, BUCKET);
                stage.apply(&claim("team-a", "photos")).await;
            }
            Self::BucketMissing => {
                bind(stage, "").await;
                stage.world.store.remove_bucket(BUCKET);
            }
            Self::SecretConflict => {
                let theirs = "{apiVersion: v1, kind: Secret, metadata: {name: photos-s3, namespace: team-a}, stringData: {a: b}}";
                stage.apply(theirs).await;
                stage.apply(&claim("team-a", "photos")).await;
            }
            Self::CreationInconsistent => {
                bind(stage, "").await;
                let name = secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential").remove(0);
                stage.patch("secrets", OPERATOR_NAMESPACE, &name, json!({"data": {"secret_access_key": null}})).await;
            }
            Self::ServedByAnother => {
                bind(stage, "").await;
                let noted = json!({"metadata": {"annotations": {"broker.stowage.io/served-by": "nobody/nothing"}}});
                stage.patch("bucketclaims", "team-a", "photos", noted).await;
            }
            Self::BackendError => {
                stage.world.effects.set_plan("s3:CreateBucket internal-error".parse().expect("a plan"));
                stage.apply(&claim("team-a", "photos")).await;
            }
            Self::BucketNotEmpty => {
                bind(stage, "deletionPolicy: Delete").await;
                stage.world.store.put_object(BUCKET, "a", "x");
                stage.delete("bucketclaims", "team-a", "photos").await;
            }
            Self::DeletionBlocked => {
                bind(stage, "deletionPolicy: Delete, forceDelete: true").await;
                stage.world.store.put_object(BUCKET, "a", "x");
                stage.world.store.protect(BUCKET, "a", Protection { retention: None, legal_hold: true });
                stage.delete("bucketclaims", "team-a", "photos").await;
            }
        }
        stage.until(&format!("{self:?} is told"), |world| ready(world, "team-a", "photos") == self.reason()).await;
    }
}

async fn bind(stage: &Stage, spec: &str) {
    stage.apply(&claim_with("team-a", "photos", spec)).await;
    stage.until_ready_is("team-a", "photos", "Bound").await;
}
