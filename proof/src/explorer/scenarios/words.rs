//! What the scenarios say again and again.

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

/// The usual world.
pub(super) fn usual() -> Options {
    Options::default()
}

/// A user asks for a rotation.
pub(super) fn ask_to_rotate(value: &str) -> ScenarioStep {
    patch(json!({"metadata": {"annotations": {"broker.stowage.io/rotate": value}}}))
}

/// A user revokes every key.
pub(super) fn revoke(value: &str) -> ScenarioStep {
    patch(json!({"metadata": {"annotations": {"broker.stowage.io/revoke": value}}}))
}

/// A user pauses the claim, or with null resumes it.
pub(super) fn pause(value: Value) -> ScenarioStep {
    patch(json!({"metadata": {"annotations": {"broker.stowage.io/paused": value}}}))
}

/// An operator at work where these manifests are.
pub(super) fn at_work(manifests: &str) -> Vec<ScenarioStep> {
    vec![ScenarioStep::Apply(manifests.to_owned()), WorldStep::StartOperator.into(), pass(5)]
}

/// No fault leads to anything here that it doesn't lead to everywhere.
pub(super) fn no_other(_: &Facts, _: &[Fault]) -> bool {
    false
}

/// Nothing is to hold besides the goal and what always has to.
pub(super) fn nothing_more(_: &Facts, _: &[Fault]) -> Result<(), String> {
    Ok(())
}

/// An operator at work in the base, with the claim bound for two minutes, data in its bucket and a
/// tenant at work.
pub(super) fn bound(spec: &str) -> Vec<ScenarioStep> {
    bound_in(BASE, spec)
}

/// The same where these manifests are.
pub(super) fn bound_in(manifests: &str, spec: &str) -> Vec<ScenarioStep> {
    [at_work(manifests), words::bound(spec)].concat()
}

/// A scene, with an operator at work in the base.
pub(super) fn played(scene: &Scene<WorldStep>) -> Vec<ScenarioStep> {
    [at_work(&format!("{BASE}\n---\n{}", scene.further)), (scene.script)()].concat()
}

/// The claim is bound although its bucket was deleted, and may be: another UID never was bound to
/// it; a bucket without tags in the place of the lost one may be the same; and with its key the
/// last proof is gone that it was bound (spec §2), unless its record says so.
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
