//! Scenes in which two claims have the same bucket name, or in which the bucket or Secret already
//! exists.

use serde_json::json;

use super::removal::{GONE, check_gone, check_retained, internal};
use super::words::{ADOPTED, BOUND, CREATED, PHOTOS, check_bound, consumers, give_claim, holds, put, within};
use super::{BUCKET, CLAIM, Goal, NAMESPACE, Scene, Step, StoreStep, Target, TargetKind};
use crate::effects::{Fault, Feature, S3Fault, StowageFault, Tampering};
use crate::fixtures::claim_with;
use crate::history::Facts;
use crate::installation::ADMIN_ACCOUNT;

/// A namespace in which a claim can get the same bucket name.
pub const TEAM: &str = "{apiVersion: v1, kind: Namespace, metadata: {name: team}}";

/// A claim with the same bucket name by the template: `team` and `a-photos`, `team-a` and `photos`.
pub const RIVAL: Target = Target { kind: TargetKind::Claim, namespace: "team", name: "a-photos" };

/// Returns the steps after which a bound claim already has the name of the scene's claim. Faults
/// begin after them.
pub fn beside_a_rival<More>() -> Vec<Step<More>> {
    let bound = Goal::new("the other claim is bound", |facts| facts.is_bound(RIVAL.namespace, RIVAL.name));
    let rival = Step::Apply(claim_with(RIVAL.namespace, RIVAL.name, "deletionPolicy: Delete"));
    vec![rival, Step::Until(bound), within(30, bound), Step::Begin]
}

/// Returns the scene of a bucket name that another claim has and then releases.
pub const fn one_name<More: Clone>() -> Scene<More> {
    const WAITS: Goal = Goal::new("the claim is told that another holds the name, and has no Secret", |facts| {
        facts.ready(NAMESPACE, CLAIM) == "BucketNameConflict" && internal(facts).is_empty()
    });
    Scene {
        about: "another claim holds the name, and the claim gets it once that goes",
        further: TEAM,
        script: || [beside_a_rival(), vec![give_claim(""), within(60, WAITS), Step::Delete(RIVAL)]].concat(),
        goal: Goal::new("the other claim is gone and the claim is bound", |facts| {
            facts.claim(RIVAL.namespace, RIVAL.name).is_null() && facts.is_bound(NAMESPACE, CLAIM)
        }),
        check: check_bound,
    }
}

/// A foreign Secret under the name of the claim's consumer Secret.
pub const CONSUMER_TAKEN: &str =
    "{apiVersion: v1, kind: Secret, metadata: {name: photos-s3, namespace: team-a}, stringData: {stranger: x}}";

/// Returns the scene in which a claim is deleted beside a foreign Secret.
pub const fn secret_refused<More>() -> Scene<More> {
    const REFUSED: Goal = Goal::new("the claim is told that the Secret is somebody's, which is as it was", |facts| {
        facts.ready(NAMESPACE, CLAIM) == "SecretConflict" && is_untouched(facts)
    });
    Scene {
        about: "a claim goes whose consumer Secret's name is taken, and leaves somebody's Secret as it was",
        further: "",
        script: || {
            let forced = "deletionPolicy: Delete, forceDelete: true";
            let taken = Step::Apply(CONSUMER_TAKEN.to_owned());
            vec![taken, Step::Begin, give_claim(forced), within(30, REFUSED), Step::Delete(PHOTOS)]
        },
        goal: GONE,
        check: |facts, faults| {
            let is_there = !facts.object("secrets", NAMESPACE, "photos-s3")["data"]["stranger"].is_null();
            if !is_there || (faults.is_empty() && !is_untouched(facts)) {
                return Err("somebody's Secret is gone or was written to".to_owned());
            }
            // Before the status names the bucket, nothing refers to a record and a key that have
            // lost their labels. And a bucket without tags belongs to nobody for a store that has
            // supported tagging since.
            let hides = |fault: &Fault| {
                matches!(
                    fault,
                    Fault::Project(StowageFault::Tamper(Tampering::RelabelInternal))
                        | Fault::S3(S3Fault::NotImplemented(Feature::Tagging))
                )
            };
            if faults.len() > 1 && faults.iter().any(hides) { Ok(()) } else { check_gone(facts, faults) }
        },
    }
}

/// Returns true if the Secret under the name of the consumer Secret is as its owner wrote it.
fn is_untouched(facts: &Facts) -> bool {
    let secret = facts.object("secrets", NAMESPACE, "photos-s3");
    let metadata = &secret["metadata"];
    let mut writers = metadata["managedFields"].as_array().into_iter().flatten();
    secret["data"] == json!({"stranger": "eA=="})
        && metadata["labels"].is_null()
        && metadata["ownerReferences"].is_null()
        && writers.all(|writer| writer["manager"] == "kubectl")
}

/// Returns the steps in which a claim is deleted and leaves its bucket with data in it.
pub fn left_behind<More>() -> Vec<Step<More>> {
    const LEFT: Goal = Goal::new("the bucket is there with its data, and the consumer Secret gone", |facts| {
        consumers(facts).is_empty() && facts.bucket(BUCKET).is_some_and(|bucket| bucket.objects > 0)
    });
    vec![
        give_claim(""),
        Step::Until(BOUND),
        holds(CREATED),
        put("data"),
        Step::Delete(PHOTOS),
        Step::Until(NO_CLAIM),
        holds(Goal::new("no internal Secret of the claim is left", |facts| internal(facts).is_empty())),
        within(60, LEFT),
    ]
}

const NO_CLAIM: Goal = Goal::new("the claim is gone", |facts| facts.claim(NAMESPACE, CLAIM).is_null());

/// Returns the scene of a retained bucket that a new claim with the same name gets back.
pub const fn taken_back<More: Clone>() -> Scene<More> {
    Scene {
        about: "a claim goes, is made again, gets its retained bucket back, and goes without emptying it",
        further: "",
        script: || {
            let again = give_claim("deletionPolicy: Delete, forceDelete: true");
            [left_behind(), vec![Step::Begin, again, within(60, ADOPTED), Step::Delete(PHOTOS)]].concat()
        },
        goal: NO_CLAIM,
        check: check_untouched,
    }
}

/// Checks that the bucket still has its data, because no claim was entitled to empty it.
pub fn check_untouched(facts: &Facts, faults: &[Fault]) -> Result<(), String> {
    let others =
        |fault: &Fault| matches!(fault, Fault::S3(S3Fault::Vanish) | Fault::Project(StowageFault::Usurp { .. }));
    if faults.iter().any(others) || facts.bucket(BUCKET).is_some_and(|bucket| bucket.objects > 0) {
        Ok(())
    } else {
        Err("the bucket that was there before, or its data, is gone".to_owned())
    }
}

/// Returns the scene of a bucket that existed before its claim.
pub const fn taken_over<More>() -> Scene<More> {
    const MAIN: Target = Target { kind: TargetKind::Backend, namespace: "", name: "main" };
    const REFUSED: Goal =
        Goal::new("the claim is refused the bucket", |facts| facts.ready(NAMESPACE, CLAIM) == "BucketExists");
    Scene {
        about: "somebody's bucket is refused, taken over once its backend allows that, and left as it was",
        further: "",
        script: || {
            vec![
                Step::Store(StoreStep::PutBucket { account: ADMIN_ACCOUNT, bucket: BUCKET }),
                put("data"),
                Step::Begin,
                give_claim("deletionPolicy: Delete, forceDelete: true"),
                within(60, REFUSED),
                Step::Patch(MAIN, json!({"spec": {"adoptionPolicy": "Any"}})),
                Step::Until(BOUND),
                holds(ADOPTED),
                Step::Delete(PHOTOS),
            ]
        },
        goal: Goal::new("the claim is gone, and it is told that its bucket stays", |facts| {
            (GONE.holds)(facts) && facts.all("events").any(|(_, _, event)| event["reason"] == "BucketRetained")
        }),
        check: |facts, faults| {
            check_retained(facts, faults)?;
            match facts.bucket(BUCKET).and_then(|bucket| bucket.tags.as_ref()) {
                None => Ok(()),
                Some(tags) => Err(format!("the bucket was given the tags {tags:?}")),
            }
        },
    }
}
