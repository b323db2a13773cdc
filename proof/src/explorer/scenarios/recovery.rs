//! Recovery from loss, refusal and damage.

use serde_json::{Value, json};
use stowage_operator::api::wire::Role;
use stowage_world::effects::{Edit, Fault, Feature, S3Fault, StowageFault, Tampering};
use stowage_world::history::Facts;
use stowage_world::history::facts::field;
use stowage_world::scenes::names::CONSUMER_TAKEN;
use stowage_world::scenes::{BUCKET, CLAIM, Goal, NAMESPACE, StoreStep, Target, TargetKind};

use super::super::others::any_may_rest;
use super::super::scenario::{Scenario, ScenarioPhase, ScenarioStep, WorldStep};
use super::words::{
    BASE, BOUND, PHOTOS, ask_to_rotate, at_work, base_with, bound, check_bound, check_keys, claim_on, give_claim,
    no_other, nothing_more, pass, pause, usual, was_not_lost,
};

const MAIN: Target = Target { kind: TargetKind::Backend, namespace: "", name: "main" };
const NAMESPACE_OBJECT: Target = Target { kind: TargetKind::Namespace, namespace: "", name: NAMESPACE };
const CONSUMER: Target = Target { kind: TargetKind::Secret, namespace: NAMESPACE, name: "photos-s3" };

/// The claim is not being deleted. A claim applied while the old one is still being deleted creates
/// no new object.
const NOT_GOING: Goal = Goal::new("the claim is not on its way out", |facts| {
    facts.claim(NAMESPACE, CLAIM)["metadata"]["deletionTimestamp"].is_null()
});

/// A claim is deleted although its backend is gone.
pub(in super::super) static BACKEND_FIRST: Scenario = Scenario {
    name: "backend-first",
    about: "the backend is deleted, then the claim",
    phase: ScenarioPhase::Delete,
    world: usual,
    script: || [bound(""), vec![ScenarioStep::Delete(MAIN), pass(30), ScenarioStep::Delete(PHOTOS)]].concat(),
    goal: Goal::new("the claim is gone", |facts| facts.claim(NAMESPACE, CLAIM).is_null()),
    otherwise: |facts, faults| {
        let reason = facts.ready(NAMESPACE, CLAIM);
        // Without a backend no bucket can be deleted, and no claim can be bound.
        let deletes = |fault: &Fault| matches!(fault, Fault::Project(StowageFault::Edit(Edit::Delete | Edit::Force)));
        (faults.iter().any(deletes) && reason == "DeletionBlocked")
            || (faults.contains(&Fault::Project(StowageFault::Recreate)) && reason == "BackendNotReady")
    },
    ends_alike: true,
    check: nothing_more,
};

/// A namespace is deleted with the claims in it.
pub(in super::super) static NAMESPACE_GONE: Scenario = Scenario {
    name: "namespace",
    about: "a namespace is deleted, with claims in it",
    phase: ScenarioPhase::Delete,
    world: usual,
    script: || {
        let second = claim_on("nowhere", NAMESPACE, "second", "");
        let mut steps = bound("deletionPolicy: Delete, forceDelete: true");
        steps.insert(steps.len() - 1, ScenarioStep::Apply(second));
        steps.push(ScenarioStep::Delete(NAMESPACE_OBJECT));
        steps
    },
    goal: Goal::new("the namespace is gone", |facts| facts.object("namespaces", "", NAMESPACE).is_null()),
    otherwise: any_may_rest,
    ends_alike: true,
    check: nothing_more,
};

/// A claim is restored from a backup under a new UID.
pub(in super::super) static RESTORE: Scenario = Scenario {
    name: "restore",
    about: "a claim comes back from a backup, under a new UID",
    phase: ScenarioPhase::Recover,
    world: usual,
    script: || {
        let mut steps = bound("");
        steps.insert(steps.len() - 1, WorldStep::StopOperator.into());
        steps.push(WorldStep::Restore(PHOTOS).into());
        steps.push(WorldStep::StartOperator.into());
        steps
    },
    goal: BOUND,
    otherwise: |facts, faults| {
        // Nothing shows the owner of the bucket.
        let untold = Fault::S3(S3Fault::NotImplemented(Feature::Tagging));
        faults.contains(&untold) && facts.ready(NAMESPACE, CLAIM) == "BucketExists"
    },
    ends_alike: true,
    check: |facts, _| check_keys(facts),
};

/// A claim is deleted and recreated several times, without a pause.
pub(in super::super) static BURST: Scenario = Scenario {
    name: "burst",
    about: "a claim is deleted and made again, again and again",
    phase: ScenarioPhase::Delete,
    world: usual,
    script: || {
        let spec = "deletionPolicy: Delete, forceDelete: true";
        let again = || [ScenarioStep::Delete(PHOTOS), pass(2), give_claim(spec), pass(1)];
        [bound(spec), (0..3).flat_map(|_| again()).collect(), vec![ScenarioStep::Until(NOT_GOING), give_claim(spec)]]
            .concat()
    },
    goal: BOUND,
    otherwise: |facts, faults| {
        match facts.ready(NAMESPACE, CLAIM) {
            // A bucket that can't be inspected must not be deleted.
            "DeletionBlocked" => faults.contains(&Fault::S3(S3Fault::BucketExists)),
            // A bucket that was retained before it had its tags belongs to no one as far as the
            // next claim can see.
            "BucketExists" => faults.len() > 1 && faults.contains(&Fault::Project(StowageFault::Edit(Edit::Retain))),
            _ => false,
        }
    },
    ends_alike: false,
    check: |facts, faults| {
        // A claim reports it if its tags don't show, or if others created its bucket.
        if faults.is_empty() { check_bound(facts, faults) } else { check_keys(facts) }
    },
};

/// The Secrets were stored by an older version of the operator.
pub(in super::super) static OLDER_VERSION: Scenario = Scenario {
    name: "older-version",
    about: "the operator finds what an older version of it has written",
    phase: ScenarioPhase::Recover,
    world: usual,
    script: || {
        let mut steps = bound("quota: {hard: 1Gi}");
        steps.pop();
        steps.extend([
            WorldStep::StopOperator.into(),
            pass(5),
            WorldStep::Age.into(),
            ScenarioStep::Begin,
            WorldStep::StartOperator.into(),
            pass(30),
        ]);
        steps
    },
    goal: Goal::new("the claim is bound and its key complete", |facts| {
        let keys = facts.current_keys(NAMESPACE, CLAIM);
        let has = |name| keys.first().is_some_and(|key| field(key, name).is_some());
        facts.is_bound(NAMESPACE, CLAIM) && has("quota_hard_bytes") && has("endpoint")
    }),
    otherwise: no_other,
    ends_alike: true,
    check: check_bound,
};

/// Like `OLDER_VERSION`, for a paused claim: the endpoint of its key is added nevertheless.
pub(in super::super) static OLDER_PAUSED: Scenario = Scenario {
    name: "older-paused",
    about: "the operator finds what an older version of it has written, of a claim that is paused and open to the public",
    phase: ScenarioPhase::Recover,
    world: usual,
    script: || {
        let mut steps = bound("anonymousAccess: {mode: ReadOnly}");
        steps.pop();
        steps.extend([
            pause("true".into()),
            pass(10),
            WorldStep::StopOperator.into(),
            pass(5),
            WorldStep::Age.into(),
            ScenarioStep::Begin,
            WorldStep::StartOperator.into(),
            pass(30),
        ]);
        steps
    },
    // A fault may remove Secrets; they are created again once the claim is resumed.
    goal: Goal::new("the claim is as before, and what it has of key and public access notes its store", |facts| {
        let all = [Role::VirtualCredential, Role::AnonymousBinding].map(|role| facts.internal(role, NAMESPACE, CLAIM));
        // The fault may be that someone resumes the claim.
        ["Paused", "Bound"].contains(&facts.ready(NAMESPACE, CLAIM))
            && all.iter().flatten().all(|(_, secret)| field(secret, "endpoint").is_some())
    }),
    // A record that was deleted by hand is created again once the claim is resumed.
    otherwise: |facts, faults| {
        faults.contains(&Fault::Project(StowageFault::Tamper(Tampering::DeleteRecord)))
            && facts.ready(NAMESPACE, CLAIM) == "Paused"
            && facts.internal(Role::BucketRecord, NAMESPACE, CLAIM).is_empty()
    },
    ends_alike: true,
    check: |_, _| Ok(()),
};

/// Returns a step in which a user restricts the backend to these namespaces.
pub(super) fn allowed_for(namespaces: &[&str]) -> ScenarioStep {
    ScenarioStep::Patch(MAIN, json!({"spec": {"allowedNamespaces": {"names": namespaces}}}))
}

/// A namespace is not allowed by the backend at first.
pub(in super::super) static NOT_ALLOWED: Scenario = Scenario {
    name: "not-allowed",
    about: "the backend is for other namespaces and its template fits no name, until it is mended",
    phase: ScenarioPhase::Recover,
    world: usual,
    script: || {
        let template = |text: &str| ScenarioStep::Patch(MAIN, json!({"spec": {"bucketNameTemplate": text}}));
        [
            at_work(&base_with("allowedNamespaces: {names: [team-b]}")),
            vec![
                ScenarioStep::Begin,
                give_claim(""),
                pass(20),
                template("{{ .Name }}..{{ .Namespace }}"),
                allowed_for(&["team-a"]),
                pass(20),
                template("{{ .Namespace }}-{{ .Name }}"),
            ],
        ]
        .concat()
    },
    goal: BOUND,
    otherwise: no_other,
    ends_alike: true,
    check: check_bound,
};

/// A foreign Secret has the name of the consumer Secret, until it is deleted.
pub(in super::super) static SECRET_TAKEN: Scenario = Scenario {
    name: "secret-taken",
    about: "somebody's Secret has the name of the consumer Secret, until it is deleted",
    phase: ScenarioPhase::Recover,
    world: usual,
    script: || {
        let taken = [ScenarioStep::Apply(CONSUMER_TAKEN.to_owned()), ScenarioStep::Begin, give_claim(""), pass(30)];
        [at_work(BASE), taken.into(), vec![ScenarioStep::Delete(CONSUMER)]].concat()
    },
    goal: BOUND,
    otherwise: no_other,
    ends_alike: true,
    check: check_bound,
};

/// A claim's bucket is deleted by someone else.
pub(in super::super) static BUCKET_LOST: Scenario = Scenario {
    name: "bucket-lost",
    about: "somebody deletes the bucket of a bound claim",
    phase: ScenarioPhase::Recover,
    world: usual,
    script: || {
        let mut steps = bound("");
        steps.extend([ScenarioStep::Store(StoreStep::RemoveBucket { bucket: BUCKET }), pass(900)]);
        steps
    },
    goal: Goal::new("the loss is told", |facts| facts.ready(NAMESPACE, CLAIM) == "BucketMissing"),
    otherwise: was_not_lost,
    ends_alike: true,
    check: check_not_replaced,
};

/// A claim is paused, a rotation is requested, and the claim is resumed.
pub(in super::super) static PAUSED: Scenario = Scenario {
    name: "paused",
    about: "a claim is paused, a new key is asked for, and the claim is resumed",
    phase: ScenarioPhase::Recover,
    world: usual,
    script: || {
        [
            bound("rotationPolicy: {overlapSeconds: 30}"),
            vec![pause("true".into()), pass(10), ask_to_rotate("now"), pass(60), pause(Value::Null)],
        ]
        .concat()
    },
    goal: Goal::new("the claim is bound by a new key alone", |facts| {
        let claim = facts.claim(NAMESPACE, CLAIM);
        facts.is_bound(NAMESPACE, CLAIM)
            && claim["status"]["handledRotateRequest"] == claim["metadata"]["annotations"]["broker.stowage.io/rotate"]
            && facts.internal(Role::VirtualCredential, NAMESPACE, CLAIM).len() == 1
    }),
    otherwise: no_other,
    ends_alike: true,
    check: check_bound,
};

/// Checks that a lost bucket was not replaced by an empty one.
fn check_not_replaced(facts: &Facts, faults: &[Fault]) -> Result<(), String> {
    let others = |fault: &Fault| {
        matches!(
            fault,
            Fault::Project(StowageFault::Usurp { .. } | StowageFault::Recreate)
                | Fault::S3(S3Fault::AlreadyOwned | S3Fault::OkOnExisting | S3Fault::BucketExists)
        )
    };
    if faults.iter().any(others) || facts.bucket(BUCKET).is_none() {
        Ok(())
    } else {
        Err("a bucket that was lost was replaced by an empty one".to_owned())
    }
}
