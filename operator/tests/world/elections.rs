//! Leader election: one of several operators works.

use std::time::Duration;

use stowage_world::determinism::run_seeded;
use stowage_world::{OPERATOR_NAMESPACE, Operator, Options, World};
use tokio::time::Instant;

use crate::support::{BASE, claim, object, ready};

fn leads(operator: &Operator) -> bool {
    let metrics = operator.metrics();
    let series = "leader_election_master_status{name=\"stowage-operator\"}";
    // The series doesn't exist before the operator takes part.
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

/// The Lease can't be written for a while, as it happens when the API server is overloaded.
// covers: 3.6.elect.unconfirmed, 3.6.elect.fence
#[test]
fn a_leader_that_could_not_renew_the_lease_goes_on_with_the_caches_that_it_has() {
    let plan: Vec<String> = (4..30).map(|number| format!("kube:patch leases@{number} server-error(not)")).collect();
    let plan = plan.join("; ").parse().expect("the plan is well-formed");
    run_seeded(1, || async {
        let mut world = World::new(Options { seed: 1, elects: true, plan, ..Options::default() });
        world.apply(&world.kube(), BASE).await;
        let operator = world.start_operator();
        until(&world, "it leads", |_| leads(&operator)).await;
        until(&world, "it is not confirmed any more", |_| !leads(&operator)).await;
        let begun = world.effects.trace().effects();
        world.apply(&world.kube(), &claim("team-a", "photos")).await;
        world.pass(Duration::from_secs(5)).await;
        assert!(!leads(&operator));
        let untouched =
            |world: &World| object(world, "bucketclaims", "team-a", "photos")["metadata"]["finalizers"].is_null();
        assert!(untouched(&world), "it changes nothing meanwhile");
        until(&world, "it leads again", |_| leads(&operator)).await;
        until(&world, "it works", |world| ready(world, "team-a", "photos") == "Bound").await;
        let lease = object(&world, "leases", OPERATOR_NAMESPACE, "stowage-operator");
        assert_eq!(lease["spec"]["leaseTransitions"], 0);
        let trace = world.effects.trace();
        let calls = trace.lines().iter().filter(|line| line.number > begun).map(|line| line.call.to_string());
        let lists: Vec<String> = calls.filter(|call| call.starts_with("kube:list") && !call.contains('/')).collect();
        assert!(lists.is_empty(), "nothing is listed anew: {lists:?}");
    });
}
