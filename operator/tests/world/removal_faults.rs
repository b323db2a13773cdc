//! Tests of claims that are deleted together with their bucket while faults occur: the Events, and
//! the time that the deletion takes.

use std::time::Duration;

use serde_json::json;
use stowage_world::Options;
use stowage_world::effects::Line;
use tokio::time::Instant;

use crate::removal::{DELETE, bind, bucket_exists, delete, edit, goes, told};
use crate::support::{Stage, claim_with};

// covers: 4.event.BucketDeleted
#[test]
fn what_became_of_the_bucket_is_told_by_the_pass_that_lets_the_claim_go() {
    let plan = "kube:patch bucketclaims@2 conflict".parse().expect("a plan");
    Stage::run_with(Options { plan, ..Options::default() }, async |stage| {
        bind(&stage, DELETE).await;
        delete(&stage).await;
        goes(&stage).await;
        assert!(stage.world.effects.unfired().is_empty(), "the finalizer was taken off at once");
        assert!(told(&stage, "BucketDeleted") && !told(&stage, "BucketRetained"));
        assert!(!told(&stage, "Revoked"), "that the claim is gone says so");
    });
}

// covers: 3.2.lateCall
#[test]
fn a_deletion_of_a_life_before_is_waited_for_whatever_the_policy_is_by_now() {
    let plan = "s3:DeleteBucket@1 crash(before)".parse().expect("a plan");
    Stage::run_with(Options { plan, ..Options::default() }, async |stage| {
        bind(&stage, DELETE).await;
        delete(&stage).await;
        stage.until("it has died", |_| stage.operator.crashes() == 1).await;
        edit(&stage, json!({"deletionPolicy": "Retain"})).await;
        let died = Instant::now();
        goes(&stage).await;
        assert!(died.elapsed() >= Duration::from_secs(25), "the call may land until its deadline");
    });
}

// covers: 3.live.claim
#[test]
fn a_claim_that_was_deleted_while_its_bucket_was_being_made_gets_no_key() {
    let plan = "s3:CreateBucket@1 slow(15000)".parse().expect("a plan");
    Stage::run_with(Options { plan, ..Options::default() }, async |stage| {
        stage.apply(&claim_with("team-a", "photos", DELETE)).await;
        stage.world.pass(Duration::from_secs(5)).await;
        delete(&stage).await;
        goes(&stage).await;
        assert!(stage.world.effects.unfired().is_empty() && !bucket_exists(&stage));
        let made = |line: &&Line| line.call.to_string().starts_with("kube:create secrets");
        let made = stage.world.effects.trace().lines().iter().filter(made).count();
        assert_eq!(made, 1, "the record and nothing else\n{}", stage.trace());
    });
}
