//! Rotations that have to wait, that can't go on, and that need not wait (spec §3.3).

use std::time::Duration;

use serde_json::json;
use stowage_world::{OPERATOR_NAMESPACE, World};

use crate::rotation::{bound, request, status};
use crate::support::{Stage, claim, keys, object, published, ready, secrets, tenant, works};
use crate::troubles::RESYNC;

fn credential(world: &World, id: &str) -> serde_json::Value {
    object(world, "secrets", OPERATOR_NAMESPACE, &format!("vc-{}", id.to_lowercase()))
}

// covers: 3.3.minute
#[test]
fn no_rotation_starts_within_a_minute_of_the_last() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        request(&stage, "now").await;
        stage.world.pass(Duration::from_secs(55)).await;
        assert_eq!(status(&stage.world)["rotationGeneration"], 1);
        stage.soon("it is made up for", 10, |world| status(world)["rotationGeneration"] == 2).await;
    });
}

// covers: 3.3.damaged, 2.internal.healed
#[test]
fn a_damaged_target_does_not_wait_for_the_minute() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let name = secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential").remove(0);
        stage.patch("secrets", OPERATOR_NAMESPACE, &name, json!({"data": {"secret_access_key": null}})).await;
        stage.until_ready_is("team-a", "photos", "CreationInconsistent").await;
        request(&stage, "heal").await;
        stage.soon("it is replaced", 5, |world| ready(world, "team-a", "photos") == "Bound").await;
        let (client, bucket) = tenant(&stage.world, "team-a", "photos-s3");
        stage.world.pass(Duration::from_secs(1)).await;
        assert!(works(&client, &bucket).await);
    });
}

// covers: 2.consumer.unusable.rotation, 3.3.neverEarly
#[test]
fn a_consumer_secret_that_can_not_be_switched_keeps_the_old_key_alive() {
    // The Secret becomes immutable after the next key is created, so its update is the first thing
    // that fails.
    Stage::run("kube:patch secrets@3 hang", async |stage| {
        bound(&stage, "").await;
        let world = &stage.world;
        let old = published(world);
        let (client, bucket) = tenant(world, "team-a", "photos-s3");
        request(&stage, "now").await;
        stage.until("the next key is made", |world| keys(world).len() == 2).await;
        assert_eq!(published(world), old, "not switched yet\n{}", stage.trace());
        stage.patch("secrets", "team-a", "photos-s3", json!({"immutable": true})).await;
        stage.until_ready_is("team-a", "photos", "SecretConflict").await;
        world.pass(RESYNC).await;
        assert!(stage.world.effects.unfired().is_empty());
        assert_eq!(keys(world)[&old], None, "no stamp before the switch");
        assert!(works(&client, &bucket).await);
        stage.delete("secrets", "team-a", "photos-s3").await;
        stage.until("the rotation goes on", |world| keys(world)[&old].is_some()).await;
        assert_eq!(ready(world, "team-a", "photos"), "Bound");
        assert_ne!(published(world), old);
    });
}

// covers: 2.internal.damaged.stamp, 3.3.stamp.fixed
#[test]
fn a_damaged_stamp_is_told_and_not_written_again() {
    Stage::run("", async |stage| {
        bound(&stage, "").await;
        let old = published(&stage.world);
        request(&stage, "now").await;
        stage.until("the old key is stamped", |world| keys(world)[&old].is_some()).await;
        let stamp = |text: &str| json!({"metadata": {"annotations": {"broker.stowage.io/expires-at": text}}});
        let name = format!("vc-{}", old.to_lowercase());
        stage.patch("secrets", OPERATOR_NAMESPACE, &name, stamp("soon")).await;
        stage.until_ready_is("team-a", "photos", "CreationInconsistent").await;
        stage.world.pass(RESYNC).await;
        let annotations = credential(&stage.world, &old)["metadata"]["annotations"].clone();
        assert_eq!(annotations["broker.stowage.io/expires-at"], "soon");
        stage.delete("secrets", OPERATOR_NAMESPACE, &name).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
    });
}

// covers: 1.bound.impaired.rotation
#[test]
fn a_claim_whose_backend_is_gone_is_rotated_all_the_same() {
    Stage::run("", async |stage| {
        bound(&stage, "").await;
        stage.delete("s3backends", "", "main").await;
        stage.until_ready_is("team-a", "photos", "BackendNotReady").await;
        let old = published(&stage.world);
        request(&stage, "now").await;
        stage.soon("the key is replaced", 5, |world| published(world) != old).await;
        stage.soon("the old key is stamped", 5, |world| keys(world)[&old].is_some()).await;
        assert_eq!(status(&stage.world)["phase"], "Bound");
    });
}

// covers: 1.bound.impaired.key
#[test]
fn a_claim_stays_bound_while_its_next_key_can_not_be_made() {
    for refused in ["kube:create secrets forbidden", "kube:create secrets server-error(not)"] {
        Stage::run("", async |stage| {
            bound(&stage, "mode: TimeBased, intervalDays: 90").await;
            let world = &stage.world;
            let (old, before) = (published(world), status(world));
            let (client, bucket) = tenant(world, "team-a", "photos-s3");
            world.effects.arm(refused.parse().unwrap());
            request(&stage, "now").await;
            stage.until_ready_is("team-a", "photos", "BackendError").await;
            world.pass(RESYNC).await;
            let during = status(world);
            assert_eq!((published(world), ready(world, "team-a", "photos")), (old.clone(), "BackendError".to_owned()));
            assert!(works(&client, &bucket).await);
            let shown =
                ["phase", "accessKeyId", "rotationGeneration", "rotatedAt", "nextRotationAt", "boundSecretName"];
            for field in shown {
                assert_eq!(during[field], before[field], "{field}, {refused}\n{}", stage.trace());
            }
            let credentials = during["conditions"].as_array().unwrap().iter();
            let credentials: Vec<_> = credentials.filter(|it| it["type"] == "CredentialsProvisioned").collect();
            assert_eq!(credentials.len(), 1, "{during}");
            assert_eq!(credentials[0]["status"], "True");
            world.effects.calm();
            stage.until("the key is replaced", |world| published(world) != old).await;
            stage.until_ready_is("team-a", "photos", "Bound").await;
            assert_eq!(status(&stage.world)["accessKeyId"], published(&stage.world));
        });
    }
}
