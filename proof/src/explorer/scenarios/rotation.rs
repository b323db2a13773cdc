//! Replacement of a key: by time, by many requests, in an emergency. And public access that is
//! granted and withdrawn.

use serde_json::json;
use stowage_operator::api::wire::Role;
use stowage_world::effects::{Edit, Fault, ProcessFault, StowageFault};
use stowage_world::history::Facts;
use stowage_world::scenes::{CLAIM, Goal, NAMESPACE};

use super::super::scenario::{Scenario, ScenarioPhase, ScenarioStep, WorldStep};
use super::words::{
    BASE, BOUND, ask_to_rotate, at_work, bound, check_bound, give_claim, no_other, pass, patch, revoke, usual,
};

/// Seconds of the shortest interval that the spec allows.
const WEEK: u64 = 7 * 86_400;

/// Returns true if one key is left, and the generation in the status is at least this.
fn rotated(facts: &Facts, generation: u64) -> bool {
    let claim = facts.claim(NAMESPACE, CLAIM);
    facts.is_bound(NAMESPACE, CLAIM)
        && claim["status"]["rotationGeneration"].as_u64().is_some_and(|reached| reached >= generation)
        && facts.internal(Role::VirtualCredential, NAMESPACE, CLAIM).len() == 1
}

/// A rotation by time, a week after the first key was created.
pub(in super::super) static BY_TIME: Scenario = Scenario {
    name: "rotate-by-time",
    about: "a key is a week old, and is replaced",
    phase: ScenarioPhase::Rotate,
    world: usual,
    script: || {
        // Operator and tenant are stopped for most of the week, in which nothing would happen.
        let weekly = json!({"spec": {"rotationPolicy": {"mode": "TimeBased", "intervalDays": 7}}});
        let week = vec![
            give_claim("rotationPolicy: {overlapSeconds: 60}"),
            ScenarioStep::Until(BOUND),
            WorldStep::StopOperator.into(),
            pass(WEEK - 300),
            WorldStep::StartOperator.into(),
            ScenarioStep::Tenant(NAMESPACE, CLAIM),
            patch(weekly),
            pass(30),
            ScenarioStep::Begin,
        ];
        [at_work(BASE), week].concat()
    },
    goal: Goal::new("the key is replaced and the old one gone", |facts| rotated(facts, 2)),
    // The key of a recreated claim is new.
    otherwise: |facts, faults| {
        faults.contains(&Fault::Project(StowageFault::Recreate)) && facts.is_bound(NAMESPACE, CLAIM)
    },
    ends_alike: true,
    check: check_bound,
};

/// Many rotate requests in a row.
pub(in super::super) static SPAMMED: Scenario = Scenario {
    name: "rotate-spammed",
    about: "a user asks for a new key again and again",
    phase: ScenarioPhase::Rotate,
    world: usual,
    script: || {
        let asked = ["one", "two", "three", "four"].into_iter().flat_map(|value| [ask_to_rotate(value), pass(7)]);
        [bound("rotationPolicy: {overlapSeconds: 30}"), asked.collect()].concat()
    },
    goal: Goal::new("the last request is handled and one key left", |facts| {
        let claim = facts.claim(NAMESPACE, CLAIM);
        let handled = &claim["status"]["handledRotateRequest"];
        rotated(facts, 2) && *handled == claim["metadata"]["annotations"]["broker.stowage.io/rotate"]
    }),
    otherwise: no_other,
    ends_alike: true,
    check: check_bound,
};

/// A rotation without an overlap: tenants have to read the new key at once.
pub(in super::super) static WITHOUT_OVERLAP: Scenario = Scenario {
    name: "rotate-at-once",
    about: "a user asks for a new key, and has the old one end at once",
    phase: ScenarioPhase::Rotate,
    world: usual,
    script: || [bound("rotationPolicy: {overlapSeconds: 0}"), vec![ask_to_rotate("now")]].concat(),
    goal: Goal::new("the key is replaced and the old one gone", |facts| rotated(facts, 2)),
    // A recreated claim has its request from the beginning.
    otherwise: |facts, faults| {
        faults.contains(&Fault::Project(StowageFault::Recreate)) && facts.is_bound(NAMESPACE, CLAIM)
    },
    ends_alike: true,
    check: check_bound,
};

/// A rotation by time is due while the previous key still works: it waits, because at most two keys
/// may be live.
pub(in super::super) static OVERLAPPING: Scenario = Scenario {
    name: "rotate-overlapping",
    about: "a key is a week old, and the one before it has some minutes to live",
    phase: ScenarioPhase::Rotate,
    world: usual,
    script: || {
        let overlap = WEEK + 300;
        let asked = vec![
            give_claim(&format!("rotationPolicy: {{intervalDays: 7, overlapSeconds: {overlap}}}")),
            ScenarioStep::Until(BOUND),
            pass(90),
            ask_to_rotate("now"),
            pass(30),
            WorldStep::StopOperator.into(),
            pass(WEEK - 180),
            WorldStep::StartOperator.into(),
            ScenarioStep::Tenant(NAMESPACE, CLAIM),
            patch(json!({"spec": {"rotationPolicy": {"mode": "TimeBased"}}})),
            pass(60),
            ScenarioStep::Begin,
        ];
        [at_work(BASE), asked].concat()
    },
    // The key that was replaced lives for another week.
    goal: Goal::new("the second key is replaced and the first gone", |facts| {
        let claim = facts.claim(NAMESPACE, CLAIM);
        facts.is_bound(NAMESPACE, CLAIM)
            && claim["status"]["rotationGeneration"].as_u64().is_some_and(|reached| reached >= 3)
            && facts.internal(Role::VirtualCredential, NAMESPACE, CLAIM).len() == 2
    }),
    // A recreated claim, or one whose keys are all revoked, has one new key. If a manual change
    // causes one more key, or each of two operators creates one (spec §3.2), that key lives as
    // long.
    otherwise: |facts, faults| {
        let other = |fault: &Fault| {
            matches!(
                fault,
                Fault::Project(StowageFault::Recreate | StowageFault::Tamper(_) | StowageFault::Edit(Edit::Revoke))
                    | Fault::Process(ProcessFault::Twin)
            )
        };
        faults.iter().any(other) && facts.is_bound(NAMESPACE, CLAIM)
    },
    ends_alike: true,
    check: check_bound,
};

/// A key has leaked, and is revoked at once regardless of the overlap.
pub(in super::super) static REVOKED: Scenario = Scenario {
    name: "revoke",
    about: "a key has leaked, and a user has every key end at once, under a tenant at work",
    phase: ScenarioPhase::Rotate,
    world: usual,
    script: || [bound("rotationPolicy: {overlapSeconds: 600}"), vec![revoke("leaked")]].concat(),
    goal: EVERY_KEY_IS_REVOKED,
    otherwise: no_other,
    ends_alike: true,
    check: check_bound,
};

/// Like `REVOKED`, with two live keys.
pub(in super::super) static REVOKED_IN_ROTATION: Scenario = Scenario {
    name: "revoke-in-rotation",
    about: "a user has every key end at once while a key that was replaced goes on working",
    phase: ScenarioPhase::Rotate,
    world: usual,
    script: || {
        let asked = vec![
            give_claim("rotationPolicy: {overlapSeconds: 600}"),
            ScenarioStep::Until(BOUND),
            ScenarioStep::Tenant(NAMESPACE, CLAIM),
            pass(90),
            ask_to_rotate("now"),
            pass(30),
            ScenarioStep::Begin,
            revoke("leaked"),
        ];
        [at_work(BASE), asked].concat()
    },
    goal: EVERY_KEY_IS_REVOKED,
    otherwise: no_other,
    ends_alike: true,
    check: check_bound,
};

const EVERY_KEY_IS_REVOKED: Goal = Goal::new("the revocation is handled and one key left", |facts| {
    let claim = facts.claim(NAMESPACE, CLAIM);
    let handled = &claim["status"]["handledRevokeRequest"];
    facts.is_bound(NAMESPACE, CLAIM)
        && handled.is_string()
        && *handled == claim["metadata"]["annotations"]["broker.stowage.io/revoke"]
        && facts.internal(Role::VirtualCredential, NAMESPACE, CLAIM).len() == 1
});

/// Public access is granted, and withdrawn again.
pub(in super::super) static ANONYMOUS: Scenario = Scenario {
    name: "anonymous",
    about: "a user gives public access to a bucket, and takes it again",
    phase: ScenarioPhase::Edit,
    world: usual,
    script: || {
        let access = |mode| patch(json!({"spec": {"anonymousAccess": {"mode": mode}}}));
        [bound(""), vec![access("ReadOnly"), pass(30), access("None")]].concat()
    },
    goal: Goal::new("the claim is bound and public access is gone", |facts| {
        facts.is_bound(NAMESPACE, CLAIM) && facts.internal(Role::AnonymousBinding, NAMESPACE, CLAIM).is_empty()
    }),
    otherwise: no_other,
    ends_alike: true,
    check: check_bound,
};
