//! The number of requests for a claim doesn't depend on other claims or on the number of its past
//! keys, because everything is read by name (spec §3.3, §3.4).

use std::time::Duration;

use k8s_openapi::ByteString;
use rstest::rstest;
use serde_json::json;
use stowage_operator::api::{AccessKeyId, ClaimUid};
use stowage_world::{OPERATOR_NAMESPACE, World};

use crate::rotation::{bound, request, status};
use crate::support::{Stage, claim, claim_with, data, keys, object, published, ready, secrets};

/// Returns the calls after `before`, in short form.
fn calls_after(world: &World, before: u64) -> Vec<String> {
    let trace = world.effects.trace();
    let lines = trace.lines().iter().filter(|line| line.number > before);
    lines.map(|line| line.call.to_string()).inspect(|call| println!("{call}")).collect()
}

/// Returns verb and resource of every call to the API server.
fn requests(calls: &[String]) -> Vec<String> {
    // The status of a backend is written for all its claims together.
    let kube = calls.iter().filter_map(|call| call.strip_prefix("kube:")).filter(|call| !call.contains("s3backends"));
    kube.map(|call| call.split_whitespace().take(2).collect::<Vec<_>>().join(" ")).collect()
}

fn calls_so_far(world: &World) -> u64 {
    world.effects.trace().effects()
}

// covers: 3.4.cost
#[test]
fn a_claim_with_one_key_goes_with_its_empty_bucket_in_nine_requests() {
    Stage::run("", async |stage| {
        stage.apply(&claim_with("team-a", "photos", "deletionPolicy: Delete")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.world.pass(Duration::from_secs(30)).await;
        let before = calls_so_far(&stage.world);
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage.until_gone("team-a", "photos").await;
        stage.world.pass(Duration::from_secs(30)).await;
        let expected = [
            "get bucketclaims",
            "patch secrets",
            "delete secrets",
            "get bucketclaims",
            "delete secrets",
            "delete secrets",
            "get secrets",
            "patch bucketclaims",
            "create events",
        ];
        assert_eq!(requests(&calls_after(&stage.world, before)), expected);
    });
}

// covers: 3.4.cost
#[test]
fn a_claim_whose_bucket_is_retained_goes_in_nine_requests_less_the_second_look_at_it() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.world.pass(Duration::from_secs(30)).await;
        let before = calls_so_far(&stage.world);
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage.until_gone("team-a", "photos").await;
        stage.world.pass(Duration::from_secs(30)).await;
        assert_eq!(requests(&calls_after(&stage.world, before)).len(), 8);
    });
}

// covers: 3.3.byName
#[test]
fn a_rotation_lists_nothing() {
    Stage::run("", async |stage| {
        bound(&stage, "overlapSeconds: 60").await;
        let before = calls_so_far(&stage.world);
        let old = published(&stage.world);
        request(&stage, "now").await;
        stage.soon("the Secret is switched", 5, |world| published(world) != old).await;
        stage.soon("the old key is gone", 180, |world| keys(world).len() == 1).await;
        let requests = requests(&calls_after(&stage.world, before));
        assert_eq!(requests.iter().filter(|call| call.starts_with("list")).count(), 0, "{requests:?}");
    });
}

// covers: 3.3.byName
#[test]
fn a_slow_store_has_nothing_listed() {
    let slow = "s3:GetBucketTagging slow(1500); s3:CreateBucket slow(1500); s3:PutBucketTagging slow(1500)";
    Stage::run(slow, async |stage| {
        let before = calls_so_far(&stage.world);
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let requests = requests(&calls_after(&stage.world, before));
        assert_eq!(requests.iter().filter(|call| call.starts_with("list")).count(), 0, "{requests:?}");
        assert!(requests.len() <= 8, "{requests:?}");
    });
}

/// A tenant needs half a year of rotations to get there.
// covers: 3.3.byName, 2.record.lowest
#[test]
fn a_claim_that_has_had_many_keys_is_rotated_and_goes_in_few_requests() {
    Stage::run("", async |stage| {
        bound(&stage, "overlapSeconds: 0").await;
        let record = secrets(&stage.world, OPERATOR_NAMESPACE, "bucket-record").remove(0);
        let generation = json!({"stringData": {"generation": "2000"}});
        stage.patch("secrets", OPERATOR_NAMESPACE, &record, generation).await;
        stage.world.pass(Duration::from_secs(300)).await;
        assert_eq!((status(&stage.world)["rotationGeneration"].clone(), keys(&stage.world).len()), (json!(2001), 1));
        // Older generations are searched once.
        request(&stage, "once").await;
        stage.world.pass(Duration::from_secs(300)).await;
        assert_eq!((status(&stage.world)["rotationGeneration"].clone(), keys(&stage.world).len()), (json!(2002), 1));
        let before = calls_so_far(&stage.world);
        request(&stage, "twice").await;
        stage.world.pass(Duration::from_secs(300)).await;
        assert_eq!((status(&stage.world)["rotationGeneration"].clone(), keys(&stage.world).len()), (json!(2003), 1));
        let rotated = requests(&calls_after(&stage.world, before)).len();
        let before = calls_so_far(&stage.world);
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage.until_gone("team-a", "photos").await;
        let deleted = requests(&calls_after(&stage.world, before)).len();
        assert!(rotated < 20 && deleted < 15, "{rotated} requests for a rotation, {deleted} for a deletion");
    });
}

/// A minute after each key, that is twenty-four thousand numbers a day.
// covers: 3.3.claimed
#[rstest]
fn a_tenant_can_not_have_keys_made_by_what_its_secret_claims(#[values(1, 16)] ahead: u64) {
    Stage::run("", async |stage| {
        bound(&stage, "").await;
        let claim = object(&stage.world, "bucketclaims", "team-a", "photos");
        let uid = ClaimUid::new(claim["metadata"]["uid"].as_str().expect("a claim has a UID"));
        for _ in 0..10 {
            let generation = status(&stage.world)["rotationGeneration"].as_u64().expect("it has a key") + ahead;
            let id = AccessKeyId::of(&uid, generation);
            let forged = json!({
                "metadata": {"labels": {"broker.stowage.io/rotation-generation": generation.to_string()}},
                "data": {"AWS_ACCESS_KEY_ID": ByteString(id.as_str().as_bytes().to_vec())},
            });
            stage.patch("secrets", "team-a", "photos-s3", forged).await;
            stage.world.pass(Duration::from_secs(120)).await;
        }
        assert_eq!((status(&stage.world)["rotationGeneration"].clone(), keys(&stage.world).len()), (json!(1), 1));
        assert_eq!(ready(&stage.world, "team-a", "photos"), "Bound");
        let key = secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential").remove(0);
        assert_eq!(published(&stage.world), data(&stage.world, OPERATOR_NAMESPACE, &key)["access_key_id"]);
    });
}
