//! What a tenant can write into its own namespace proves nothing (spec §2).

use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};
use stowage_sim::store::Dialect;
use stowage_sim::world::{ADMIN_ACCOUNT, OPERATOR_NAMESPACE, Options};

use crate::support::{Stage, claim_with, data, object, ready, secrets};

/// Longer than the interval of drift checks and resyncs, jitter included.
const RESYNC: Duration = Duration::from_secs(700);

/// A Secret as the operator writes it for a claim that is bound.
fn forged(claim: &Value, bucket: &str) -> String {
    let (name, uid) = (&claim["metadata"]["name"], &claim["metadata"]["uid"]);
    let labels = json!({
        "broker.stowage.io/role": "consumer-secret", "broker.stowage.io/backend": "main",
        "broker.stowage.io/claim-namespace": "team-a", "broker.stowage.io/claim-name": name,
        "broker.stowage.io/claim-uid": uid, "broker.stowage.io/bucket": bucket,
    });
    let owner = json!({
        "apiVersion": "broker.stowage.io/v1alpha1", "kind": "BucketClaim", "name": name, "uid": uid, "controller": true,
    });
    let metadata = json!({"namespace": "team-a", "name": "photos-s3", "labels": labels, "ownerReferences": [owner]});
    let data = json!({"BUCKET_NAME": bucket, "AWS_ACCESS_KEY_ID": "AKIAFORGED"});
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}).to_string()
}

#[rstest]
fn a_forged_consumer_secret_opens_no_bucket_of_others(
    #[values("Never", "Owned")] policy: &str,
    #[values(true, false)] tagging: bool,
) {
    let dialect = Dialect { tagging, ..Dialect::default() };
    Stage::run_with(Options { dialect, ..Options::default() }, async |stage| {
        stage.set_adoption(policy).await;
        stage.world.store.put_bucket(ADMIN_ACCOUNT, "victim");
        stage.world.store.put_object("victim", "theirs", "data");
        stage
            .apply(&claim_with("team-a", "photos", "bucketName: victim, deletionPolicy: Delete, forceDelete: true"))
            .await;
        stage.until_ready_is("team-a", "photos", "BucketExists").await;
        let claim = object(&stage.world, "bucketclaims", "team-a", "photos");
        stage.apply(&forged(&claim, "victim")).await;
        stage.world.pass(RESYNC).await;
        assert_eq!(ready(&stage.world, "team-a", "photos"), "BucketExists");
        assert!(secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential").is_empty());
        let left = data(&stage.world, "team-a", "photos-s3");
        assert_eq!(left["AWS_ACCESS_KEY_ID"], "AKIAFORGED", "nothing is given to it");
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage.until_gone("team-a", "photos").await;
        assert!(stage.world.store.objects("victim").contains_key("theirs"));
    });
}
