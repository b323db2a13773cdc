//! A claim becomes bound, to a new bucket or an existing one, and is then edited.

use serde_json::json;
use stowage_operator::api::wire::Role;
use stowage_world::ADMIN_ACCOUNT;
use stowage_world::effects::{Edit, Fault, S3Fault, StowageFault};
use stowage_world::history::Facts;
use stowage_world::history::facts::field;
use stowage_world::scenes::{CLAIM, Goal, NAMESPACE, StoreStep};

use super::super::scenario::{Scenario, ScenarioPhase, ScenarioStep, WorldStep};
use super::words::{
    BASE, BOUND, BUCKET, ask_to_rotate, base_with, bound, check_bound, check_keys, claim_with, consumers, give_claim,
    no_other, pass, patch, usual,
};

/// A claim is bound after the operator's start.
pub(in super::super) static CREATE: Scenario = Scenario {
    name: "create",
    about: "a claim waits when the operator starts, and is bound",
    phase: ScenarioPhase::Create,
    world: usual,
    script: || {
        let manifests = format!("{BASE}\n---\n{}", claim_with(NAMESPACE, CLAIM, ""));
        vec![
            ScenarioStep::Apply(manifests),
            ScenarioStep::Tenant(NAMESPACE, CLAIM),
            ScenarioStep::Begin,
            WorldStep::StartOperator.into(),
        ]
    },
    goal: BOUND,
    otherwise: no_other,
    ends_alike: true,
    check: check_bound,
};

/// A claim gets an existing bucket with data.
pub(in super::super) static ADOPT: Scenario = Scenario {
    name: "adopt",
    about: "a claim is given a bucket with data in it, by adoptionPolicy Any",
    phase: ScenarioPhase::Adopt,
    world: usual,
    script: || {
        vec![
            ScenarioStep::Apply(base_with("adoptionPolicy: Any")),
            WorldStep::StartOperator.into(),
            ScenarioStep::Store(StoreStep::PutBucket { account: ADMIN_ACCOUNT, bucket: BUCKET }),
            ScenarioStep::Store(StoreStep::PutObject { bucket: BUCKET, key: "data" }),
            pass(5),
            ScenarioStep::Begin,
            give_claim(""),
        ]
    },
    goal: BOUND,
    otherwise: no_other,
    ends_alike: true,
    check: check_adopted,
};

/// A rotation on request, until the end of the overlap.
pub(in super::super) static ROTATE: Scenario = Scenario {
    name: "rotate",
    about: "a user asks for a new key, under a tenant at work",
    phase: ScenarioPhase::Rotate,
    world: usual,
    script: || [bound("rotationPolicy: {overlapSeconds: 60}"), vec![ask_to_rotate("now")]].concat(),
    goal: Goal::new("the request for a new key is handled and the old key gone", |facts| {
        let claim = facts.claim(NAMESPACE, CLAIM);
        let handled = &claim["status"]["handledRotateRequest"];
        facts.is_bound(NAMESPACE, CLAIM)
            && handled.is_string()
            && *handled == claim["metadata"]["annotations"]["broker.stowage.io/rotate"]
            && facts.internal(Role::VirtualCredential, NAMESPACE, CLAIM).len() == 1
    }),
    otherwise: no_other,
    ends_alike: true,
    check: check_bound,
};

/// A quota is edited.
pub(in super::super) static QUOTA: Scenario = Scenario {
    name: "quota",
    about: "a user changes the quota of a bound claim",
    phase: ScenarioPhase::Edit,
    world: usual,
    script: || [bound(""), vec![patch(json!({"spec": {"quota": {"soft": "1Gi", "hard": "2Gi"}}}))]].concat(),
    goal: Goal::new("the quota stands in key and consumer Secret", |facts| {
        facts.is_bound(NAMESPACE, CLAIM) && quotas(facts) == ["2147483648", "2147483648"]
    }),
    otherwise: no_other,
    ends_alike: true,
    check: check_bound,
};

/// A quota is removed.
pub(in super::super) static QUOTA_TAKEN: Scenario = Scenario {
    name: "quota-taken",
    about: "a user takes the quota of a bound claim away",
    phase: ScenarioPhase::Edit,
    world: usual,
    script: || [bound("quota: {soft: 1Gi, hard: 2Gi}"), vec![patch(json!({"spec": {"quota": null}}))]].concat(),
    goal: Goal::new("no quota stands in key and consumer Secret", |facts| {
        facts.is_bound(NAMESPACE, CLAIM) && quotas(facts).is_empty()
    }),
    // Another actor may have set another quota meanwhile.
    otherwise: |facts, faults| {
        faults.contains(&Fault::Project(StowageFault::Edit(Edit::Quota))) && facts.is_bound(NAMESPACE, CLAIM)
    },
    ends_alike: true,
    check: check_bound,
};

/// The consumer Secret gets another name.
pub(in super::super) static RENAME: Scenario = Scenario {
    name: "rename",
    about: "a user gives the consumer Secret another name",
    phase: ScenarioPhase::Edit,
    world: usual,
    script: || {
        [bound(""), vec![patch(json!({"spec": {"writeConnectionSecretToRef": {"name": "photos-new"}}}))]].concat()
    },
    goal: Goal::new("the consumer Secret has its new name, and the old one is gone", |facts| {
        let claim = facts.claim(NAMESPACE, CLAIM);
        let wanted = claim["spec"]["writeConnectionSecretToRef"]["name"].as_str().unwrap_or_default();
        facts.is_bound(NAMESPACE, CLAIM) && claim["status"]["boundSecretName"] == wanted && consumers(facts) == [wanted]
    }),
    otherwise: no_other,
    ends_alike: true,
    check: check_bound,
};

/// Returns the hard quota in the current key and in the consumer Secret.
fn quotas(facts: &Facts) -> Vec<String> {
    let claim = facts.claim(NAMESPACE, CLAIM);
    let bound = claim["status"]["boundSecretName"].as_str().unwrap_or_default();
    let keys = facts.current_keys(NAMESPACE, CLAIM);
    let internal = keys.first().and_then(|key| field(key, "quota_hard_bytes"));
    internal.into_iter().chain(field(facts.object("secrets", NAMESPACE, bound), "QUOTA_HARD_BYTES")).collect()
}

/// Checks that the bucket is unchanged: data, settings and tags.
fn check_adopted(facts: &Facts, faults: &[Fault]) -> Result<(), String> {
    if faults
        .iter()
        .any(|fault| matches!(fault, Fault::S3(S3Fault::Vanish) | Fault::Project(StowageFault::Usurp { .. })))
    {
        return Ok(());
    }
    check_keys(facts)?;
    let origin = &facts.claim(NAMESPACE, CLAIM)["status"]["bucketOrigin"];
    let bucket = facts.bucket(BUCKET).ok_or("the adopted bucket is gone")?;
    if *origin == "Adopted" && bucket.tags.is_none() && bucket.objects > 0 {
        Ok(())
    } else {
        Err(format!("the bucket's origin is {origin}, its tags {:?}, its objects {}", bucket.tags, bucket.objects))
    }
}
