//! Of operators that elect one, one works.

use std::time::Duration;

use stowage_sim::determinism::run_seeded;
use stowage_sim::world::{OPERATOR_NAMESPACE, Operator, Options, World};
use tokio::time::Instant;

use crate::support::{BASE, claim, object, ready};

fn leads(operator: &Operator) -> bool {
    let metrics = operator.metrics();
    let series = "leader_election_master_status{name=\"stowage-operator\"}";
    // There is none before it takes part.
    metrics.lines().any(|line| line.strip_prefix(series).is_some_and(|value| value.trim() == "1"))
}

async fn until(world: &World, what: &str, fact: impl Fn(&World) -> bool) -> Duration {
    let began = Instant::now();
    assert!(world.until(fact).await.is_ok(), "it never came to be that {what}");
    began.elapsed()
}

// covers: 4.metric.leader_election_master_status, 3.6.elect.release
#[test]
fn whoever_is_told_to_end_hands_over_within_a_second() {
    run_seeded(1, || async {
        let mut world = World::new(Options { seed: 1, elects: true, ..Options::default() });
        world.apply(&world.kube(), BASE).await;
        let first = world.start_operator();
        until(&world, "the first leads", |_| leads(&first)).await;
        let second = world.start_operator();
        second.ready().await;
        world.pass(Duration::from_secs(60)).await;
        assert!(leads(&first) && !leads(&second));
        first.stop();
        let took = until(&world, "the second leads", |_| leads(&second)).await;
        assert!(took <= Duration::from_secs(1), "it took {took:?}");
        assert!(!leads(&first));
        let counted = |operator: &Operator| operator.metrics().contains("stowage_claims{");
        assert!(counted(&second) && !counted(&first), "claims are counted by who leads alone");
        world.apply(&world.kube(), &claim("team-a", "photos")).await;
        until(&world, "it works", |world| ready(world, "team-a", "photos") == "Bound").await;
        let lease = object(&world, "leases", OPERATOR_NAMESPACE, "stowage-operator");
        assert_eq!(lease["spec"]["leaseTransitions"], 1);
        assert_eq!(lease["spec"]["leaseDurationSeconds"], 45);
    });
}
