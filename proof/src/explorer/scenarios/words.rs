//! Steps and conditions that many scenarios share.

use serde_json::{Value, json};
use stowage_operator::api::wire::Role;

use stowage_world::Options;
use stowage_world::effects::{Fault, StowageFault, Tampering};
use stowage_world::history::Facts;
use stowage_world::history::facts::field;
use stowage_world::scenes::{CLAIM, NAMESPACE, Scene, words};

use super::super::scenario::{ScenarioStep, WorldStep};

pub(super) use stowage_world::fixtures::{BASE, backend, base_with, claim_on, claim_with};
pub(super) use stowage_world::scenes::BUCKET;
pub(super) use stowage_world::scenes::words::{
    BOUND, PHOTOS, check_bound, check_keys, consumers, give_claim, pass, patch,
};

/// Returns the usual world.
pub(super) fn usual() -> Options {
    Options::default()
}

/// Returns a step in which a user requests a rotation.
pub(super) fn ask_to_rotate(value: &str) -> ScenarioStep {
    patch(json!({"metadata": {"annotations": {"broker.stowage.io/rotate": value}}}))
}

/// Returns a step in which a user revokes every key.
pub(super) fn revoke(value: &str) -> ScenarioStep {
    patch(json!({"metadata": {"annotations": {"broker.stowage.io/revoke": value}}}))
}

/// Returns a step in which a user pauses the claim, or resumes it if `value` is null.
pub(super) fn pause(value: Value) -> ScenarioStep {
    patch(json!({"metadata": {"annotations": {"broker.stowage.io/paused": value}}}))
}

/// Returns the steps that apply these manifests and start an operator.
pub(super) fn at_work(manifests: &str) -> Vec<ScenarioStep> {
    vec![ScenarioStep::Apply(manifests.to_owned()), WorldStep::StartOperator.into(), pass(5)]
}

/// Accepts no other end of a scenario than those that a fault may cause in every scenario.
pub(super) fn no_other(_: &Facts, _: &[Fault]) -> bool {
    false
}

/// Checks nothing beyond the goal and the general conditions.
pub(super) fn nothing_more(_: &Facts, _: &[Fault]) -> Result<(), String> {
    Ok(())
}

/// Returns the steps after which an operator runs on the base manifests, the claim has been bound
/// for two minutes, its bucket has data and a tenant uses it.
pub(super) fn bound(spec: &str) -> Vec<ScenarioStep> {
    bound_in(BASE, spec)
}

/// Like [`bound`], with these manifests.
pub(super) fn bound_in(manifests: &str, spec: &str) -> Vec<ScenarioStep> {
    [at_work(manifests), words::bound(spec)].concat()
}

/// Returns the steps of a scene, with an operator on the base manifests.
pub(super) fn played(scene: &Scene<WorldStep>) -> Vec<ScenarioStep> {
    [at_work(&format!("{BASE}\n---\n{}", scene.further)), (scene.script)()].concat()
}

/// Returns true if the claim is bound although its bucket was deleted, and may be.
///
/// A recreated claim was never bound to that bucket. A bucket without tags in the place of the lost
/// one may be the same. And without its key nothing proves that the claim was bound (spec §2),
/// unless its record does.
pub(super) fn was_not_lost(facts: &Facts, faults: &[Fault]) -> bool {
    let records = facts.internal(Role::BucketRecord, NAMESPACE, CLAIM);
    let settled = records.iter().any(|(_, record)| field(record, "settled").as_deref() == Some("true"));
    let other = |fault: &Fault| match fault {
        Fault::Project(StowageFault::Recreate | StowageFault::Usurp { .. }) => true,
        Fault::Project(StowageFault::Tamper(Tampering::DeleteCredential)) => !settled,
        _ => false,
    };
    faults.iter().any(other) && facts.is_bound(NAMESPACE, CLAIM)
}
