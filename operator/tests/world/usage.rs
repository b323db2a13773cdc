//! The usage of a bucket with a quota in the claim's status (spec §6).

use std::time::Duration;

use serde_json::json;
use stowage_world::World;

use crate::rotation::status;
use crate::support::{Stage, claim_with, data, events, object};

const BUCKET: &str = "team-a-photos";

fn bytes(world: &World) -> Option<i64> {
    status(world)["usage"]["bytes"].as_i64()
}

fn warnings(world: &World) -> Vec<String> {
    let told = events(world, "photos").into_iter();
    told.filter(|(type_, _)| type_ == "Warning").map(|(_, reason)| reason).collect()
}

/// Stores an object through the gateway, so that a scan is due.
async fn put(world: &World, key: &str, length: usize) {
    let secret = data(world, "team-a", "photos-s3");
    let (id, key_of) = (&secret["AWS_ACCESS_KEY_ID"], &secret["AWS_SECRET_ACCESS_KEY"]);
    let client = world.tenant(id, key_of, &secret["AWS_REGION"]);
    let body = vec![b'x'; length].into();
    client.put_object().bucket(BUCKET).key(key).body(body).send().await.expect("there is room");
}

// covers: 6.quota.shown, 6.quota.crossed, 1.status.usage
// covers: 4.event.AboveSoftQuota, 4.event.QuotaExhausted
#[test]
fn what_a_bucket_holds_is_shown_and_a_crossed_limit_told_once() {
    Stage::run("", async |stage| {
        let world = &stage.world;
        stage.apply(&claim_with("team-a", "photos", "quota: {soft: 1Ki, hard: 4Ki}")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.until("an empty bucket is measured", |world| bytes(world) == Some(0)).await;
        assert_eq!(warnings(world), [""; 0]);
        put(world, "a", 2000).await;
        stage.until("more is shown", |world| bytes(world) == Some(2000)).await;
        assert_eq!(status(world)["usage"]["objects"], 1);
        // Metadata counts until the next scan, so that no upload fills a bucket completely.
        assert!(world.store.put_object(BUCKET, "c", "x".repeat(96)).is_some(), "there is the bucket");
        put(world, "b", 2000).await;
        stage.until("all of it is shown", |world| bytes(world) == Some(4096)).await;
        let told = ["AboveSoftQuota", "QuotaExhausted"].map(str::to_owned);
        assert_eq!(warnings(world), told);
        // At rest nothing is written, and no event is repeated.
        world.pass(Duration::from_secs(3600)).await;
        let before = object(world, "bucketclaims", "team-a", "photos");
        world.pass(Duration::from_secs(12 * 3600)).await;
        assert_eq!(object(world, "bucketclaims", "team-a", "photos"), before);
        assert_eq!(warnings(world), told);
        stage.patch("bucketclaims", "team-a", "photos", json!({"spec": {"quota": null}})).await;
        stage.soon("nothing is shown", 10, |world| status(world)["usage"].is_null()).await;
    });
}
