//! Deletion of a claim, with or without its bucket.

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

/// The claim's status names the obstacle to its deletion; or the claim is not being deleted.
const TOLD_WHY_NOT: Goal = Goal::new("the user is told why the claim can't go", |facts| {
    let goes = !facts.claim(NAMESPACE, CLAIM)["metadata"]["deletionTimestamp"].is_null();
    !goes || !matches!(facts.ready(NAMESPACE, CLAIM), "Bound" | "Deleting" | "Purging")
});

/// A bound claim is deleted, and its bucket is retained.
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

/// A claim with public access is deleted: that access ends at once, even during a pause (spec §1,
/// §3.4).
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

/// A bound claim is deleted with its empty bucket.
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

/// A bound claim is deleted with its bucket, which contains versions, delete markers and an
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

/// Emptying the bucket takes more than one pass.
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

/// Like `PURGE_SLICES`, with versions, delete markers and an unfinished upload.
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

/// A claim whose bucket is not empty is deleted, and then the user keeps the bucket.
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

/// A bucket with a locked object is deleted once the lock is removed.
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

/// A claim's whole life, the same on every store.
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
        // A bucket that can't be inspected must not be deleted.
        let shut = |fault: &Fault| {
            matches!(fault, Fault::S3(S3Fault::Head(_) | S3Fault::AccessDenied | S3Fault::BucketExists))
        };
        faults.iter().any(shut) && facts.ready(NAMESPACE, CLAIM) == "DeletionBlocked"
    },
    ends_alike: false,
    check: nothing_more,
};

/// A claim's life on a store without bucket tagging: only the record shows that the bucket is the
/// claim's.
pub(in super::super) static WITHOUT_TAGGING: Scenario = Scenario {
    name: "without-tagging",
    about: "a claim comes and goes with its bucket, on a store without bucket tagging",
    world: || Options { dialect: Dialect { tagging: false, ..Dialect::default() }, ..Options::default() },
    otherwise: |facts, faults| {
        // Without tags a recreated claim can't recognize its bucket.
        let again =
            faults.contains(&Fault::Project(StowageFault::Recreate)) && facts.ready(NAMESPACE, CLAIM) == "BucketExists";
        again || (LIFE.otherwise)(facts, faults)
    },
    ..LIFE
};

/// A claim's life on a store that answers `NoSuchTagSet` for a missing bucket, instead of
/// `NoSuchBucket`.
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
