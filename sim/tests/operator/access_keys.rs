//! Keys of an access whose Secrets somebody has changed, and that end all the same (spec §8).

use std::time::Duration;

use serde_json::json;
use stowage_sim::world::{Accesses, Options};

use crate::accesses::{OWN, access, client, keys, open};
use crate::support::{Stage, object, works};

// covers: 8.consumer.one
#[test]
fn a_secret_that_somebody_made_like_the_consumer_secret_keeps_no_old_key() {
    Stage::run_with(Options { accesses: Accesses::Served, ..Options::default() }, async |stage| {
        let world = &stage.world;
        open(&stage, "", "team-a", OWN).await;
        let old = client(world, "team-a");
        let held = object(world, "secrets", "team-a", "reader-key");
        let planted = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {
            "name": "planted", "namespace": "team-a",
            "labels": held["metadata"]["labels"], "ownerReferences": held["metadata"]["ownerReferences"],
        }});
        assert!(world.cluster.create(planted));
        world.pass(Duration::from_secs(90)).await;
        let rotate = json!({"metadata": {"annotations": {"broker.stowage.io/rotate": "now"}}});
        stage.patch("bucketaccesses", "team-a", "reader", rotate).await;
        stage.until("there is another", |world| access(world, "team-a")["status"]["rotationGeneration"] == 2).await;
        stage.until("the old one is gone", |world| keys(world).len() == 1).await;
        assert!(!works(&old, "team-a-photos").await && works(&client(world, "team-a"), "team-a-photos").await);
        assert!(object(world, "secrets", "team-a", "planted").is_null());
    });
}
