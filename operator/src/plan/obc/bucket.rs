//! The ObjectBucket: created before anything else. Its pinned values apply from then on (spec §9).

use serde_json::{Value, json};

use crate::api::{
    OBC_FINALIZER, OBC_GROUP, OBC_PROVISIONER, OBC_VERSION, ObjectBucket, ObjectBucketClaimRef, ObjectBucketEndpoint,
    ObjectBucketSpec,
};

use super::desired;
use super::halt::{Halt, Phase, Stop};
use super::kinds::{Shadow, ShadowKind, Work};
use super::step::{ObcAct, ObcLook};
use super::view::{ObcView, Seen};
use super::words::{Bucket, PROVISIONER, Pins, bucket_names, shadow_name};

/// Returns the pinned values of this claim: those in its ObjectBucket, or those for a new one.
pub(super) fn pins(view: &ObcView) -> Result<Pins, Halt> {
    match &view.bucket {
        Seen::Cached(bucket) | Seen::Live(bucket) => bucket.pins.clone().ok_or_else(|| {
            let why = format!("what ObjectBucket {} remembers can't be read", bucket.name);
            Stop::new(Phase::Failed, "ObjectBucketDamaged", why).into()
        }),
        Seen::Unknown if !view.is_new() => Err(ObcLook::Buckets.into()),
        Seen::Unknown | Seen::Absent => fresh(view),
    }
}

/// Returns the pinned values for a missing ObjectBucket: by the class, unless a BucketClaim or
/// BucketAccess exists already. That is created later, so somebody must have deleted the
/// ObjectBucket.
fn fresh(view: &ObcView) -> Result<Pins, Halt> {
    if view.is_new() { by_class(view) } else { by_what_is_left(view) }
}

fn by_what_is_left(view: &ObcView) -> Result<Pins, Halt> {
    let own = |shadow: &Shadow| shadow.is_of(view.obc.uid());
    match view.shadow(ShadowKind::Claim) {
        Seen::Live(shadow) if own(shadow) => return Ok(desired::pins_of_lost(&view.obc, shadow)?),
        Seen::Live(_) | Seen::Absent => {}
        Seen::Unknown | Seen::Cached(_) => {
            return Err(ObcLook::Shadow(ShadowKind::Claim, shadow_name(&view.obc)).into());
        }
    }
    // Read only if a watch has shown one: the cluster may not have the kind.
    match view.shadow(ShadowKind::Access) {
        Seen::Live(shadow) if own(shadow) => return Ok(desired::pins_of_lost(&view.obc, shadow)?),
        Seen::Cached(shadow) if own(shadow) => {
            return Err(ObcLook::Shadow(ShadowKind::Access, shadow_name(&view.obc)).into());
        }
        Seen::Live(_) | Seen::Cached(_) | Seen::Absent | Seen::Unknown => {}
    }
    by_class(view)
}

fn by_class(view: &ObcView) -> Result<Pins, Halt> {
    let name = view.obc.spec.storage_class_name.clone().unwrap_or_default();
    match &view.class {
        Seen::Live(class) => {
            let pins = desired::pins(&view.obc, class)?;
            desired::quota(&view.obc, pins.work)?;
            let is_read = matches!(view.shadow(ShadowKind::Access), Seen::Absent | Seen::Live(_));
            match pins.work {
                // Read before anything is created: if the cluster lacks the kind, it could not be
                // cleaned up.
                Work::Access(_) if !is_read => Err(ObcLook::Shadow(ShadowKind::Access, pins.shadow).into()),
                Work::Access(_) | Work::Claim(_) => Ok(pins),
            }
        }
        Seen::Absent => {
            let why = format!("there is no storage class {name} any more");
            Err(Stop::new(Phase::Pending, "StorageClassMissing", why).into())
        }
        Seen::Unknown | Seen::Cached(_) => Err(ObcLook::Class(name).into()),
    }
}

/// Ensures that the ObjectBucket exists.
pub(super) fn ensure<'a>(view: &'a ObcView, pins: &Pins) -> Result<&'a Bucket, Halt> {
    match view.bucket.present() {
        Some(bucket) => Ok(bucket),
        None => {
            view.require_live()?;
            let [usual, _] = bucket_names(&view.obc);
            let Some(name) = view.free.clone().or_else(|| view.is_new().then_some(usual)) else {
                let why = "the names that its ObjectBucket may have are taken".to_owned();
                return Err(Stop::new(Phase::Failed, "NameTaken", why).into());
            };
            Err(ObcAct::CreateBucket(Box::new(content(view, &name, pins))).into())
        }
    }
}

fn content(view: &ObcView, name: &str, pins: &Pins) -> ObjectBucket {
    let mut bucket = ObjectBucket {
        api_version: format!("{OBC_GROUP}/{OBC_VERSION}"),
        kind: "ObjectBucket".to_owned(),
        spec: ObjectBucketSpec {
            storage_class_name: Some(pins.class.clone()),
            reclaim_policy: Some(pins.reclaim_policy().to_owned()),
            claim_ref: ObjectBucketClaimRef {
                api_version: format!("{OBC_GROUP}/{OBC_VERSION}"),
                kind: "ObjectBucketClaim".to_owned(),
                namespace: view.obc.at.namespace.clone(),
                name: view.obc.at.name.clone(),
                uid: view.obc.uid().to_owned(),
            },
            endpoint: desired::endpoint(&view.setting, pins),
            additional_state: [(PROVISIONER, view.setting.provisioner.clone())]
                .into_iter()
                .chain(pins.state())
                .map(|(key, value)| (key.to_owned(), value))
                .collect(),
        },
        ..ObjectBucket::default()
    };
    bucket.metadata.name = Some(name.to_owned());
    bucket.metadata.finalizers = Some(vec![OBC_FINALIZER.to_owned()]);
    bucket.metadata.labels = Some([(OBC_PROVISIONER.to_owned(), view.setting.label())].into());
    bucket
}

/// Ensures that the ObjectBucket has the UID of the BucketClaim or BucketAccess, so that a later
/// deletion of that object is noticed.
pub(super) fn note(bucket: &Bucket, shadow: &Shadow) -> Result<(), Halt> {
    if bucket.shadow_uid.as_ref() == Some(&shadow.id.uid) {
        return Ok(());
    }
    let key = shadow.kind().uid_key();
    let add = json!({"op": "add", "path": format!("/spec/additionalState/{key}"), "value": shadow.id.uid});
    let why = match shadow.kind() {
        ShadowKind::Claim => "note its BucketClaim",
        ShadowKind::Access => "note its BucketAccess",
    };
    Err(patch(bucket, vec![add], why))
}

/// Ensures that the ObjectBucket has the current endpoint and is Bound.
pub(super) fn tell(view: &ObcView, bucket: &Bucket, pins: &Pins) -> Result<(), Halt> {
    let wanted = desired::endpoint(&view.setting, pins);
    let given = |of: &ObjectBucketEndpoint| (of.bucket_host.clone(), of.bucket_port, of.region.clone());
    if given(&wanted) != given(&bucket.endpoint) {
        let set =
            |field: &str, value: Value| json!({"op": "add", "path": format!("/spec/endpoint/{field}"), "value": value});
        let operations = vec![
            set("bucketHost", wanted.bucket_host.into()),
            set("bucketPort", wanted.bucket_port.into()),
            set("region", wanted.region.into()),
        ];
        return Err(patch(bucket, operations, "the gateway is elsewhere"));
    }
    phase(bucket, "Bound")
}

/// Ensures that the ObjectBucket has this phase.
pub(super) fn phase(bucket: &Bucket, phase: &'static str) -> Result<(), Halt> {
    if bucket.phase.as_deref() == Some(phase) {
        return Ok(());
    }
    Err(ObcAct::WriteBucketPhase(bucket.name.clone(), bucket.id.clone(), phase).into())
}

fn patch(bucket: &Bucket, operations: Vec<Value>, why: &'static str) -> Halt {
    ObcAct::PatchBucket(bucket.name.clone(), bucket.id.clone(), operations, why).into()
}

/// Ensures that the ObjectBucket is gone. Its finalizer is removed first, so that the DELETE takes
/// effect at once.
pub(super) fn remove(view: &ObcView) -> Result<(), Halt> {
    let Some(bucket) = view.bucket.present() else { return Ok(()) };
    if bucket.has_finalizer() {
        let place = bucket.finalizers.iter().position(|name| name == OBC_FINALIZER).unwrap_or_default();
        let path = format!("/metadata/finalizers/{place}");
        let operations =
            vec![json!({"op": "test", "path": path, "value": OBC_FINALIZER}), json!({"op": "remove", "path": path})];
        return Err(patch(bucket, operations, "take the finalizer off"));
    }
    if bucket.deleting {
        // A finalizer of another party keeps it. The deletion does not wait for that.
        return Ok(());
    }
    Err(ObcAct::DeleteBucket(bucket.name.clone(), bucket.id.clone()).into())
}
