//! The operator's memory about a claim: what is remembered, and what is not (spec §2, §3.2).

use std::time::Duration;

use s3_sim::Versioning;
use serde_json::{Value, json};
use stowage_operator::api::FINALIZER;
use stowage_world::{OPERATOR_NAMESPACE, World};

use crate::rotation::{bound, request, status};
use crate::support::{Stage, claim, claim_with, data, events, object, ready, secrets};
use crate::troubles::RESYNC;

const BUCKET: &str = "team-a-photos";

fn paused(on: Value) -> Value {
    json!({"metadata": {"annotations": {"broker.stowage.io/paused": on}}})
}

async fn pause(stage: &Stage) {
    stage.patch("bucketclaims", "team-a", "photos", paused(json!("true"))).await;
    stage.until_ready_is("team-a", "photos", "Paused").await;
}

async fn delete_record(stage: &Stage) -> String {
    let record = secrets(&stage.world, OPERATOR_NAMESPACE, "bucket-record").remove(0);
    stage.delete("secrets", OPERATOR_NAMESPACE, &record).await;
    record
}

// covers: 3.2.tags, 3.2.tags.installation
#[test]
fn the_tags_name_cluster_claim_and_uid() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let uid = |plural, namespace, name| object(&stage.world, plural, namespace, name)["metadata"]["uid"].clone();
        let tags = json!(stage.world.store.bucket(BUCKET).unwrap().tags);
        let expected = json!({
            "broker.stowage.io/installation": uid("namespaces", "", "kube-system"),
            "broker.stowage.io/claim": "team-a/photos",
            "broker.stowage.io/claim-uid": uid("bucketclaims", "team-a", "photos"),
        });
        assert_eq!(tags, expected);
    });
}

// covers: 3.2.tags.neverRepaired
#[test]
fn tags_that_somebody_takes_off_are_not_put_back() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.world.store.set_tags(BUCKET, None);
        stage.world.pass(RESYNC).await;
        assert_eq!(stage.world.store.bucket(BUCKET).unwrap().tags, None);
        assert_eq!(ready(&stage.world, "team-a", "photos"), "Bound");
    });
}

// covers: 3.2.remade, 3.2.remade.request, 2.credential.neverReused
#[test]
fn a_request_at_hand_when_the_record_is_remade_counts_as_handled() {
    Stage::run("", async |stage| {
        bound(&stage, "overlapSeconds: 0").await;
        request(&stage, "first").await;
        stage.until("it is rotated", |world| status(world)["rotationGeneration"] == 2).await;
        stage.world.pass(Duration::from_secs(300)).await;
        pause(&stage).await;
        request(&stage, "second").await;
        let record = delete_record(&stage).await;
        stage.patch("bucketclaims", "team-a", "photos", paused(Value::Null)).await;
        stage.soon("the key is replaced", 5, |world| status(world)["rotationGeneration"] == 3).await;
        let remade = data(&stage.world, OPERATOR_NAMESPACE, &record);
        assert!(remade.values().any(|value| value == "second"), "{remade:?}");
        assert_eq!(status(&stage.world)["handledRotateRequest"], "second");
        stage.world.pass(Duration::from_secs(3600)).await;
        assert_eq!(status(&stage.world)["rotationGeneration"], 3, "it asks for no other one");
    });
}

// covers: 3.2.deleting.noRecord, 4.event.BucketRetained
#[test]
fn a_claim_that_goes_without_its_record_leaves_its_bucket_and_says_so() {
    Stage::run("", async |stage| {
        stage.apply(&claim_with("team-a", "photos", "deletionPolicy: Delete, forceDelete: true")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        pause(&stage).await;
        delete_record(&stage).await;
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage.patch("bucketclaims", "team-a", "photos", paused(Value::Null)).await;
        stage.until_gone("team-a", "photos").await;
        stage.world.pass(Duration::from_secs(1)).await;
        assert!(stage.world.store.bucket(BUCKET).is_some());
        let retained = events(&stage.world, "photos").into_iter().filter(|(_, reason)| reason == "BucketRetained");
        assert_eq!(retained.count(), 1);
        assert!(secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential").is_empty());
    });
}

// covers: 1.claim.versioning.unset
#[test]
fn versioning_that_is_not_spoken_of_is_left_alone() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.world.store.set_versioning(BUCKET, Versioning::Enabled);
        stage.world.pass(RESYNC).await;
        stage.patch("bucketclaims", "team-a", "photos", json!({"spec": {"quota": {"hard": "1Ki"}}})).await;
        stage.world.pass(RESYNC).await;
        assert_eq!(stage.world.store.bucket(BUCKET).unwrap().versioning, Versioning::Enabled);
        let trace = stage.world.effects.trace();
        assert!(!trace.lines().iter().any(|line| line.call.to_string().starts_with("s3:PutBucketVersioning")));
    });
}

// covers: 3.5.memory.finalizers
#[test]
fn a_claim_with_many_finalizers_of_others_is_served_and_goes_and_they_stay() {
    Stage::run("", async |stage| {
        let theirs: Vec<String> = (0..100).map(|number| format!("example.com/f-{number}")).collect();
        let metadata = json!({"namespace": "team-a", "name": "photos", "finalizers": theirs});
        let spec = json!({"backendRef": {"name": "main"}});
        let version = "broker.stowage.io/v1alpha1";
        let claim = json!({"apiVersion": version, "kind": "BucketClaim", "metadata": metadata, "spec": spec});
        stage.apply(&claim.to_string()).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let finalizers =
            |world: &World| object(world, "bucketclaims", "team-a", "photos")["metadata"]["finalizers"].clone();
        let ours = [theirs.clone(), vec![FINALIZER.to_owned()]].concat();
        assert_eq!(finalizers(&stage.world), json!(ours));
        let between = [&theirs[..50], &[FINALIZER.to_owned()], &theirs[50..]].concat();
        stage.patch("bucketclaims", "team-a", "photos", json!({"metadata": {"finalizers": between}})).await;
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage.soon("ours is taken off", 30, |world| finalizers(world) == json!(theirs)).await;
    });
}
