//! An operator that serves some namespaces replaces one that served all (spec §3.9).

use stowage_operator::api::wire::{self, Role};
use stowage_operator::plan::Reach;
use stowage_world::Options;
use stowage_world::effects::Fault;
use stowage_world::history::Facts;
use stowage_world::scenes::{CLAIM, Goal, NAMESPACE, StoreStep};

use super::super::scenario::{Scenario, ScenarioPhase, ScenarioStep, WorldStep};
use super::words::{BASE, BOUND, BUCKET, ask_to_rotate, at_work, check_bound, claim_with, give_claim, no_other, pass};

/// The namespace and the name of a claim that no operator serves any more.
const OTHER: (&str, &str) = ("team-b", "other");
/// The bucket of that claim.
const OTHERS_BUCKET: &str = "team-b-other";

/// Returns the options of a world whose first operator serves all namespaces, and each later one
/// only that of the claim.
fn narrowing() -> Options {
    let served = Reach::Namespaces([NAMESPACE.to_owned()].into());
    Options { reaches: vec![Reach::Cluster, served], ..Options::default() }
}

/// The operator is restricted to one namespace of two, and then a rotation is requested there.
pub(in super::super) static NAMESPACED: Scenario = Scenario {
    name: "namespaced",
    about: "an operator takes over that serves one namespace of two, and a key is replaced there",
    phase: ScenarioPhase::Rotate,
    world: narrowing,
    script: || {
        let (namespace, name) = OTHER;
        let other = Goal::new("the other claim is bound", |facts| facts.is_bound(OTHER.0, OTHER.1));
        let bound = vec![
            give_claim("rotationPolicy: {overlapSeconds: 60}"),
            ScenarioStep::Apply(claim_with(namespace, name, "")),
            ScenarioStep::Until(BOUND),
            ScenarioStep::Until(other),
            ScenarioStep::Tenant(NAMESPACE, CLAIM),
            ScenarioStep::Tenant(namespace, name),
            ScenarioStep::Store(StoreStep::PutObject { bucket: BUCKET, key: "data" }),
            ScenarioStep::Store(StoreStep::PutObject { bucket: OTHERS_BUCKET, key: "data" }),
            pass(90),
            WorldStep::StopOperator.into(),
            pass(15),
        ];
        let narrowed = vec![WorldStep::StartOperator.into(), ScenarioStep::Begin, ask_to_rotate("now")];
        [at_work(BASE), bound, narrowed].concat()
    },
    goal: Goal::new("the key is replaced, and the other claim has all that it had", |facts| {
        let claim = facts.claim(NAMESPACE, CLAIM);
        let handled = &claim["status"]["handledRotateRequest"];
        let is_handled = handled.is_string() && *handled == claim["metadata"]["annotations"][wire::ROTATE];
        let keys = facts.internal(Role::VirtualCredential, NAMESPACE, CLAIM).len();
        facts.is_bound(NAMESPACE, CLAIM) && is_handled && keys == 1 && is_kept(facts)
    }),
    otherwise: no_other,
    ends_alike: true,
    check,
};

/// Returns true if everything that belongs to the other claim exists.
fn is_kept(facts: &Facts) -> bool {
    let (namespace, name) = OTHER;
    let has_one = |role| facts.internal(role, namespace, name).len() == 1;
    let bucket = facts.bucket(OTHERS_BUCKET).is_some_and(|bucket| bucket.tags.is_some());
    facts.is_bound(namespace, name) && has_one(Role::BucketRecord) && has_one(Role::VirtualCredential) && bucket
}

fn check(facts: &Facts, faults: &[Fault]) -> Result<(), String> {
    check_bound(facts, faults)?;
    if is_kept(facts) { Ok(()) } else { Err("something of the claim is gone that nobody serves".to_owned()) }
}
