//! Edits of what is asked of a bound claim's keys and of its public access (spec §3.7).

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use stowage_sim::world::{OPERATOR_NAMESPACE, World};

use crate::rotation::{bound, request, status};
use crate::support::{Stage, claim_with, data, secrets};
use crate::support::{keys, published};

const WEEK: Duration = Duration::from_secs(7 * 86_400);

async fn edit(stage: &Stage, spec: serde_json::Value) {
    stage.patch("bucketclaims", "team-a", "photos", json!({ "spec": spec })).await;
}

// covers: 3.7.quota
#[test]
fn a_new_quota_reaches_every_live_key_of_the_claim() {
    Stage::run("", async |stage| {
        bound(&stage, "").await;
        request(&stage, "now").await;
        stage.until("two keys live", |world| keys(world).len() == 2).await;
        edit(&stage, json!({"quota": {"soft": "1Ki", "hard": "2Ki"}})).await;
        let limits = |world: &World, name: &String| {
            let data = data(world, OPERATOR_NAMESPACE, name);
            (data.get("quota_soft_bytes").cloned(), data.get("quota_hard_bytes").cloned())
        };
        let expected = (Some("1024".to_owned()), Some("2048".to_owned()));
        stage
            .soon("both keys have it", 2, |world| {
                let names = secrets(world, OPERATOR_NAMESPACE, "virtual-credential");
                names.len() == 2 && names.iter().all(|name| limits(world, name) == expected)
            })
            .await;
        assert_eq!(data(&stage.world, "team-a", "photos-s3")["QUOTA_HARD_BYTES"], "2048");
    });
}

// covers: 3.7.anonymous
#[test]
fn a_new_rate_reaches_the_binding() {
    Stage::run("", async |stage| {
        stage.apply(&claim_with("team-a", "photos", "anonymousAccess: {mode: ReadOnly}")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let binding = secrets(&stage.world, OPERATOR_NAMESPACE, "anonymous-binding").remove(0);
        edit(&stage, json!({"anonymousAccess": {"perSourceIPRPS": 9}})).await;
        stage
            .soon("it is in the binding", 2, |world| {
                data(world, OPERATOR_NAMESPACE, &binding)["anonymous_per_source_ip_rps"] == "9"
            })
            .await;
    });
}

// covers: 3.7.rotationPolicy, 1.status.nextRotationAt, 3.3.due.time
#[test]
fn a_new_policy_counts_from_the_key_that_is_there() {
    Stage::run("", async |stage| {
        bound(&stage, "").await;
        assert!(status(&stage.world)["nextRotationAt"].is_null(), "Manual");
        stage.world.pass(Duration::from_secs(3 * 86_400)).await;
        let old = published(&stage.world);
        edit(&stage, json!({"rotationPolicy": {"mode": "TimeBased", "intervalDays": 7, "overlapSeconds": 60}})).await;
        let time =
            |world: &World, field: &str| status(world)[field].as_str().and_then(|text| text.parse::<Timestamp>().ok());
        stage.soon("the next time is told", 2, |world| time(world, "nextRotationAt").is_some()).await;
        let due = time(&stage.world, "nextRotationAt").unwrap();
        assert_eq!(due, time(&stage.world, "rotatedAt").unwrap() + WEEK);
        stage
            .world
            .pass(Duration::try_from(due.duration_since(stage.world.clock.now())).unwrap() - Duration::from_secs(5))
            .await;
        assert_eq!(published(&stage.world), old, "not before");
        stage.soon("it is due", 10, |world| published(world) != old).await;
        edit(&stage, json!({"rotationPolicy": {"mode": "Manual"}})).await;
        stage.soon("no next time is told", 2, |world| status(world)["nextRotationAt"].is_null()).await;
    });
}
