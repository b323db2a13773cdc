//! Concurrency of claims, and mutual exclusion of passes over one claim (spec §3.6).

use std::time::Duration;

use serde_json::json;
use stowage_world::World;
use stowage_world::effects::Line;

use crate::support::{Stage, claim, object, ready};

/// The value in [`World::config`].
const MOST_AT_ONCE: usize = 16;

fn calls(world: &World, wanted: impl Fn(&str) -> bool) -> Vec<Line> {
    world.effects.trace().lines().iter().filter(|line| wanted(&line.call.to_string())).cloned().collect()
}

// covers: 3.6.parallel
#[test]
fn claims_are_worked_on_together_up_to_the_bound() {
    // A pass that waits for a store doesn't count, one that waits for the API server does.
    Stage::run("kube:create secrets slow(10000)", async |stage| {
        for number in 0..MOST_AT_ONCE + 4 {
            stage.apply(&claim("team-a", &format!("claim-{number}"))).await;
        }
        let bound = |world: &World, number| ready(world, "team-a", &format!("claim-{number}")) == "Bound";
        stage.until("all are bound", |world| (0..MOST_AT_ONCE + 4).all(|number| bound(world, number))).await;
        let records = calls(&stage.world, |call| call.starts_with("kube:create secrets"));
        let began: Vec<u64> = records.iter().map(|line| line.began_ms).collect();
        assert!(began[MOST_AT_ONCE - 1] < began[0] + 1_000, "together: {began:?}");
        assert!(began[MOST_AT_ONCE] >= began[0] + 10_000, "no more than the bound: {began:?}");
    });
}

// covers: 3.6.once
#[test]
fn a_claim_is_never_worked_on_twice_at_a_time() {
    Stage::run("s3:CreateBucket@1 slow(20000)", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        let of_claim = |call: &str| call.contains("photos");
        stage
            .until("the bucket is being made", |world| {
                !calls(world, |call| call.starts_with("s3:CreateBucket")).is_empty()
            })
            .await;
        let before = calls(&stage.world, of_claim).len();
        for nudge in 0..10 {
            let annotation = json!({"metadata": {"annotations": {"broker.stowage.io/reconcile": nudge.to_string()}}});
            stage.patch("bucketclaims", "team-a", "photos", annotation).await;
            stage.world.pass(Duration::from_secs(1)).await;
        }
        assert_eq!(
            calls(&stage.world, of_claim).len(),
            before,
            "the pass under way is the only one\n{}",
            stage.trace()
        );
        stage.until_ready_is("team-a", "photos", "Bound").await;
        assert!(object(&stage.world, "secrets", "team-a", "photos-s3").is_object());
    });
}
