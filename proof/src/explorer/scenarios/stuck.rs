//! Deletion of a claim that is not served: it waits, is refused, is paused, or has lost its bucket.

use serde_json::Value;
use stowage_operator::api::wire::Role;
use stowage_world::effects::{Fault, S3Fault, StowageFault};
use stowage_world::history::facts::condition;
use stowage_world::scenes::names::{RIVAL, TEAM, beside_a_rival, secret_refused};
use stowage_world::scenes::removal::{GONE, check_gone};
use stowage_world::scenes::{CLAIM, Goal, NAMESPACE, Scene, StoreStep};

use super::super::others::any_may_rest;
use super::super::scenario::{Scenario, ScenarioPhase, ScenarioStep, WorldStep};
use super::recovery::allowed_for;
use super::words::{
    BASE, BUCKET, PHOTOS, at_work, bound, give_claim, no_other, nothing_more, pass, pause, played, usual,
};

/// The claim is gone, and its backend is Ready again.
///
/// A lasting fault may meet the probes of the backend too, which recover later than the deletion
/// completes.
const GONE_AND_WELL: Goal = Goal::new("the claim is gone and the backend Ready", |facts| {
    (GONE.holds)(facts) && condition(facts.object("s3backends", "", "main"), "Ready") == "EndpointReachable"
});

const FORCED: &str = "deletionPolicy: Delete, forceDelete: true";

/// Access ends with the deletion; everything else waits for the end of the pause (spec §1).
pub(in super::super) static DELETE_PAUSED: Scenario = Scenario {
    name: "delete-paused",
    about: "a paused claim is deleted: its keys go, its bucket once it is resumed",
    phase: ScenarioPhase::Purge,
    world: usual,
    script: || {
        let revoked = Goal::new("the claim has no key", |facts| {
            facts.internal(Role::VirtualCredential, NAMESPACE, CLAIM).is_empty()
        });
        let deleted =
            [pause("true".into()), pass(10), ScenarioStep::Delete(PHOTOS), ScenarioStep::Until(revoked), pass(30)];
        [bound(FORCED), deleted.into(), vec![pause(Value::Null)]].concat()
    },
    goal: GONE,
    otherwise: no_other,
    ends_alike: true,
    check: check_gone,
};

/// A claim that waits for a name has nothing to clean up.
pub(in super::super) static DELETE_WAITING: Scenario = Scenario {
    name: "delete-waiting",
    about: "a claim that waits for a name which another one holds is deleted",
    phase: ScenarioPhase::Delete,
    world: usual,
    script: || {
        [
            at_work(&format!("{BASE}\n---\n{TEAM}")),
            beside_a_rival(),
            vec![give_claim(FORCED), pass(60), ScenarioStep::Delete(PHOTOS)],
        ]
        .concat()
    },
    goal: Goal::new("the claim is gone, and the other one bound", |facts| {
        facts.claim(NAMESPACE, CLAIM).is_null() && facts.is_bound(RIVAL.namespace, RIVAL.name)
    }),
    // The fault met the other claim, before this one was created.
    otherwise: |facts, faults| facts.claim(NAMESPACE, CLAIM).is_null() && any_may_rest(facts, faults),
    ends_alike: true,
    check: nothing_more,
};

const SECRET_REFUSED: Scene<WorldStep> = secret_refused();

/// A claim whose consumer Secret's name was taken leaves the foreign Secret in place.
pub(in super::super) static DELETE_REFUSED: Scenario = Scenario {
    name: "delete-refused",
    about: "a claim is deleted whose consumer Secret's name is taken by somebody's Secret",
    phase: ScenarioPhase::Delete,
    world: usual,
    script: || played(&SECRET_REFUSED),
    goal: SECRET_REFUSED.goal,
    otherwise: |facts, faults| match facts.ready(NAMESPACE, CLAIM) {
        // A recreated claim is refused again.
        "SecretConflict" => faults.contains(&Fault::Project(StowageFault::Recreate)),
        // The operator could not note that the bucket is someone else's, and must not delete a
        // bucket that it can't inspect.
        "DeletionBlocked" => faults.len() > 1 && faults.contains(&Fault::S3(S3Fault::BucketExists)),
        _ => false,
    },
    ends_alike: true,
    check: SECRET_REFUSED.check,
};

/// A backend that no longer allows a namespace still deletes its claim's bucket.
pub(in super::super) static DELETE_NOT_ALLOWED: Scenario = Scenario {
    name: "delete-not-allowed",
    about: "a claim is deleted in a namespace that its backend is no longer for",
    phase: ScenarioPhase::Purge,
    world: usual,
    script: || [bound(FORCED), vec![allowed_for(&["team-b"]), pass(20), ScenarioStep::Delete(PHOTOS)]].concat(),
    goal: GONE_AND_WELL,
    // A recreated claim is refused.
    otherwise: |facts, faults| {
        faults.contains(&Fault::Project(StowageFault::Recreate)) && facts.ready(NAMESPACE, CLAIM) == "BackendNotAllowed"
    },
    ends_alike: true,
    check: check_gone,
};

/// A claim that has lost its bucket has nothing to empty.
pub(in super::super) static DELETE_LOST: Scenario = Scenario {
    name: "delete-lost",
    about: "a claim is deleted with its bucket, which somebody has deleted before",
    phase: ScenarioPhase::Purge,
    world: usual,
    script: || {
        let lost =
            [ScenarioStep::Store(StoreStep::RemoveBucket { bucket: BUCKET }), pass(900), ScenarioStep::Delete(PHOTOS)];
        [bound(FORCED), lost.into()].concat()
    },
    goal: GONE_AND_WELL,
    otherwise: no_other,
    ends_alike: true,
    check: check_gone,
};
