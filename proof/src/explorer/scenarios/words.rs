//! What the scenarios say again and again.

use std::time::Duration;

use serde_json::{Value, json};
use stowage_operator::api::wire::Role;

pub(super) use super::super::subject::BUCKET;
use stowage_world::Options;
use stowage_world::effects::{Fault, Feature, S3Fault, StowageFault, Tampering};
use stowage_world::history::Facts;
use stowage_world::history::facts::field;

use super::super::scenario::{Goal, ScenarioStep, StoreStep};
use super::super::subject::{CLAIM, NAMESPACE};
use super::super::target::{Target, TargetKind};

pub(super) use stowage_world::fixtures::{BASE, backend, base_with, claim_on, claim_with};

/// The claim that every scenario is about.
pub(super) const PHOTOS: Target = Target { kind: TargetKind::Claim, namespace: NAMESPACE, name: CLAIM };

/// The claim is bound, and its status speaks of the spec as it is.
pub(super) const BOUND: Goal = Goal::new("the claim is bound", |facts| facts.is_bound(NAMESPACE, CLAIM));

/// The usual world.
pub(super) fn usual() -> Options {
    Options::default()
}

/// A user gives the claim of the scenario, with this in its spec.
pub(super) fn give_claim(spec: &str) -> ScenarioStep {
    ScenarioStep::Apply(claim_with(NAMESPACE, CLAIM, spec))
}

/// Seconds pass.
pub(super) fn pass(seconds: u64) -> ScenarioStep {
    ScenarioStep::Pass(Duration::from_secs(seconds))
}

/// A user merges this into the claim.
pub(super) fn patch(patch: Value) -> ScenarioStep {
    ScenarioStep::Patch(PHOTOS, patch)
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
    vec![ScenarioStep::Apply(manifests.to_owned()), ScenarioStep::StartOperator, pass(5)]
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
    let bound = vec![
        give_claim(spec),
        ScenarioStep::Until(BOUND),
        ScenarioStep::Tenant(NAMESPACE, CLAIM),
        ScenarioStep::Store(StoreStep::PutObject { bucket: BUCKET, key: "data" }),
        pass(120),
        ScenarioStep::Begin,
    ];
    [at_work(manifests), bound].concat()
}

/// One bucket, tagged for this claim; one record; one consumer Secret; one key, in both places.
pub(super) fn check_bound(facts: &Facts, faults: &[Fault]) -> Result<(), String> {
    let claim = facts.claim(NAMESPACE, CLAIM);
    let bucket = facts.bucket(BUCKET).ok_or("the claim is bound, but there is no bucket")?;
    let others = |fault: &Fault| {
        matches!(
            fault,
            Fault::Project(StowageFault::Recreate | StowageFault::Usurp { .. })
                | Fault::S3(S3Fault::NotImplemented(Feature::Tagging))
        )
    };
    let tag = bucket.tags.as_ref().and_then(|tags| tags.get("broker.stowage.io/claim-uid"));
    if !faults.iter().any(others) && tag.map(String::as_str) != claim["metadata"]["uid"].as_str() {
        return Err(format!("the claim is bound, but its bucket has the tags {:?}", bucket.tags));
    }
    check_keys(facts)?;
    let records = facts.internal(Role::BucketRecord, NAMESPACE, CLAIM);
    let bound = claim["status"]["boundSecretName"].as_str().unwrap_or_default();
    let disowned = faults.contains(&Fault::Project(StowageFault::Tamper(Tampering::DisownConsumer)));
    let consumers: Vec<&str> = consumers(facts).into_iter().filter(|name| !disowned || *name == bound).collect();
    if records.len() == 1 && consumers == [bound] {
        Ok(())
    } else {
        Err(format!("the claim is bound with {} records and the consumer Secrets {consumers:?}", records.len()))
    }
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

/// The consumer Secrets in the claim's namespace.
pub(super) fn consumers(facts: &Facts) -> Vec<&str> {
    let all = facts.secrets(Role::ConsumerSecret).filter(|(namespace, ..)| *namespace == NAMESPACE);
    all.map(|(_, name, _)| name).collect()
}

/// A bound claim has one key without an end, and it is the one that is published.
pub(super) fn check_keys(facts: &Facts) -> Result<(), String> {
    let claim = facts.claim(NAMESPACE, CLAIM);
    let bound = claim["status"]["boundSecretName"].as_str().unwrap_or_default();
    let published = facts.object("secrets", NAMESPACE, bound);
    let keys = facts.current_keys(NAMESPACE, CLAIM);
    let [key] = keys.as_slice() else {
        return Err(format!("the claim is bound with {} keys that have no end", keys.len()));
    };
    let same =
        |internal, consumer| field(key, internal).is_some() && field(key, internal) == field(published, consumer);
    if same("access_key_id", "AWS_ACCESS_KEY_ID") && same("secret_access_key", "AWS_SECRET_ACCESS_KEY") {
        Ok(())
    } else {
        Err(format!("the consumer Secret {bound} does not hold the key that counts"))
    }
}
