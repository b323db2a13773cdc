//! Blocked deletion of a claim with its bucket (spec §3.4): access is revoked all the same, the
//! claim reports what it waits for and how to delete it anyway, and it goes on once it can.

use std::time::Duration;

use rstest::rstest;
use s3_sim::Protection;
use serde_json::json;
use stowage_world::OPERATOR_NAMESPACE;
use stowage_world::effects::Plan;

use crate::removal::{
    BUCKET, DELETE, FORCE, access_is_revoked, bind, bucket_exists, delete, edit, fill, goes, nudge, told,
};
use crate::support::{Stage, message, object};

const LEGAL_HOLD: Protection = Protection { retention: None, legal_hold: true };

// covers: 1.ready.DeletionBlocked, 3.4.emptying.locked
#[test]
fn objects_under_lock_block_a_deletion_until_they_are_free() {
    Stage::run("", async |stage| {
        bind(&stage, FORCE).await;
        fill(&stage, 3);
        stage.world.store.protect(BUCKET, "key-1", LEGAL_HOLD);
        delete(&stage).await;
        stage.until_ready_is("team-a", "photos", "DeletionBlocked").await;
        let why = message(&stage.world, "team-a", "photos");
        assert!(why.contains("object lock") && why.contains("deletionPolicy: Retain"), "{why}");
        let left: usize = stage.world.store.versions(BUCKET).values().map(Vec::len).sum();
        assert_eq!(left, 1, "what is not locked is gone");
        assert_eq!(object(&stage.world, "bucketclaims", "team-a", "photos")["status"]["purge"]["objectsDeleted"], 6);
        stage.world.store.protect(BUCKET, "key-1", Protection::default());
        stage.patch("bucketclaims", "team-a", "photos", nudge()).await;
        goes(&stage).await;
        assert!(!bucket_exists(&stage));
    });
}

// covers: 3.4.noBackend, 3.5.wake.backend
#[test]
fn without_the_backend_object_a_deletion_waits_says_how_to_let_go_and_goes_on_when_it_is_back() {
    Stage::run("", async |stage| {
        bind(&stage, DELETE).await;
        stage.delete("s3backends", "", "main").await;
        delete(&stage).await;
        stage.until_ready_is("team-a", "photos", "DeletionBlocked").await;
        assert!(access_is_revoked(&stage.world));
        assert!(message(&stage.world, "team-a", "photos").contains("deletionPolicy: Retain"));
        stage.apply(crate::support::BASE).await;
        stage.soon("the claim is gone", 30, |world| object(world, "bucketclaims", "team-a", "photos").is_null()).await;
        assert!(!bucket_exists(&stage));
    });
}

// covers: 3.4.moved
#[test]
fn a_backend_that_points_elsewhere_blocks_a_deletion() {
    Stage::run("", async |stage| {
        bind(&stage, DELETE).await;
        let elsewhere = json!({"spec": {"endpoint": "http://nowhere.example"}});
        stage.patch("s3backends", "", "main", elsewhere).await;
        stage.world.pass(Duration::from_secs(30)).await;
        delete(&stage).await;
        stage.world.pass(Duration::from_secs(30)).await;
        assert!(access_is_revoked(&stage.world));
        assert!(bucket_exists(&stage));
        let home = json!({"spec": {"endpoint": "http://s3.example:9000"}});
        stage.patch("s3backends", "", "main", home).await;
        goes(&stage).await;
        assert!(!bucket_exists(&stage));
    });
}

// covers: 1.condition.message, 3.5.backoff
#[rstest]
#[case::unreachable("s3:DeleteBucket unreachable")]
#[case::failing("s3:DeleteBucket internal-error")]
#[case::cannot_look("s3:GetBucketTagging internal-error")]
#[case::cannot_list("s3:ListObjectVersions slow-down")]
fn a_store_that_fails_keeps_the_claim_and_is_asked_ever_less_often(#[case] plan: &str) {
    Stage::run("", async |stage| {
        bind(&stage, DELETE).await;
        stage.world.effects.set_plan(plan.parse().expect("a plan"));
        delete(&stage).await;
        stage.until_ready_is("team-a", "photos", "BackendError").await;
        assert!(message(&stage.world, "team-a", "photos").contains("deletionPolicy: Retain"));
        assert!(access_is_revoked(&stage.world) && bucket_exists(&stage));
        stage.world.pass(Duration::from_secs(3600)).await;
        let before = stage.world.effects.trace().effects();
        stage.world.pass(Duration::from_secs(3600)).await;
        let counters = stage.world.effects.trace().counters_after(before);
        println!("{plan}: an hour of failing costs {} S3 calls", counters.s3_calls);
        assert!(counters.s3_calls < 100 && counters.kubernetes_writes == 0, "{counters:?}");
        stage.world.effects.set_plan(Plan::default());
        goes(&stage).await;
        assert!(!bucket_exists(&stage));
    });
}

#[test]
fn a_deletion_whose_admin_secret_is_gone_waits_for_it() {
    Stage::run("", async |stage| {
        bind(&stage, DELETE).await;
        stage.delete("secrets", OPERATOR_NAMESPACE, "s3-admin").await;
        stage.world.pass(Duration::from_secs(60)).await;
        stage.operator.stop();
        stage.world.pass(Duration::from_secs(60)).await;
        let mut stage = stage;
        stage.operator = stage.world.start_operator();
        delete(&stage).await;
        stage.until_ready_is("team-a", "photos", "BackendError").await;
        assert!(access_is_revoked(&stage.world) && bucket_exists(&stage));
        stage.apply(crate::support::BASE).await;
        goes(&stage).await;
        assert!(!bucket_exists(&stage));
    });
}

#[test]
fn a_bucket_of_another_account_blocks_rather_than_passing_for_gone() {
    Stage::run("", async |stage| {
        bind(&stage, FORCE).await;
        stage.world.store.put_bucket("somebody-else", BUCKET);
        delete(&stage).await;
        stage.until_ready_is("team-a", "photos", "DeletionBlocked").await;
        assert!(bucket_exists(&stage));
        edit(&stage, json!({"forceDelete": false, "deletionPolicy": "Retain"})).await;
        goes(&stage).await;
    });
}

// covers: 3.4.notEmpty.letGo, 4.event.BucketRetained
#[test]
fn a_bucket_that_is_not_empty_is_kept_once_let_go() {
    Stage::run("", async |stage| {
        bind(&stage, FORCE).await;
        fill(&stage, 3);
        stage.world.store.protect(BUCKET, "key-1", LEGAL_HOLD);
        delete(&stage).await;
        stage.until_ready_is("team-a", "photos", "DeletionBlocked").await;
        edit(&stage, json!({"forceDelete": false, "deletionPolicy": "Retain"})).await;
        goes(&stage).await;
        assert!(bucket_exists(&stage));
        assert!(told(&stage, "BucketRetained") && !told(&stage, "BucketDeleted"));
    });
}
