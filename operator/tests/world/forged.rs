//! Data that a tenant writes into its own namespace proves nothing (spec §2).

use std::time::Duration;

use rstest::rstest;
use s3_sim::Dialect;
use serde_json::{Value, json};
use stowage_world::{ADMIN_ACCOUNT, OPERATOR_NAMESPACE, Options, World};

use crate::support::{Stage, claim, claim_with, data, internal_of, object, ready, secrets, tenant_can_work};

/// Longer than the interval of drift checks and resyncs, including jitter.
const RESYNC: Duration = Duration::from_secs(700);

/// Returns a Secret as the operator writes it for a bound claim, in any namespace. Its finalizer
/// keeps the garbage collector from deleting it.
fn forged(claim: &Value, namespace: &str, name_of_secret: &str, bucket: &str) -> String {
    let (name, uid) = (&claim["metadata"]["name"], &claim["metadata"]["uid"]);
    let labels = json!({
        "broker.stowage.io/role": "consumer-secret", "broker.stowage.io/backend": "main",
        "broker.stowage.io/claim-namespace": "team-a", "broker.stowage.io/claim-name": name,
        "broker.stowage.io/claim-uid": uid, "broker.stowage.io/bucket": bucket,
    });
    let owner = json!({
        "apiVersion": "broker.stowage.io/v1alpha1", "kind": "BucketClaim", "name": name, "uid": uid, "controller": true,
    });
    let metadata = json!({
        "namespace": namespace, "name": name_of_secret, "labels": labels, "ownerReferences": [owner],
        "finalizers": ["example.com/kept"],
    });
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
        stage.apply(&forged(&claim, "team-a", "photos-s3", "victim")).await;
        stage.world.pass(RESYNC).await;
        assert_eq!(ready(&stage.world, "team-a", "photos"), "BucketExists");
        assert!(secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential").is_empty());
        let left = data(&stage.world, "team-a", "photos-s3");
        assert_eq!(left["AWS_ACCESS_KEY_ID"], "AKIAFORGED", "nothing is given to it");
        stage.patch("secrets", "team-a", "photos-s3", json!({"metadata": {"finalizers": null}})).await;
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage.until_gone("team-a", "photos").await;
        assert!(stage.world.store.objects("victim").contains_key("theirs"));
    });
}

/// Labels prove nothing in the operator's namespace either: the deletion of a claim only deletes
/// its own Secrets.
// covers: 2.labels.noProof
#[test]
fn what_is_another_claims_by_its_data_outlives_the_claim_that_its_label_names() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let uid = object(&stage.world, "bucketclaims", "team-a", "photos")["metadata"]["uid"].clone();
        stage.apply(&claim("team-b", "films")).await;
        stage.until_ready_is("team-b", "films", "Bound").await;
        // The operator repairs no label of a paused claim.
        let paused =
            |on: bool| json!({"metadata": {"annotations": {"broker.stowage.io/paused": on.then_some("true")}}});
        stage.patch("bucketclaims", "team-b", "films", paused(true)).await;
        stage.until_ready_is("team-b", "films", "Paused").await;
        let theirs = internal_of(&stage.world, "films");
        assert_eq!(theirs.len(), 2);
        for name in &theirs {
            let label = json!({"metadata": {"labels": {"broker.stowage.io/claim-uid": uid}}});
            stage.patch("secrets", OPERATOR_NAMESPACE, name, label).await;
        }
        stage.world.pass(RESYNC).await;
        assert_eq!(ready(&stage.world, "team-a", "photos"), "Bound", "the other's key is no copy of its own");
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage.until_gone("team-a", "photos").await;
        assert_eq!(internal_of(&stage.world, "films"), theirs);
        tenant_can_work(&stage.world, "team-b", "films-s3").await;
        stage.patch("bucketclaims", "team-b", "films", paused(false)).await;
        stage.until_ready_is("team-b", "films", "Bound").await;
    });
}

/// A UID is not secret, and anybody can write labels and owner references.
#[test]
fn a_secret_of_another_namespace_that_names_a_claim_as_its_owner_is_none_of_its() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let claim = object(&stage.world, "bucketclaims", "team-a", "photos");
        for name in ["photos-s3", "other"] {
            stage.apply(&forged(&claim, "team-b", name, "team-a-photos")).await;
        }
        stage.delete("secrets", "team-a", "photos-s3").await;
        let is_back = |world: &World| !object(world, "secrets", "team-a", "photos-s3").is_null();
        stage.soon("the consumer Secret is there again", 10, is_back).await;
        stage.world.pass(RESYNC).await;
        for name in ["photos-s3", "other"] {
            assert_eq!(data(&stage.world, "team-b", name)["AWS_ACCESS_KEY_ID"], "AKIAFORGED");
        }
        tenant_can_work(&stage.world, "team-a", "photos-s3").await;
    });
}
