//! Operators start and stop: two at once, one that restarts, one that runs for years.

use std::time::Duration;

use serde_json::json;
use stowage_operator::api::wire::{Role, SERVED_BY};
use stowage_world::effects::{CallFault, Fault, KubeFault, Outage, ProcessFault, S3Operation, StowageFault, Tampering};
use stowage_world::history::Facts;
use stowage_world::scenes::{BUCKET, CLAIM, Goal, NAMESPACE, StoreStep, Target, TargetKind};
use stowage_world::{OPERATOR_NAMESPACE, Options};

use super::super::others;
use super::super::scenario::{Scenario, ScenarioPhase, ScenarioStep, WorldStep};
use super::words::{
    BASE, BOUND, PHOTOS, ask_to_rotate, at_work, bound, check_bound, check_keys, give_claim, no_other, nothing_more,
    pass, usual, was_not_lost,
};

/// Returns the steps after which two operators run on the base manifests and faults may begin.
fn two_at_work() -> Vec<ScenarioStep> {
    vec![
        ScenarioStep::Apply(BASE.to_owned()),
        WorldStep::StartOperator.into(),
        WorldStep::StartOperator.into(),
        pass(10),
        ScenarioStep::Begin,
    ]
}

/// Two operators run during a claim's whole life.
pub(in super::super) static TWO_OPERATORS: Scenario = Scenario {
    name: "two-operators",
    about: "two operators work on a claim at once, then one of them",
    phase: ScenarioPhase::Create,
    world: usual,
    script: || {
        let life = [
            give_claim("rotationPolicy: {overlapSeconds: 30}"),
            ScenarioStep::Tenant(NAMESPACE, CLAIM),
            pass(120),
            ask_to_rotate("now"),
            pass(300),
            WorldStep::StopOperator.into(),
            // Enough for one sweep.
            pass(800),
        ];
        two_at_work().into_iter().chain(life).collect()
    },
    goal: BOUND,
    otherwise: no_other,
    ends_alike: false,
    check: |facts, _| check_keys(facts),
};

/// Host and port of the store.
const STORE: &str = "s3.example:9000";

/// An operator with one slot waits for the store to tag the bucket, and meanwhile another one
/// finishes.
pub(in super::super) static SLOW_TWINS: Scenario = Scenario {
    name: "slow-twins",
    about: "two operators with one slot each, and a store that takes its time with the first of them",
    phase: ScenarioPhase::Create,
    world: || Options { max_concurrent_reconciles: 1, ..usual() },
    script: || {
        let slow = Outage {
            host: STORE.to_owned(),
            operation: S3Operation::named("PutBucketTagging"),
            fault: Fault::Call(CallFault::Slow { millis: 8000 }),
        };
        vec![
            ScenarioStep::Apply(BASE.to_owned()),
            WorldStep::StartOperator.into(),
            pass(10),
            ScenarioStep::Begin,
            WorldStep::Outage(slow).into(),
            give_claim("rotationPolicy: {overlapSeconds: 3600}"),
            pass(2),
            WorldStep::Recovery(STORE).into(),
            WorldStep::StartOperator.into(),
            pass(60),
        ]
    },
    goal: BOUND,
    otherwise: no_other,
    ends_alike: false,
    check: |facts, faults| {
        // When the first operator continues, the record names the generation of the second's key,
        // so the first must not create one.
        let keys = facts.internal(Role::VirtualCredential, NAMESPACE, CLAIM).len();
        if faults.is_empty() && keys != 1 {
            return Err(format!("a claim that nobody asked to rotate has {keys} keys"));
        }
        check_keys(facts)
    },
};

/// Two operators see the same events at different times, and come to agree.
pub(in super::super) static TWO_AT_REST: Scenario = Scenario {
    name: "two-at-rest",
    about: "two operators stay, and somebody deletes the bucket of their claim",
    phase: ScenarioPhase::Recover,
    world: usual,
    script: || {
        let lost = ScenarioStep::Store(StoreStep::RemoveBucket { bucket: BUCKET });
        let bound = [give_claim(""), ScenarioStep::Until(BOUND), pass(60), lost, pass(1500)];
        two_at_work().into_iter().chain(bound).collect()
    },
    goal: Goal::new("the loss is told", |facts| facts.ready(NAMESPACE, CLAIM) == "BucketMissing"),
    otherwise: |facts, faults| {
        // One operator may have noted the loss, while the other one has lost the proof that there
        // was anything to lose.
        let unproved = faults.contains(&Fault::Project(StowageFault::Tamper(Tampering::DeleteCredential)));
        // A paused operator creates the bucket again before it learns that there was one (an open
        // issue; E3 counts it).
        let stood_still = faults.iter().any(|fault| matches!(fault, Fault::Process(ProcessFault::Pause { .. })));
        let remade = stood_still && facts.bucket(BUCKET).is_some();
        was_not_lost(facts, faults) || ((unproved || remade) && facts.is_bound(NAMESPACE, CLAIM))
    },
    ends_alike: false,
    check: nothing_more,
};

/// A backend has not been served by any operator yet.
pub(in super::super) static FIRST_SERVED: Scenario = Scenario {
    name: "first-served",
    about: "a backend is new: who serves it is noted before it is asked for anything",
    phase: ScenarioPhase::Create,
    world: usual,
    script: || {
        let main = Target { kind: TargetKind::Backend, namespace: "", name: "main" };
        let unnoted = json!({"metadata": {"annotations": {SERVED_BY: null}}});
        vec![
            ScenarioStep::Apply(BASE.to_owned()),
            ScenarioStep::Patch(main, unnoted),
            ScenarioStep::Begin,
            WorldStep::StartOperator.into(),
            give_claim(""),
        ]
    },
    goal: BOUND,
    otherwise: no_other,
    ends_alike: true,
    check: |facts, faults| {
        let backend = facts.all("s3backends").next().map(|(_, _, backend)| backend);
        let noted = backend.is_some_and(|backend| backend["metadata"]["annotations"][SERVED_BY].is_string());
        if noted { check_bound(facts, faults) } else { Err("nobody is noted to serve the backend".to_owned()) }
    },
};

/// An operator restarts with a claim that has a history.
pub(in super::super) static RESTART: Scenario = Scenario {
    name: "restart",
    about: "the operator starts again, after a user has asked for a new key twice",
    phase: ScenarioPhase::Rotate,
    world: usual,
    script: || {
        let mut steps = bound("rotationPolicy: {overlapSeconds: 30}");
        steps.pop();
        let rotated = [ask_to_rotate("one"), pass(180), ask_to_rotate("two"), pass(180)];
        steps.extend(rotated);
        steps.extend([
            WorldStep::StopOperator.into(),
            pass(5),
            ScenarioStep::Begin,
            WorldStep::StartOperator.into(),
            pass(120),
        ]);
        steps
    },
    goal: Goal::new("the claim is bound by one key", |facts| facts.is_bound(NAMESPACE, CLAIM) && has_one_key(facts)),
    otherwise: no_other,
    ends_alike: true,
    check: |facts, faults| {
        // A late event must not lead to another rotation.
        let late = |fault: &Fault| {
            matches!(
                fault,
                Fault::Kube(
                    KubeFault::Stale { .. }
                        | KubeFault::Rewind
                        | KubeFault::Collapse
                        | KubeFault::WatchSilent
                        | KubeFault::WatchCut
                        | KubeFault::WatchGone
                        | KubeFault::WatchDuplicate
                )
            )
        };
        let generation = &facts.claim(NAMESPACE, CLAIM)["status"]["rotationGeneration"];
        if faults.iter().all(late) && *generation != 3 {
            return Err(format!("two new keys were asked for, and the claim has its {generation}."));
        }
        check_bound(facts, faults)
    },
};

/// Ten years of rotation, one key per quarter. The operator is restarted for each, as it would be
/// for updates.
pub(in super::super) static TEN_YEARS: Scenario = Scenario {
    name: "ten-years",
    about: "for ten years a key a quarter is replaced, by time",
    phase: ScenarioPhase::Rotate,
    world: usual,
    script: || {
        let quarterly = "rotationPolicy: {mode: TimeBased, intervalDays: 90, overlapSeconds: 60}";
        let away: ScenarioStep = WorldStep::Leap(Duration::from_secs(QUARTER - 600)).into();
        let quarter =
            || [WorldStep::StopOperator.into(), pass(60), away.clone(), WorldStep::StartOperator.into(), pass(540)];
        let last = vec![
            WorldStep::StopOperator.into(),
            pass(60),
            away.clone(),
            WorldStep::StartOperator.into(),
            pass(20),
            ScenarioStep::Tenant(NAMESPACE, CLAIM),
        ];
        [
            at_work(BASE),
            vec![give_claim(quarterly), ScenarioStep::Until(BOUND)],
            (1..QUARTERS).flat_map(|_| quarter()).collect(),
            last,
            vec![ScenarioStep::Begin],
        ]
        .concat()
    },
    goal: Goal::new("the claim is bound by the key of its last quarter", |facts| {
        let generation = facts.claim(NAMESPACE, CLAIM)["status"]["rotationGeneration"].as_u64();
        facts.is_bound(NAMESPACE, CLAIM) && generation.is_some_and(|it| it > QUARTERS) && has_one_key(facts)
    }),
    // The keys of a recreated claim are counted from one. And for a clock that is behind each
    // quarter is longer, so that now and then one ends while the operator is stopped.
    otherwise: |facts, faults| {
        let generation = facts.claim(NAMESPACE, CLAIM)["status"]["rotationGeneration"].as_u64();
        let behind = faults.iter().any(|fault| !others::is_behind(*fault).is_zero());
        let late = behind && generation.is_some_and(|it| it + QUARTERS / 10 > QUARTERS) && has_one_key(facts);
        (late || faults.contains(&Fault::Project(StowageFault::Recreate))) && facts.is_bound(NAMESPACE, CLAIM)
    },
    ends_alike: true,
    check: check_bound,
};

/// Seconds in 90 days.
const QUARTER: u64 = 90 * 86_400;
/// Quarters in ten years.
const QUARTERS: u64 = 40;

/// A claim has had more keys than a pass may have steps.
pub(in super::super) static MANY_KEYS: Scenario = Scenario {
    name: "many-keys",
    about: "a claim goes that has had hundreds of keys, and is made again",
    phase: ScenarioPhase::Delete,
    world: usual,
    script: || {
        let mut steps = bound("rotationPolicy: {overlapSeconds: 30}, deletionPolicy: Delete, forceDelete: true");
        steps.pop();
        steps.extend([
            // Regular rotations would take years to get there.
            ScenarioStep::Patch(RECORD, json!({"stringData": {"generation": "300"}})),
            ScenarioStep::Until(Goal::new("the claim has its 301st key", |facts| {
                facts.claim(NAMESPACE, CLAIM)["status"]["rotationGeneration"] == 301 && has_one_key(facts)
            })),
            ScenarioStep::Delete(PHOTOS),
            ScenarioStep::Until(Goal::new("the claim is gone", |facts| facts.claim(NAMESPACE, CLAIM).is_null())),
            ScenarioStep::Begin,
            give_claim(""),
        ]);
        steps
    },
    goal: BOUND,
    otherwise: no_other,
    ends_alike: true,
    check: check_bound,
};

/// The record of the claim's bucket; its name is derived from bucket and endpoint.
const RECORD: Target = Target {
    kind: TargetKind::Secret,
    namespace: OPERATOR_NAMESPACE,
    name: "br-d6b7c668c2726ab4e5dc7e511647c1d7fad4c707",
};

/// A cluster has had many writes: its resourceVersions get another digit during a rotation.
pub(in super::super) static VERSIONS: Scenario = Scenario {
    name: "versions",
    about: "a key is replaced while resourceVersions get another digit",
    phase: ScenarioPhase::Rotate,
    world: || Options { writes_before: 9_960, ..Options::default() },
    script: || [bound("rotationPolicy: {overlapSeconds: 60}"), vec![ask_to_rotate("now")]].concat(),
    goal: Goal::new("the request for a new key is handled and the old key gone", |facts| {
        let claim = facts.claim(NAMESPACE, CLAIM);
        let asked = &claim["metadata"]["annotations"]["broker.stowage.io/rotate"];
        facts.is_bound(NAMESPACE, CLAIM) && claim["status"]["handledRotateRequest"] == *asked && has_one_key(facts)
    }),
    otherwise: no_other,
    ends_alike: true,
    check: check_bound,
};

fn has_one_key(facts: &Facts) -> bool {
    facts.internal(Role::VirtualCredential, NAMESPACE, CLAIM).len() == 1
}
