//! Leader election between operators.

use serde_json::Value;
use stowage_world::history::Facts;
use stowage_world::scenes::{CLAIM, Goal, NAMESPACE, Target, TargetKind};
use stowage_world::{OPERATOR_NAMESPACE, Options};

use super::super::others::any_may_rest;
use super::super::scenario::{Scenario, ScenarioPhase, ScenarioStep, WorldStep};
use super::words::{BASE, ask_to_rotate, check_keys, claim_with, give_claim, no_other, pass, usual};

/// The Lease of the leader election.
const LEASE: Target = Target { kind: TargetKind::Lease, namespace: OPERATOR_NAMESPACE, name: "stowage-operator" };

/// A claim that is created shortly before the leader is stopped.
const SECOND: &str = "films";

fn electing() -> Options {
    Options { elects: true, ..usual() }
}

/// Returns the steps up to a leader, a second operator that stands by, and a claim that a tenant
/// uses. Faults may begin with the creation of the claim.
fn two_candidates() -> Vec<ScenarioStep> {
    vec![
        ScenarioStep::Apply(BASE.to_owned()),
        WorldStep::StartOperator.into(),
        pass(5),
        WorldStep::StartOperator.into(),
        pass(5),
        ScenarioStep::Begin,
        give_claim("rotationPolicy: {overlapSeconds: 30}"),
        ScenarioStep::Tenant(NAMESPACE, CLAIM),
    ]
}

/// Returns true if the claim is bound and its last rotate request is handled.
fn has_handled(facts: &Facts) -> bool {
    let claim = facts.claim(NAMESPACE, CLAIM);
    let asked: &Value = &claim["metadata"]["annotations"]["broker.stowage.io/rotate"];
    facts.is_bound(NAMESPACE, CLAIM) && asked.is_string() && claim["status"]["handledRotateRequest"] == *asked
}

const HANDLED: Goal = Goal::new("the claim is bound and the request for a new key handled", has_handled);

/// The leader is stopped, as in a rollout.
pub(in super::super) static ELECTED: Scenario = Scenario {
    name: "elected",
    about: "of two operators one leads, and is stopped, and the other takes over",
    phase: ScenarioPhase::Rotate,
    world: electing,
    script: || {
        let life = [
            pass(30),
            ask_to_rotate("one"),
            pass(90),
            // If one of its calls is slow, the leader is still working on this claim when it is
            // stopped.
            ScenarioStep::Apply(claim_with(NAMESPACE, SECOND, "")),
            pass(1),
            WorldStep::StopFirstOperator.into(),
            ask_to_rotate("two"),
            pass(120),
        ];
        two_candidates().into_iter().chain(life).collect()
    },
    goal: Goal::new("both claims are bound and the request for a new key handled", |facts| {
        has_handled(facts) && facts.is_bound(NAMESPACE, SECOND)
    }),
    // The plan may have a manual change by somebody, which may hit the second claim as well.
    otherwise: any_may_rest,
    ends_alike: false,
    check: |facts, _| check_keys(facts),
};

/// The Lease is deleted twice, the second time during a rotation.
pub(in super::super) static LEASE_DELETED: Scenario = Scenario {
    name: "lease-deleted",
    about: "two operators elect one of them, and somebody deletes their Lease",
    phase: ScenarioPhase::Rotate,
    world: electing,
    script: || {
        let life = [ScenarioStep::Delete(LEASE), pass(30), ask_to_rotate("one"), ScenarioStep::Delete(LEASE), pass(90)];
        two_candidates().into_iter().chain(life).collect()
    },
    goal: HANDLED,
    otherwise: no_other,
    ends_alike: false,
    check: |facts, _| check_keys(facts),
};
