//! Annotations that name another operator: written by the owner of a claim, or left on an access by
//! a takeover (spec §1, §8).

use serde_json::{Value, json};
use stowage_operator::api::wire::{REVOKE, Role, SERVED_BY};
use stowage_world::effects::{Edit, Fault, StowageFault, Tampering};
use stowage_world::fixtures::access_with;
use stowage_world::history::Facts;
use stowage_world::history::facts::condition;
use stowage_world::scenes::{CLAIM, Goal, NAMESPACE, Target, TargetKind};
use stowage_world::{Accesses, Options};

use super::super::others::is_somebodys_doing;
use super::super::scenario::{Scenario, ScenarioPhase, ScenarioStep, WorldStep};
use super::words::{PHOTOS, bound, check_keys, nothing_more, pass, patch, usual};

/// The name of the access.
const READER: &str = "reader";
const ACCESS: Target = Target { kind: TargetKind::Access, namespace: NAMESPACE, name: READER };

/// Returns a patch that names another operator.
fn noted() -> Value {
    json!({"metadata": {"annotations": {SERVED_BY: "nobody/nothing"}}})
}

/// Returns true if the operator finds no Secret of the claim, so that the annotation counts.
///
/// No Secret is found for a claim that was recreated, or whose Secrets lost their labels. The
/// gateway doesn't serve those keys either.
fn has_no_secret_here(fault: &Fault) -> bool {
    let unlabelled = StowageFault::Tamper(Tampering::RelabelInternal);
    *fault == Fault::Project(StowageFault::Recreate) || *fault == Fault::Project(unlabelled)
}

/// The owner of a claim annotates it with another operator, and then its key leaks.
pub(in super::super) static REVOKED: Scenario = Scenario {
    name: "revoke-noted",
    about: "a claim's owner notes another operator on it, and has every key end at once",
    phase: ScenarioPhase::Rotate,
    world: usual,
    script: || {
        let revoked = json!({"metadata": {"annotations": {REVOKE: "leaked"}}});
        [bound("rotationPolicy: {overlapSeconds: 600}"), vec![patch(noted()), pass(5), patch(revoked)]].concat()
    },
    goal: Goal::new("the revocation is handled, one key left, and the note told", |facts| {
        let claim = facts.claim(NAMESPACE, CLAIM);
        // The last request counts: another actor may have made another one meanwhile.
        let handled = &claim["status"]["handledRevokeRequest"];
        facts.ready(NAMESPACE, CLAIM) == "ServedByAnother"
            && handled.is_string()
            && *handled == claim["metadata"]["annotations"][REVOKE]
            && facts.internal(Role::VirtualCredential, NAMESPACE, CLAIM).len() == 1
    }),
    // A paused claim gets no new key. A claim that lost its finalizer also lost the annotation, and
    // this operator serves it again.
    otherwise: |facts, faults| {
        let is_left_so = |fault: &Fault| match fault {
            Fault::Project(StowageFault::Edit(Edit::Pause)) => true,
            Fault::Project(StowageFault::Tamper(Tampering::StripFinalizers)) => facts.is_bound(NAMESPACE, CLAIM),
            other => has_no_secret_here(other),
        };
        faults.iter().any(is_left_so)
    },
    ends_alike: true,
    check: |facts, _| check_keys(facts),
};

/// A claim on which its owner named another operator is deleted.
pub(in super::super) static DELETED: Scenario = Scenario {
    name: "delete-noted",
    about: "a claim goes with its bucket, after its owner noted another operator on it",
    phase: ScenarioPhase::Purge,
    world: usual,
    script: || {
        let deleted = vec![patch(noted()), pass(5), ScenarioStep::Delete(PHOTOS)];
        [bound("deletionPolicy: Delete, forceDelete: true"), deleted].concat()
    },
    goal: Goal::new("the claim is gone, and so are its keys and its record", |facts| {
        let left = [Role::VirtualCredential, Role::BucketRecord].map(|role| facts.secrets(role).next().is_some());
        facts.claim(NAMESPACE, CLAIM).is_null() && left == [false, false]
    }),
    otherwise: |_, faults| faults.iter().any(has_no_secret_here),
    ends_alike: true,
    check: nothing_more,
};

/// Another operator takes over backend and claim, but not the access.
pub(in super::super) static LEFT_BEHIND: Scenario = Scenario {
    name: "access-left-behind",
    about: "an access comes back from a backup of another operator, and says so until it is handed over",
    phase: ScenarioPhase::Recover,
    world: || Options { accesses: Accesses::Served, ..Options::default() },
    script: || {
        let entry = format!("buckets: [{{claimRef: {{name: {CLAIM}}}}}]");
        let mut steps = bound("");
        steps.pop();
        steps.extend([
            ScenarioStep::Apply(access_with(NAMESPACE, READER, &entry)),
            ScenarioStep::Until(Goal::new("the access is open", |facts| is(facts, "Open"))),
            WorldStep::StopOperator.into(),
            ScenarioStep::Patch(ACCESS, noted()),
            WorldStep::Restore(ACCESS).into(),
            ScenarioStep::Begin,
            WorldStep::StartOperator.into(),
            ScenarioStep::Until(Goal::new("the access tells of the note", |facts| is(facts, "ServedByAnother"))),
            ScenarioStep::Patch(ACCESS, json!({"metadata": {"annotations": {SERVED_BY: null}}})),
        ]);
        steps
    },
    goal: Goal::new("the access is open by one key", |facts| {
        is(facts, "Open") && facts.secrets(Role::AccessCredential).count() == 1
    }),
    otherwise: |_, faults| faults.iter().any(|fault| is_somebodys_doing(*fault)),
    ends_alike: true,
    check: nothing_more,
};

/// Returns true if the access's `Ready` has this reason.
fn is(facts: &Facts, reason: &str) -> bool {
    condition(facts.object("bucketaccesses", NAMESPACE, READER), "Ready") == reason
}
