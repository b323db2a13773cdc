//! A claim goes, and what it takes with it.

use s3_sim::Dialect;
use serde_json::{Value, json};
use stowage_operator::api::wire::Role;
use stowage_world::Options;
use stowage_world::effects::{Fault, S3Fault, StowageFault};
use stowage_world::scenes::removal::{GONE, check_gone, check_retained, let_go};
use stowage_world::scenes::{CLAIM, Goal, NAMESPACE, Scene, StoreStep};

use super::super::scenario::{Scenario, ScenarioPhase, ScenarioStep, WorldStep};
use super::words::{
    BASE, BOUND, BUCKET, PHOTOS, at_work, bound, give_claim, no_other, nothing_more, pass, patch, pause, played, usual,
};

/// The claim's status says what keeps it from going; or there is nothing that has to go.
const TOLD_WHY_NOT: Goal = Goal::new("the user is told why the claim can't go", |facts| {
    let goes = !facts.claim(NAMESPACE, CLAIM)["metadata"]["deletionTimestamp"].is_null();
    !goes || !matches!(facts.ready(NAMESPACE, CLAIM), "Bound" | "Deleting" | "Purging")
});

/// The deletion of a bound claim whose bucket is retained.
pub(in super::super) static DELETE: Scenario = Scenario {
    name: "delete",
    about: "a claim goes, its bucket stays",
    phase: ScenarioPhase::Delete,
    world: usual,
    script: || [bound(""), vec![ScenarioStep::Delete(PHOTOS)]].concat(),
    goal: GONE,
    otherwise: no_other,
    ends_alike: true,
    check: check_retained,
};

/// The deletion of a claim whose bucket is open to the public: that ends at once, pause or not
/// (spec §1, §3.4).
pub(in super::super) static DELETE_PUBLIC: Scenario = Scenario {
    name: "delete-public",
    about: "a claim is given public access, paused and deleted: that goes, the rest once it is resumed",
    phase: ScenarioPhase::Delete,
    world: usual,
    script: || {
        let public = patch(json!({"spec": {"anonymousAccess": {"mode": "ReadOnly", "perSourceIPRPS": 5}}}));
        let closed = Goal::new("the claim has neither public access nor a key", |facts| {
            let opens = [Role::AnonymousBinding, Role::VirtualCredential];
            opens.into_iter().all(|role| facts.internal(role, NAMESPACE, CLAIM).is_empty())
        });
        let deleted =
            [pause("true".into()), pass(10), ScenarioStep::Delete(PHOTOS), ScenarioStep::Until(closed), pass(30)];
        [bound(""), vec![public, pass(10)], deleted.into(), vec![pause(Value::Null)]].concat()
    },
    goal: GONE,
    otherwise: no_other,
    ends_alike: true,
    check: check_retained,
};

/// The deletion of a bound claim with its bucket, which is empty.
pub(in super::super) static DELETE_EMPTY: Scenario = Scenario {
    name: "delete-empty",
    about: "a claim goes with its bucket, which is empty",
    phase: ScenarioPhase::Delete,
    world: usual,
    script: || {
        [bound_to_delete("deletionPolicy: Delete"), vec![ScenarioStep::Begin, ScenarioStep::Delete(PHOTOS)]].concat()
    },
    goal: GONE,
    otherwise: no_other,
    ends_alike: true,
    check: check_gone,
};

/// The deletion of a bound claim with its bucket, which holds versions, delete markers and an
/// unfinished upload.
pub(in super::super) static DELETE_FORCED: Scenario = Scenario {
    name: "delete-forced",
    about: "a claim goes with its bucket, in which there are versions and an unfinished upload",
    phase: ScenarioPhase::Purge,
    world: usual,
    script: || {
        let put = |key| ScenarioStep::Store(StoreStep::PutObject { bucket: BUCKET, key });
        let content = vec![
            ScenarioStep::Store(StoreStep::EnableVersioning { bucket: BUCKET }),
            put("one"),
            put("two"),
            put("two"),
            ScenarioStep::Store(StoreStep::StartUpload { bucket: BUCKET, key: "three" }),
            ScenarioStep::Begin,
            ScenarioStep::Delete(PHOTOS),
        ];
        [bound_to_delete("deletionPolicy: Delete, forceDelete: true"), content].concat()
    },
    goal: GONE,
    otherwise: no_other,
    ends_alike: true,
    check: check_gone,
};

/// The deletion of a bucket that takes more than one pass.
pub(in super::super) static PURGE_SLICES: Scenario = Scenario {
    name: "purge-slices",
    about: "a claim goes with its bucket, which is emptied in slices",
    phase: ScenarioPhase::Purge,
    world: || Options { purge_slice: 2, ..Options::default() },
    script: || {
        let put = |key| ScenarioStep::Store(StoreStep::PutObject { bucket: BUCKET, key });
        let content = ["one", "two", "three", "four", "five"].map(put);
        [
            bound_to_delete("deletionPolicy: Delete, forceDelete: true"),
            content.to_vec(),
            vec![ScenarioStep::Begin, ScenarioStep::Delete(PHOTOS)],
        ]
        .concat()
    },
    goal: GONE,
    otherwise: no_other,
    ends_alike: true,
    check: check_gone,
};

/// The same where versions, delete markers and an unfinished upload are in it.
pub(in super::super) static PURGE_VERSIONS: Scenario = Scenario {
    name: "purge-versions",
    about: "a claim goes with its bucket, of which versions and an unfinished upload are emptied in slices",
    phase: ScenarioPhase::Purge,
    world: || Options { purge_slice: 2, ..Options::default() },
    script: || {
        let put = |key| ScenarioStep::Store(StoreStep::PutObject { bucket: BUCKET, key });
        let versions = ["one", "one"].map(put);
        let started = ScenarioStep::Store(StoreStep::StartUpload { bucket: BUCKET, key: "two" });
        [
            bound_to_delete("deletionPolicy: Delete, forceDelete: true"),
            vec![ScenarioStep::Store(StoreStep::EnableVersioning { bucket: BUCKET })],
            versions.into(),
            vec![started, ScenarioStep::Begin, ScenarioStep::Delete(PHOTOS)],
        ]
        .concat()
    },
    goal: GONE,
    otherwise: no_other,
    ends_alike: true,
    check: check_gone,
};

const LET_GO: Scene<WorldStep> = let_go();

/// The deletion of a claim whose bucket is not empty; the user lets go of it.
pub(in super::super) static DELETE_FULL: Scenario = Scenario {
    name: "delete-full",
    about: "a claim can't go with its bucket, which is not empty, until the user lets the bucket stay",
    phase: ScenarioPhase::Delete,
    world: usual,
    script: || played(&LET_GO),
    goal: LET_GO.goal,
    otherwise: no_other,
    ends_alike: true,
    check: LET_GO.check,
};

/// The deletion of a bucket in which an object is locked, until it isn't.
pub(in super::super) static DELETE_LOCKED: Scenario = Scenario {
    name: "delete-locked",
    about: "a claim can't go with its bucket, in which an object is locked, until the lock is taken off",
    phase: ScenarioPhase::Purge,
    world: usual,
    script: || {
        [
            bound("deletionPolicy: Delete, forceDelete: true"),
            vec![
                ScenarioStep::Store(StoreStep::Hold { bucket: BUCKET, key: "data" }),
                ScenarioStep::Delete(PHOTOS),
                ScenarioStep::Until(TOLD_WHY_NOT),
                ScenarioStep::Store(StoreStep::Release { bucket: BUCKET, key: "data" }),
            ],
        ]
        .concat()
    },
    goal: GONE,
    otherwise: no_other,
    ends_alike: true,
    check: check_gone,
};

/// A whole life, which is the same on every store.
const LIFE: Scenario = Scenario {
    name: "life",
    about: "a claim comes and goes with its bucket",
    phase: ScenarioPhase::Purge,
    world: usual,
    script: || {
        let life = vec![
            ScenarioStep::Begin,
            give_claim("deletionPolicy: Delete, forceDelete: true"),
            ScenarioStep::Tenant(NAMESPACE, CLAIM),
            pass(60),
            ScenarioStep::Delete(PHOTOS),
        ];
        [at_work(BASE), life].concat()
    },
    goal: GONE,
    otherwise: |facts, faults| {
        // A bucket that we can't look into is not ours to delete.
        let shut = |fault: &Fault| {
            matches!(fault, Fault::S3(S3Fault::Head(_) | S3Fault::AccessDenied | S3Fault::BucketExists))
        };
        faults.iter().any(shut) && facts.ready(NAMESPACE, CLAIM) == "DeletionBlocked"
    },
    ends_alike: false,
    check: nothing_more,
};

/// A life on a store that has no bucket tagging: what was made is known again by the record alone.
pub(in super::super) static WITHOUT_TAGGING: Scenario = Scenario {
    name: "without-tagging",
    about: "a claim comes and goes with its bucket, on a store without bucket tagging",
    world: || Options { dialect: Dialect { tagging: false, ..Dialect::default() }, ..Options::default() },
    otherwise: |facts, faults| {
        // No tags tell one that was made again that the bucket is its own.
        let again =
            faults.contains(&Fault::Project(StowageFault::Recreate)) && facts.ready(NAMESPACE, CLAIM) == "BucketExists";
        again || (LIFE.otherwise)(facts, faults)
    },
    ..LIFE
};

/// A life on a store that tells no tags of a bucket that isn't there, instead of that it isn't.
pub(in super::super) static MISSING_UNTAGGED: Scenario = Scenario {
    name: "missing-untagged",
    about: "a claim comes and goes with its bucket, on a store that takes what isn't there for untagged, as MinIO does",
    world: || Options {
        dialect: Dialect { settings_of_missing_buckets: true, ..Dialect::default() },
        ..Options::default()
    },
    ..LIFE
};

fn bound_to_delete(spec: &str) -> Vec<ScenarioStep> {
    let bound = vec![give_claim(spec), ScenarioStep::Until(BOUND), ScenarioStep::Tenant(NAMESPACE, CLAIM), pass(120)];
    [at_work(BASE), bound].concat()
}
