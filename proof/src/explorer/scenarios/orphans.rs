//! Internal Secrets of a claim that was deleted without the operator (spec §3.4).

use serde_json::{Value, json};
use stowage_operator::api::wire::Role;
use stowage_world::history::Facts;
use stowage_world::scenes::removal::{GONE, check_retained, internal};
use stowage_world::scenes::{CLAIM, Goal, NAMESPACE, StoreStep};

use super::super::others::any_may_rest;
use super::super::scenario::{Scenario, ScenarioPhase, ScenarioStep};
use super::words::{
    BASE, BOUND, BUCKET, PHOTOS, ask_to_rotate, at_work, claim_with, give_claim, pass, patch, pause, usual,
};

/// The namespace and the name of a claim that is not deleted.
const LIVING: (&str, &str) = ("team-b", "living");

/// A claim's finalizer is removed by hand, during a rotation, while another claim exists that must
/// not be affected.
pub(in super::super) static ORPHANS: Scenario = Scenario {
    name: "orphans",
    about: "a claim goes without its finalizer, and what it leaves is swept, beside a claim that stays",
    phase: ScenarioPhase::Delete,
    world: usual,
    script: || {
        let (namespace, name) = LIVING;
        let living = Goal::new("the other claim is bound", |facts| facts.is_bound(LIVING.0, LIVING.1));
        let two_keys = Goal::new("two keys are alive", |facts| {
            facts.internal(Role::VirtualCredential, NAMESPACE, CLAIM).len() == 2
        });
        let bound = vec![
            give_claim("anonymousAccess: {mode: ReadOnly}"),
            ScenarioStep::Apply(claim_with(namespace, name, "")),
            ScenarioStep::Until(BOUND),
            ScenarioStep::Until(living),
            ScenarioStep::Tenant(namespace, name),
            ScenarioStep::Tenant(NAMESPACE, CLAIM),
            ScenarioStep::Store(StoreStep::PutObject { bucket: BUCKET, key: "data" }),
            pass(90),
            ask_to_rotate("now"),
            ScenarioStep::Until(two_keys),
            pass(10),
            // Without the pause the operator would set the finalizer again before the deletion.
            pause("true".into()),
            pass(1),
        ];
        let stripped = [
            ScenarioStep::Begin,
            patch(json!({"metadata": {"finalizers": Value::Null}})),
            ScenarioStep::Delete(PHOTOS),
        ];
        [at_work(BASE), bound, stripped.into()].concat()
    },
    goal: Goal::new("nothing is left of the claim, and the other one is bound", |facts| {
        is_swept(facts) && stays(facts)
    }),
    // Once the claim is gone, manual changes meet the other one.
    otherwise: |facts, faults| is_swept(facts) && any_may_rest(facts, faults),
    ends_alike: true,
    check: check_retained,
};

/// Returns true if nothing is left of the claim.
fn is_swept(facts: &Facts) -> bool {
    (GONE.holds)(facts) && internal(facts).is_empty()
}

/// Returns true if the other claim is bound, with all the Secrets that it needs.
fn stays(facts: &Facts) -> bool {
    let (namespace, name) = LIVING;
    let has_one = |role| facts.internal(role, namespace, name).len() == 1;
    facts.is_bound(namespace, name) && has_one(Role::BucketRecord) && has_one(Role::VirtualCredential)
}
