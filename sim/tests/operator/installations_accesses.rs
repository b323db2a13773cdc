//! Accesses that an operator doesn't serve, or not any more: their keys end, and nothing is told that
//! is not for their namespace (spec §8).

use std::time::Duration;

use serde_json::json;
use stowage_operator::Config;
use stowage_operator::api::wire::{REVOKE, SERVED_BY};
use stowage_sim::determinism::run_seeded;
use stowage_sim::world::{OPERATOR_NAMESPACE, World};

use crate::installations::{annotate, both, delete_of, key, reason, start, until, world};
use crate::support::{claim, object, secrets, works};

// covers: 8.key.trusted
#[test]
fn an_access_whose_namespace_is_trusted_by_now_is_revoked_all_the_same() {
    run_seeded(1, || async {
        let world = world().await;
        let before = start(&world, world.config());
        both(&world).await;
        let leaked = key(&world, "reader-key");
        before.abort();
        let _operator = start(&world, Config { trusted_namespaces: ["team-a".to_owned()].into(), ..world.config() });
        let is_told = |world: &World| reason(world, "bucketaccesses", "reader") == "OperatorNamespace";
        until(&world, "it is told", is_told).await;
        assert_eq!(secrets(&world, OPERATOR_NAMESPACE, "access-credential").len(), 1, "nobody asked");
        annotate(&world, "bucketaccesses", "reader", REVOKE, "leaked");
        world.pass(Duration::from_secs(10)).await;
        assert!(!works(&leaked, "team-a-photos").await);
        assert!(secrets(&world, OPERATOR_NAMESPACE, "access-credential").is_empty());
        assert!(is_told(&world));
    });
}

/// A claim of one's own that nobody serves is easily made.
// covers: 8.servedBy.claim
#[test]
fn an_access_that_points_at_a_claim_with_its_owners_note_is_not_handed_over() {
    run_seeded(1, || async {
        let world = world().await;
        let _operator = start(&world, world.config());
        both(&world).await;
        let leaked = key(&world, "reader-key");
        let noted = format!("metadata: {{annotations: {{{SERVED_BY}: nobody/nothing}}, ");
        world.apply(&world.kube(), &claim("team-a", "decoy").replace("metadata: {", &noted)).await;
        world.pass(Duration::from_secs(5)).await;
        assert!(world.cluster.change("bucketaccesses", "team-a", "reader", |access| {
            access["metadata"]["annotations"][SERVED_BY] = "nobody/nothing".into();
            access["spec"]["buckets"] = json!([{"claimRef": {"name": "decoy"}}]);
        }));
        until(&world, "it is told", |world| reason(world, "bucketaccesses", "reader") == "ServedByAnother").await;
        annotate(&world, "bucketaccesses", "reader", REVOKE, "leaked");
        world.pass(Duration::from_secs(10)).await;
        assert!(!works(&leaked, "team-a-photos").await);
        assert!(object(&world, "bucketaccesses", "team-a", "reader")["status"]["accessKeyId"].is_null());
        assert_ne!(reason(&world, "bucketaccesses", "reader"), "Open");
        delete_of(&world, "bucketaccesses", "reader").await;
        until(&world, "it is gone", |world| object(world, "bucketaccesses", "team-a", "reader").is_null()).await;
    });
}
