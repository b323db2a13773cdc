//! Rotation of credentials while a tenant keeps working (spec §3.3).

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use stowage_world::{OPERATOR_NAMESPACE, World};

use crate::support::{Stage, claim_with, keys, object, published, secrets, tenant, works};

const OVERLAP: u64 = 300;

/// Applies a claim with this rotation policy until it is bound, and waits two minutes.
pub async fn bound(stage: &Stage, policy: &str) {
    stage.apply(&claim_with("team-a", "photos", &format!("rotationPolicy: {{{policy}}}"))).await;
    stage.until_ready_is("team-a", "photos", "Bound").await;
    stage.world.pass(Duration::from_secs(120)).await;
}

pub async fn request(stage: &Stage, value: &str) {
    let patch = json!({"metadata": {"annotations": {"broker.stowage.io/rotate": value}}});
    stage.patch("bucketclaims", "team-a", "photos", patch).await;
}

pub fn status(world: &World) -> Value {
    object(world, "bucketclaims", "team-a", "photos")["status"].clone()
}

// covers: 1.annotation.rotate, 1.status.rotationGeneration, 1.status.handledRotateRequest
// covers: 3.3.due.request, 3.3.stamp
// covers: 3.3.stamp.enforced, 4.event.Rotated
#[test]
fn a_request_rotates_once_and_the_old_key_works_for_the_overlap() {
    Stage::run("", async |stage| {
        bound(&stage, "").await;
        let world = &stage.world;
        let old = published(world);
        let (old_client, bucket) = tenant(world, "team-a", "photos-s3");
        request(&stage, "now").await;
        stage.soon("the Secret is switched", 5, |world| published(world) != old).await;
        let switched = world.clock.now();
        stage.soon("the old key is stamped", 10, |world| keys(world)[&old].is_some()).await;
        let expiry = keys(world)[&old].unwrap();
        assert!(expiry >= switched + Duration::from_secs(OVERLAP), "late is allowed, early is not");
        assert_eq!(keys(world).len(), 2);
        assert_eq!(keys(world)[&published(world)], None);
        let (new_client, _) = tenant(world, "team-a", "photos-s3");
        assert!(works(&old_client, &bucket).await && works(&new_client, &bucket).await);
        assert_eq!(
            (&status(world)["handledRotateRequest"], &status(world)["rotationGeneration"]),
            (&json!("now"), &json!(2))
        );

        world.pass(Duration::from_secs(OVERLAP + 20)).await;
        assert!(!works(&old_client, &bucket).await, "the gateway enforces the stamp");
        assert!(works(&new_client, &bucket).await);
        stage.soon("the old Secret is gone", 120, |world| keys(world).len() == 1).await;
        world.pass(Duration::from_secs(7200)).await;
        assert_eq!(status(world)["rotationGeneration"], 2, "once asked, once rotated");
        let objects = world.cluster.objects();
        let rotated = objects.iter().filter(|o| o.plural == "events" && o.object["reason"] == "Rotated").count();
        assert_eq!(rotated, 1);
    });
}

// covers: 1.annotation.rotate, 3.3.twoKeys, 3.3.coalesced
#[test]
fn requests_during_a_rotation_count_as_one() {
    Stage::run("", async |stage| {
        bound(&stage, "").await;
        for value in ["1", "2", "3", "4", "5"] {
            request(&stage, value).await;
            stage.world.pass(Duration::from_secs(20)).await;
            assert!(keys(&stage.world).len() <= 2);
        }
        stage.world.pass(Duration::from_secs(3 * OVERLAP)).await;
        let status = status(&stage.world);
        assert_eq!((&status["handledRotateRequest"], &status["rotationGeneration"]), (&json!("5"), &json!(3)));
        assert_eq!(keys(&stage.world).len(), 1);
    });
}

// covers: 1.status.rotatedAt, 1.status.nextRotationAt, 3.3.due.time, 3.3.twoKeys
#[test]
fn time_rotates_at_the_interval_and_a_tenant_that_rereads_the_secret_never_fails() {
    Stage::run_for_weeks(async |stage| {
        bound(&stage, "mode: TimeBased, intervalDays: 7, overlapSeconds: 7200").await;
        let world = &stage.world;
        let next = status(world)["nextRotationAt"].as_str().unwrap().parse::<Timestamp>().unwrap();
        assert_eq!(
            next,
            status(world)["rotatedAt"].as_str().unwrap().parse::<Timestamp>().unwrap()
                + Duration::from_secs(7 * 86_400)
        );
        let mut held = tenant(world, "team-a", "photos-s3");
        for half_hour in 0..8 * 24 * 2 {
            assert!(works(&held.0, &held.1).await, "half hour {half_hour}");
            if half_hour % 2 == 0 {
                held = tenant(world, "team-a", "photos-s3");
            }
            assert!(keys(world).len() <= 2);
            world.pass(Duration::from_secs(1800)).await;
        }
        assert_eq!(status(world)["rotationGeneration"], 2, "one rotation in eight days");
    });
}

// covers: 3.3.stamp.enforced
#[test]
fn without_overlap_the_old_key_stops_at_once() {
    Stage::run("", async |stage| {
        bound(&stage, "overlapSeconds: 0").await;
        let (old_client, bucket) = tenant(&stage.world, "team-a", "photos-s3");
        let old = published(&stage.world);
        request(&stage, "now").await;
        stage.soon("the Secret is switched", 5, |world| published(world) != old).await;
        stage.world.pass(Duration::from_secs(5)).await;
        assert!(!works(&old_client, &bucket).await);
    });
}

// covers: 2.internal.healed
#[test]
fn a_damaged_credential_is_replaced_on_request() {
    Stage::run("", async |stage| {
        bound(&stage, "").await;
        let name = secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential").remove(0);
        stage.patch("secrets", OPERATOR_NAMESPACE, &name, json!({"data": {"secret_access_key": null}})).await;
        stage.until_ready_is("team-a", "photos", "CreationInconsistent").await;
        request(&stage, "heal").await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let (client, bucket) = tenant(&stage.world, "team-a", "photos-s3");
        assert!(works(&client, &bucket).await);
    });
}
