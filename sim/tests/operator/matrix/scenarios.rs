//! The scenarios: from a user's act to what is to come of it.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use s3_sim::Versioning;
use serde_json::{Value, json};
use stowage_sim::effects::{Edit, Fault, Feature, S3Fault, StowageFault, Tampering};
use stowage_sim::world::{ADMIN_ACCOUNT, OPERATOR_NAMESPACE, World};

use super::Scenario;
use super::oracles::{bound_secret, current_keys};
use crate::support::{BASE, Stage, claim, claim_with, data, internal_of, object, ready, secrets};

const BUCKET: &str = "team-a-photos";

/// From the operator's start to a claim that is bound.
pub(super) const CREATE: Scenario = Scenario {
    name: "create",
    manifests: || format!("{BASE}\n---\n{}", claim("team-a", "photos")),
    setup: |_| async {}.boxed(),
    act: |_| async {}.boxed(),
    wanted: is_bound,
    check: |stage, fault| async move { assert_bound(stage, fault) }.boxed(),
};

/// A rotation by request, to the end of the overlap.
pub(super) const ROTATE: Scenario = Scenario {
    name: "rotate",
    manifests: base,
    setup: bound,
    act: |stage| patch(stage, json!({"metadata": {"annotations": {"broker.stowage.io/rotate": "now"}}})),
    wanted: |world| {
        let claim = claim_object(world);
        let handled = &claim["status"]["handledRotateRequest"];
        is_bound(world)
            && handled.is_string()
            && *handled == claim["metadata"]["annotations"]["broker.stowage.io/rotate"]
            && secrets(world, OPERATOR_NAMESPACE, "virtual-credential").len() == 1
    },
    check: |stage, fault| async move { assert_bound(stage, fault) }.boxed(),
};

/// The deletion of a bound claim whose bucket is retained.
pub(super) const DELETE: Scenario = Scenario {
    name: "delete",
    manifests: base,
    setup: bound,
    act: |stage| async { stage.delete("bucketclaims", "team-a", "photos").await }.boxed(),
    wanted: |world| claim_object(world).is_null() && secrets(world, "team-a", "consumer-secret").is_empty(),
    check: |stage, fault| async move { assert_gone(stage, fault) }.boxed(),
};

/// The deletion of a bound claim with its bucket, which is empty.
pub(super) const DELETE_EMPTY: Scenario = Scenario {
    name: "delete-empty",
    manifests: base,
    setup: |stage| bound_to_delete(stage, "deletionPolicy: Delete"),
    act: DELETE.act,
    wanted: DELETE.wanted,
    check: |stage, fault| async move { assert_gone_with_bucket(stage, fault) }.boxed(),
};

/// The deletion of a bound claim with its bucket, which holds versions, delete markers and an unfinished upload.
pub(super) const DELETE_FORCED: Scenario = Scenario {
    name: "delete-forced",
    manifests: base,
    setup: |stage| {
        async {
            bound_to_delete(stage, "deletionPolicy: Delete, forceDelete: true").await;
            let store = &stage.world.store;
            store.set_versioning(BUCKET, Versioning::Enabled);
            for key in ["one", "two", "two"] {
                store.put_object(BUCKET, key, "data");
            }
            store.start_upload(BUCKET, "three");
        }
        .boxed()
    },
    act: DELETE.act,
    wanted: DELETE.wanted,
    check: |stage, fault| async move { assert_gone_with_bucket(stage, fault) }.boxed(),
};

/// The edit of a quota.
pub(super) const QUOTA: Scenario = Scenario {
    name: "quota",
    manifests: base,
    setup: bound,
    act: |stage| patch(stage, json!({"spec": {"quota": {"soft": "1Gi", "hard": "2Gi"}}})),
    wanted: |world| is_bound(world) && quotas(world) == ["2147483648", "2147483648"],
    check: |stage, fault| async move { assert_bound(stage, fault) }.boxed(),
};

/// Another name for the consumer Secret.
pub(super) const RENAME: Scenario = Scenario {
    name: "rename",
    manifests: base,
    setup: bound,
    act: |stage| patch(stage, json!({"spec": {"writeConnectionSecretToRef": {"name": "photos-new"}}})),
    wanted: |world| {
        let claim = claim_object(world);
        let wanted = &claim["spec"]["writeConnectionSecretToRef"]["name"];
        is_bound(world)
            && claim["status"]["boundSecretName"] == *wanted
            && secrets(world, "team-a", "consumer-secret") == [wanted.as_str().unwrap_or_default()]
    },
    check: |stage, fault| async move { assert_bound(stage, fault) }.boxed(),
};

/// A claim to a bucket that is there, with data of its own.
pub(super) const ADOPT: Scenario = Scenario {
    name: "adopt",
    manifests: || BASE.replace("  adminCredentials", "  adoptionPolicy: Any\n  adminCredentials"),
    setup: |stage| {
        async {
            stage.world.store.put_bucket(ADMIN_ACCOUNT, BUCKET);
            stage.world.store.put_object(BUCKET, "data", "data");
            stage.world.pass(Duration::from_secs(5)).await;
        }
        .boxed()
    },
    act: |stage| async { stage.apply(&claim("team-a", "photos")).await }.boxed(),
    wanted: is_bound,
    check: |stage, fault| async move { assert_adopted(stage, fault) }.boxed(),
};

fn base() -> String {
    BASE.to_owned()
}

/// A claim that is bound, with data in its bucket, a good while after its first credential was made.
fn bound(stage: &Stage) -> BoxFuture<'_, ()> {
    async {
        stage.world.pass(Duration::from_secs(5)).await;
        stage.apply(&claim_with("team-a", "photos", "rotationPolicy: {overlapSeconds: 60}")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.world.store.put_object(BUCKET, "data", "data");
        stage.world.pass(Duration::from_secs(120)).await;
    }
    .boxed()
}

fn bound_to_delete<'a>(stage: &'a Stage, spec: &'static str) -> BoxFuture<'a, ()> {
    async move {
        stage.world.pass(Duration::from_secs(5)).await;
        stage.apply(&claim_with("team-a", "photos", spec)).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.world.pass(Duration::from_secs(120)).await;
    }
    .boxed()
}

fn patch(stage: &Stage, patch: Value) -> BoxFuture<'_, ()> {
    async move { stage.patch("bucketclaims", "team-a", "photos", patch).await }.boxed()
}

fn claim_object(world: &World) -> Value {
    object(world, "bucketclaims", "team-a", "photos")
}

/// Bound, and the status speaks of the spec as it is now.
fn is_bound(world: &World) -> bool {
    let claim = claim_object(world);
    ready(world, "team-a", "photos") == "Bound"
        && claim["status"]["observedGeneration"] == claim["metadata"]["generation"]
}

/// The hard quota as the current key and the consumer Secret have it.
fn quotas(world: &World) -> Vec<String> {
    let internal =
        current_keys(world).first().and_then(|key| data(world, OPERATOR_NAMESPACE, key).remove("quota_hard_bytes"));
    let published = data(world, "team-a", &bound_secret(world)).remove("QUOTA_HARD_BYTES");
    internal.into_iter().chain(published).collect()
}

/// One bucket, tagged for this claim; one record; one consumer Secret.
fn assert_bound(stage: &Stage, fault: Option<Fault>) {
    let world = &stage.world;
    let claim = claim_object(world);
    let bucket = world.store.bucket(BUCKET).expect("a bound claim has a bucket");
    let others = matches!(
        fault,
        Some(
            Fault::Project(StowageFault::Recreate | StowageFault::Usurp { .. })
                | Fault::S3(S3Fault::NotImplemented(Feature::Tagging))
        )
    );
    if !others {
        let tags = bucket.tags.expect("the bucket is tagged");
        assert_eq!(Some(tags["broker.stowage.io/claim-uid"].as_str()), claim["metadata"]["uid"].as_str());
    }
    assert_eq!(secrets(world, OPERATOR_NAMESPACE, "bucket-record").len(), 1, "{}", stage.trace());
    assert_eq!(secrets(world, "team-a", "consumer-secret"), [bound_secret(world)]);
}

/// Nothing of the claim is left but its bucket with the data in it.
fn assert_gone(stage: &Stage, fault: Option<Fault>) {
    let world = &stage.world;
    let by_hand = matches!(fault, Some(Fault::Project(StowageFault::Tamper(Tampering::StripFinalizers))));
    if !by_hand {
        assert_eq!(internal_of(world, "photos"), Vec::<String>::new(), "{}", stage.trace());
    }
    let deleted = matches!(
        fault,
        Some(Fault::S3(S3Fault::Vanish) | Fault::Project(StowageFault::Usurp { .. } | StowageFault::Edit(Edit::Force)))
    );
    if !deleted {
        assert!(world.store.objects(BUCKET).contains_key("data"), "the bucket is retained\n{}", stage.trace());
    }
}

/// Nothing of the claim is left, nor its bucket; unless somebody's hands made it another's, or the claim let go of it.
fn assert_gone_with_bucket(stage: &Stage, fault: Option<Fault>) {
    let world = &stage.world;
    assert_eq!(internal_of(world, "photos"), Vec::<String>::new(), "{}", stage.trace());
    let kept = match fault {
        Some(Fault::Project(StowageFault::Usurp { .. } | StowageFault::Edit(Edit::Retain))) => true,
        // Without a record, or with tags that don't show, nothing proves it ours.
        Some(
            Fault::Project(StowageFault::Tamper(Tampering::DeleteRecord | Tampering::StripFinalizers))
            | Fault::S3(S3Fault::StaleRead),
        ) => true,
        _ => false,
    };
    if !kept {
        assert!(world.store.bucket(BUCKET).is_none(), "the bucket is still there\n{}", stage.trace());
    }
}

/// The bucket is as it was: data, settings and tags.
fn assert_adopted(stage: &Stage, fault: Option<Fault>) {
    let world = &stage.world;
    if matches!(fault, Some(Fault::S3(S3Fault::Vanish) | Fault::Project(StowageFault::Usurp { .. }))) {
        return;
    }
    assert_eq!(claim_object(world)["status"]["bucketOrigin"], "Adopted");
    assert_eq!(world.store.bucket(BUCKET).expect("the bucket is there").tags, None);
    assert!(world.store.objects(BUCKET).contains_key("data"));
}
