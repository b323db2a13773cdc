//! Goals and checks that several scenes use.

use std::time::Duration;

use serde_json::Value;
use stowage_operator::api::wire::Role;

use super::{BUCKET, CLAIM, Goal, NAMESPACE, Step, StoreStep, Target, TargetKind};
use crate::effects::{Fault, Feature, S3Fault, StowageFault, Tampering};
use crate::fixtures::claim_with;
use crate::history::Facts;
use crate::history::facts::field;

/// The claim of every scene.
pub const PHOTOS: Target = Target { kind: TargetKind::Claim, namespace: NAMESPACE, name: CLAIM };

/// The claim is bound, and its status is about the current spec.
pub const BOUND: Goal = Goal::new("the claim is bound", |facts| facts.is_bound(NAMESPACE, CLAIM));

/// Returns the step in which a user creates the claim, with these spec fields.
pub fn give_claim<More>(spec: &str) -> Step<More> {
    Step::Apply(claim_with(NAMESPACE, CLAIM, spec))
}

/// Returns the step that waits for these seconds.
pub fn pass<More>(seconds: u64) -> Step<More> {
    Step::Pass(Duration::from_secs(seconds))
}

/// Returns the step in which a user merges a patch into the claim.
pub fn patch<More>(patch: Value) -> Step<More> {
    Step::Patch(PHOTOS, patch)
}

/// Returns the step that writes an object into the claim's bucket.
pub fn put<More>(key: &'static str) -> Step<More> {
    Step::Store(StoreStep::PutObject { bucket: BUCKET, key })
}

/// Returns the step that requires a goal to be reached already.
pub fn holds<More>(goal: Goal) -> Step<More> {
    Step::Settle(Duration::ZERO, goal)
}

/// Returns the step that requires a goal to be reached within these seconds.
pub fn within<More>(seconds: u64, goal: Goal) -> Step<More> {
    Step::Settle(Duration::from_secs(seconds), goal)
}

/// Returns the steps after which the claim has been bound for two minutes, with data in its bucket
/// and a tenant at work. Faults begin after them.
pub fn bound<More>(spec: &str) -> Vec<Step<More>> {
    let tenant = Step::Tenant(NAMESPACE, CLAIM);
    vec![give_claim(spec), Step::Until(BOUND), tenant, put("data"), within(120, BOUND), Step::Begin]
}

/// The claim is bound to a bucket that was created for it.
pub const CREATED: Goal = Goal::new("the claim is bound to a bucket that was created", |facts| {
    is_from(facts, "Created") && check_bound(facts, &[]).is_ok()
});

/// The claim is bound to a bucket that already existed.
pub const ADOPTED: Goal = Goal::new("the claim is bound to a bucket that was adopted", |facts| {
    is_from(facts, "Adopted") && check_keys(facts).is_ok()
});

/// Returns true if status and record have this origin of the claim's bucket.
fn is_from(facts: &Facts, origin: &str) -> bool {
    let status = &facts.claim(NAMESPACE, CLAIM)["status"];
    let records = facts.internal(Role::BucketRecord, NAMESPACE, CLAIM);
    let of_records: Vec<bool> =
        records.iter().map(|(_, it)| field(it, "origin").is_some_and(|it| it == "Adopted")).collect();
    status["bucketOrigin"] == origin && status["bucketName"] == BUCKET && of_records == [origin == "Adopted"]
}

/// Checks that there is one bucket with tags of the claim, one record, one consumer Secret, and one
/// key, which both the store and the consumer Secret have.
pub fn check_bound(facts: &Facts, faults: &[Fault]) -> Result<(), String> {
    let claim = facts.claim(NAMESPACE, CLAIM);
    let bucket = facts.bucket(BUCKET).ok_or("the claim is bound, but there is no bucket")?;
    let others = |fault: &Fault| {
        matches!(
            fault,
            Fault::Project(StowageFault::Recreate | StowageFault::Usurp { .. })
                | Fault::S3(S3Fault::NotImplemented(Feature::Tagging))
        )
    };
    let uid = |object: &Value| object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    let tags = [
        ("installation", uid(facts.object("namespaces", "", "kube-system"))),
        ("claim", format!("{NAMESPACE}/{CLAIM}")),
        ("claim-uid", uid(claim)),
    ];
    let has = |(tag, value): (&str, String)| {
        bucket.tags.as_ref().and_then(|tags| tags.get(&format!("broker.stowage.io/{tag}"))) == Some(&value)
    };
    if !faults.iter().any(others) && !tags.into_iter().all(has) {
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

/// Returns the consumer Secrets in the claim's namespace.
pub fn consumers(facts: &Facts) -> Vec<&str> {
    let all = facts.secrets(Role::ConsumerSecret).filter(|(namespace, ..)| *namespace == NAMESPACE);
    all.map(|(_, name, _)| name).collect()
}

/// Checks that a bound claim has exactly one key without expiry, and that this key is published.
pub fn check_keys(facts: &Facts) -> Result<(), String> {
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
