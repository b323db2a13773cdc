//! Accesses that an operator doesn't serve, or not any more: their keys end, and nothing is told that
//! is not for their namespace (spec §8).

use std::time::Duration;

use stowage_operator::Config;
use stowage_operator::api::wire::REVOKE;
use stowage_sim::determinism::run_seeded;
use stowage_sim::world::{OPERATOR_NAMESPACE, World};

use crate::installations::{annotate, both, key, reason, start, until, world};
use crate::support::{secrets, works};

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
