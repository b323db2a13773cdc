//! A claim goes, and what it takes with it.

use s3_sim::Dialect;
use serde_json::{Value, json};
use stowage_operator::api::wire::Role;
use stowage_world::Options;
use stowage_world::effects::{Edit, Fault, Feature, S3Fault, StowageFault, Tampering};
use stowage_world::history::Facts;

use super::super::scenario::{Goal, Scenario, ScenarioPhase, ScenarioStep, StoreStep};
use super::super::subject::{CLAIM, NAMESPACE};
use super::words::{
    BASE, BOUND, BUCKET, PHOTOS, at_work, bound, consumers, give_claim, no_other, nothing_more, pass, patch, pause,
    usual,
};

/// Nothing is left of the claim where users see it.
pub(super) const GONE: Goal = Goal::new("the claim and its consumer Secret are gone", |facts| {
    facts.claim(NAMESPACE, CLAIM).is_null() && consumers(facts).is_empty()
});

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

/// The deletion of a claim whose bucket is not empty; the user lets go of it.
pub(in super::super) static DELETE_FULL: Scenario = Scenario {
    name: "delete-full",
    about: "a claim can't go with its bucket, which is not empty, until the user lets the bucket stay",
    phase: ScenarioPhase::Delete,
    world: usual,
    script: || {
        let let_go = patch(json!({"spec": {"forceDelete": false, "deletionPolicy": "Retain"}}));
        [bound("deletionPolicy: Delete"), vec![ScenarioStep::Delete(PHOTOS), pass(60), let_go]].concat()
    },
    goal: GONE,
    otherwise: no_other,
    ends_alike: true,
    check: check_retained,
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

/// The internal Secrets of the claim, of whichever role.
pub(super) fn internal(facts: &Facts) -> Vec<&str> {
    let roles = [Role::BucketRecord, Role::VirtualCredential, Role::AnonymousBinding];
    let all = roles.into_iter().flat_map(|role| facts.internal(role, NAMESPACE, CLAIM));
    all.map(|(name, _)| name).collect()
}

/// Nothing of the claim is left but its bucket with the data in it.
pub(super) fn check_retained(facts: &Facts, faults: &[Fault]) -> Result<(), String> {
    let any = |of: fn(&Fault) -> bool| faults.iter().any(of);
    let by_hand = any(|fault| matches!(fault, Fault::Project(StowageFault::Tamper(Tampering::StripFinalizers))));
    let left = internal(facts);
    if !by_hand && !left.is_empty() {
        return Err(format!("the claim is gone, but {left:?} are left"));
    }
    let deleted = any(|fault| {
        matches!(
            fault,
            Fault::S3(S3Fault::Vanish) | Fault::Project(StowageFault::Usurp { .. } | StowageFault::Edit(Edit::Force))
        )
    });
    if !deleted && facts.bucket(BUCKET).is_none_or(|bucket| bucket.objects == 0) {
        return Err("the bucket was to be retained with its data, and is not".to_owned());
    }
    Ok(())
}

/// Nothing of the claim is left, nor its bucket; unless somebody's hands made it another's, or the
/// claim let go of it.
pub(super) fn check_gone(facts: &Facts, faults: &[Fault]) -> Result<(), String> {
    let left = internal(facts);
    if !left.is_empty() {
        return Err(format!("the claim is gone, but {left:?} are left"));
    }
    let untagged = || facts.bucket(BUCKET).is_some_and(|bucket| bucket.tags.iter().flatten().next().is_none());
    let keeps = |fault: &Fault| match fault {
        // What nobody came to tag is ours only as long as it is empty.
        Fault::S3(S3Fault::LateWrite) => untagged(),
        // A claim that was made again has adopted it.
        Fault::Project(StowageFault::Usurp { .. } | StowageFault::Recreate | StowageFault::Edit(Edit::Retain)) => true,
        // It is a stranger's.
        Fault::S3(S3Fault::BucketExists) => true,
        // Where tags can't be had its key was the last proof that it was bound.
        Fault::Project(StowageFault::Tamper(Tampering::DeleteCredential)) => {
            faults.contains(&Fault::S3(S3Fault::NotImplemented(Feature::Tagging)))
        }
        // Without a record, or with tags that don't show, nothing proves it ours.
        Fault::Project(StowageFault::Tamper(Tampering::DeleteRecord | Tampering::StripFinalizers))
        | Fault::S3(S3Fault::StaleRead) => true,
        _ => false,
    };
    if faults.iter().any(keeps) || facts.bucket(BUCKET).is_none() {
        Ok(())
    } else {
        Err("the bucket was to be deleted, and is still there".to_owned())
    }
}
