//! Deletion of claims and their objects.

use serde_json::json;
use stowage_operator::api::wire::Role;

use super::words::{PHOTOS, bound, consumers, patch, within};
use super::{BUCKET, CLAIM, Goal, NAMESPACE, Scene, Step, StoreStep, Target};
use crate::effects::{Edit, Fault, Feature, S3Fault, StowageFault, Tampering};
use crate::fixtures::claim_with;
use crate::history::Facts;

/// The claim and its consumer Secret do not exist any more.
pub const GONE: Goal = Goal::new("the claim and its consumer Secret are gone", |facts| {
    facts.claim(NAMESPACE, CLAIM).is_null() && consumers(facts).is_empty()
});

/// Returns the claim's internal Secrets of every role.
pub fn internal(facts: &Facts) -> Vec<&str> {
    let roles = [Role::BucketRecord, Role::VirtualCredential, Role::AnonymousBinding];
    let all = roles.into_iter().flat_map(|role| facts.internal(role, NAMESPACE, CLAIM));
    all.map(|(name, _)| name).collect()
}

/// Checks that nothing of the claim is left except its bucket with the data.
pub fn check_retained(facts: &Facts, faults: &[Fault]) -> Result<(), String> {
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

/// Checks that nothing of the claim is left, including its bucket, unless a third party gave the
/// bucket to another claim, or the claim released it.
pub fn check_gone(facts: &Facts, faults: &[Fault]) -> Result<(), String> {
    let left = internal(facts);
    if !left.is_empty() {
        return Err(format!("the claim is gone, but {left:?} are left"));
    }
    let untagged = || facts.bucket(BUCKET).is_some_and(|bucket| bucket.tags.iter().flatten().next().is_none());
    let keeps = |fault: &Fault| match fault {
        // A bucket that was never tagged belongs to the claim only as long as it is empty.
        Fault::S3(S3Fault::LateWrite) => untagged(),
        // A claim that was created again has adopted it.
        Fault::Project(StowageFault::Usurp { .. } | StowageFault::Recreate | StowageFault::Edit(Edit::Retain)) => true,
        // It belongs to a stranger.
        Fault::S3(S3Fault::BucketExists) => true,
        // Without tags, the claim's key was the last proof that it was bound.
        Fault::Project(StowageFault::Tamper(Tampering::DeleteCredential)) => {
            faults.contains(&Fault::S3(S3Fault::NotImplemented(Feature::Tagging)))
        }
        // Without a record, or with tags that are not visible, nothing proves ownership.
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

/// Returns the scene in which a claim is deleted whose bucket is not empty.
pub const fn let_go<More: Clone>() -> Scene<More> {
    const KEPT: Goal = Goal::new("the claim is told that its bucket is not empty, and has no key", |facts| {
        let keys = facts.internal(Role::VirtualCredential, NAMESPACE, CLAIM);
        facts.ready(NAMESPACE, CLAIM) == "BucketNotEmpty" && keys.is_empty()
    });
    Scene {
        about: "a claim can't go with its bucket, which is not empty, until the user lets the bucket stay",
        further: "",
        script: || {
            let let_go = patch(json!({"spec": {"forceDelete": false, "deletionPolicy": "Retain"}}));
            [bound("deletionPolicy: Delete"), vec![Step::Delete(PHOTOS), within(60, KEPT), let_go]].concat()
        },
        goal: GONE,
        check: check_retained,
    }
}

/// Claims whose deletion policy is edited before or during their deletion.
const EDITED: [&str; 3] = ["spared", "taken", "late"];
const EDITED_BUCKETS: [&str; 3] = ["team-a-spared", "team-a-taken", "team-a-late"];

/// Edits of deletion policies before and during the deletion of claims.
pub const fn edited<More>() -> Scene<More> {
    const ALL_BOUND: Goal =
        Goal::new("the claims are bound", |facts| EDITED.iter().all(|name| facts.is_bound(NAMESPACE, name)));
    const KEPT: Goal = Goal::new("the third claim is told that its bucket is not empty", |facts| {
        facts.ready(NAMESPACE, EDITED[2]) == "BucketNotEmpty"
    });
    Scene {
        about: "what becomes of a bucket is decided by the policy that its claim has in the end",
        further: "",
        script: || {
            let forced = "deletionPolicy: Delete, forceDelete: true";
            let given = EDITED.into_iter().zip([forced, "", "deletionPolicy: Delete"]);
            let given = given.map(|(name, spec)| Step::Apply(claim_with(NAMESPACE, name, spec)));
            let filled = EDITED_BUCKETS.map(|bucket| Step::Store(StoreStep::PutObject { bucket, key: "data" }));
            let [spared, taken, late] = EDITED.map(|name| Target { name, ..PHOTOS });
            let edits = [
                Step::Patch(spared, json!({"spec": {"deletionPolicy": "Retain", "forceDelete": false}})),
                Step::Patch(taken, json!({"spec": {"deletionPolicy": "Delete", "forceDelete": true}})),
            ];
            let goes = [spared, taken, late].map(Step::Delete);
            let forces = Step::Patch(late, json!({"spec": {"forceDelete": true}}));
            let before = given.chain([Step::Until(ALL_BOUND)]).chain(filled).chain([Step::Begin]);
            before.chain(edits).chain(goes).chain([within(60, KEPT), forces]).collect()
        },
        goal: Goal::new("the claims and their Secrets are gone", |facts| {
            let roles = [Role::BucketRecord, Role::VirtualCredential, Role::AnonymousBinding, Role::ConsumerSecret];
            EDITED.iter().all(|name| facts.claim(NAMESPACE, name).is_null())
                && roles.into_iter().all(|role| facts.secrets(role).next().is_none())
        }),
        check: |facts, _| {
            let objects = EDITED_BUCKETS.map(|name| facts.bucket(name).map(|bucket| bucket.objects));
            if objects == [Some(1), None, None] { Ok(()) } else { Err(format!("the buckets hold {objects:?}")) }
        },
    }
}
