//! The BucketClaim or BucketAccess that serves an ObjectBucketClaim: created in its namespace,
//! controlled by it, and kept as wanted (spec §9).

use kube::core::ObjectMeta;

use crate::api::{AccessReason, BucketClaimSpec, Deletion, OBC_PROVISIONER, ObjectId, Quantity, Quota, wire};

use super::desired;
use super::halt::{Halt, Phase, Stop};
use super::kinds::{NewShadow, Shadow, ShadowKind, ShadowSpec, Work, deletion_of};
use super::step::{ObcAct, ObcLook};
use super::view::{ObcView, Seen};
use super::words::Pins;

/// Ensures that the object exists with the wanted spec. `quota` is `None` if the quota is unknown,
/// because the claim's config is invalid.
pub(super) fn ensure<'a>(view: &'a ObcView, pins: &Pins, quota: Option<Option<String>>) -> Result<&'a Shadow, Halt> {
    let kind = pins.work.kind();
    let shadow = match view.shadow(kind) {
        Seen::Unknown if !view.is_new() => return Err(ObcLook::Shadow(kind, pins.shadow.clone()).into()),
        Seen::Unknown | Seen::Absent => {
            view.require_live()?;
            let spec = desired::shadow(&view.obc, pins, hard(quota.flatten()));
            return Err(ObcAct::CreateShadow(Box::new(content(view, pins, spec))).into());
        }
        Seen::Cached(shadow) | Seen::Live(shadow) => shadow,
    };
    if !shadow.is_of(view.obc.uid()) {
        require_live(view, pins)?;
        return Err(foreign(view, pins, shadow).into());
    }
    if shadow.deleting {
        return Err(leaving(view, pins, shadow)?.into());
    }
    let quota = quota.map_or_else(|| shadow.spec.quota().cloned(), hard);
    let wanted = desired::shadow(&view.obc, pins, quota);
    if shadow.spec == wanted {
        return Ok(shadow);
    }
    require_live(view, pins)?;
    if let (ShadowSpec::Claim(there), ShadowSpec::Claim(wanted)) = (&shadow.spec, &wanted)
        && there.bucket_name != wanted.bucket_name
    {
        let why = format!("BucketClaim {} is there and asks for another bucket; delete it", pins.shadow);
        return Err(Stop::new(Phase::Failed, "NameTaken", why).into());
    }
    Err(ObcAct::PatchShadow(pins.shadow.clone(), shadow.id.clone(), Box::new(wanted)).into())
}

fn hard(size: Option<String>) -> Option<Quota> {
    size.map(|size| Quota { soft: None, hard: Some(Quantity::Text(size)) })
}

fn content(view: &ObcView, pins: &Pins, spec: ShadowSpec) -> NewShadow {
    let metadata = ObjectMeta {
        name: Some(pins.shadow.clone()),
        namespace: Some(view.obc.at.namespace.clone()),
        labels: Some([(OBC_PROVISIONER.to_owned(), view.setting.label())].into()),
        annotations: Some([(wire::SERVED_BY.to_owned(), view.setting.operator.to_string())].into()),
        owner_references: Some(vec![view.obc.owner()]),
        ..ObjectMeta::default()
    };
    NewShadow { metadata, spec }
}

fn require_live(view: &ObcView, pins: &Pins) -> Result<(), Halt> {
    let kind = pins.work.kind();
    if view.shadow(kind).is_live() { Ok(()) } else { Err(ObcLook::Shadow(kind, pins.shadow.clone()).into()) }
}

/// Returns the stop for an object that this claim does not control. One of an earlier claim of the
/// same name will be garbage-collected.
fn foreign(view: &ObcView, pins: &Pins, shadow: &Shadow) -> Stop {
    let (kind, name) = (shadow.kind(), &pins.shadow);
    let is_earlier = shadow.controller.as_ref().is_some_and(|(name, _)| *name == view.obc.at.name);
    if is_earlier {
        let why = format!("{kind} {name} of an earlier claim of this name is on its way out");
        return Stop::new(Phase::Pending, kind.leaving(), why);
    }
    let why = format!("{kind} {name} is there, and this claim does not control it");
    Stop::new(Phase::Pending, "NameTaken", why)
}

/// Handles an object that somebody deleted while the claim stays. The bucket of a BucketClaim is
/// retained for the next one. If the whole namespace is terminating, nothing is changed, because
/// the claim will be deleted as well.
fn leaving(view: &ObcView, pins: &Pins, shadow: &Shadow) -> Result<Stop, Halt> {
    require_live(view, pins)?;
    view.require_live()?;
    match &shadow.spec {
        ShadowSpec::Claim(spec) if deletion_of(spec) != Deletion::Retain => match view.stays {
            None => return Err(ObcLook::Namespace.into()),
            Some(true) => return Err(patch_deletion(&pins.shadow, &shadow.id, spec, Deletion::Retain)),
            Some(false) => return Ok(Stop::waiting()),
        },
        ShadowSpec::Claim(_) | ShadowSpec::Access(_) => {}
    }
    let kind = shadow.kind();
    let why = format!("{kind} {} was deleted, and is made again once it is gone", pins.shadow);
    Ok(Stop::new(Phase::Pending, kind.leaving(), why))
}

/// Sets the deletion policy and leaves the rest of the spec unchanged. A foreign template of which
/// only a digest is known is dropped.
fn patch_deletion(name: &str, id: &ObjectId, spec: &BucketClaimSpec, deletion: Deletion) -> Halt {
    let mut spec = spec.clone();
    spec.deletion_policy = desired::policy(deletion).into();
    spec.force_delete = deletion == Deletion::Force;
    spec.secret_template = spec.secret_template.filter(|template| template.get().is_some());
    ObcAct::PatchShadow(name.to_owned(), id.clone(), Box::new(ShadowSpec::Claim(spec))).into()
}

/// Returns the stop that the status of the object leads to. A claim that was Bound stays Bound
/// while the object is busy or waits for its store.
pub(super) fn obstacle(view: &ObcView, pins: &Pins, shadow: &Shadow) -> Option<Stop> {
    let busy = if was_bound(view, pins.work) { Phase::Bound } else { Phase::Pending };
    match &shadow.ready {
        Some((true, ..)) if shadow.secret.as_deref() == Some(&view.obc.at.name) => None,
        Some((true, ..)) | None => Some(Stop { phase: busy, ..Stop::waiting() }),
        Some((false, reason, message)) => Some(match without_consent(view, pins, reason) {
            Some(note) => Stop::new(Phase::Pending, reason, note),
            None => Stop::new(if shadow.stalled { Phase::Failed } else { busy }, reason, message.clone()),
        }),
    }
}

/// Returns true if the claim was Bound. A claim that has lost the consent to its bucket is no
/// longer Bound until the bucket is opened again.
fn was_bound(view: &ObcView, work: Work) -> bool {
    let once = view.bucket.present().is_some_and(|bucket| bucket.phase.as_deref() == Some("Bound"));
    match work {
        Work::Claim(_) => once,
        Work::Access(_) => once && view.before.as_deref() == Some("Bound"),
    }
}

/// Returns the message about missing consent of the S3Backend's administrator. Nothing in the claim
/// is wrong then.
fn without_consent(view: &ObcView, pins: &Pins, reason: &str) -> Option<String> {
    let Work::Access(mode) = pins.work else { return None };
    let (bucket, backend, namespace) = (&pins.bucket, &pins.backend, &view.obc.at.namespace);
    let is = |known: AccessReason| known.to_string() == reason;
    if is(AccessReason::NotShared) {
        Some(format!("spec.sharedBuckets of S3Backend {backend} does not share bucket {bucket} with {namespace}"))
    } else if is(AccessReason::BeyondConsent) {
        let mode = mode.as_str();
        Some(format!(
            "spec.sharedBuckets of S3Backend {backend} shares bucket {bucket} with {namespace}, but not all of it for \
             {mode}"
        ))
    } else if is(AccessReason::HeldByClaim) {
        Some(format!("a BucketClaim holds bucket {bucket}, so S3Backend {backend} can't share it"))
    } else {
        None
    }
}

/// Ensures that the BucketClaim is gone, and that its bucket gets this deletion policy.
pub(super) fn remove_claim(view: &ObcView, name: &str, in_the_end: Deletion) -> Result<(), Halt> {
    let Some(shadow) = own(view, ShadowKind::Claim, name)? else { return Ok(()) };
    match &shadow.spec {
        ShadowSpec::Claim(spec) if deletion_of(spec) != in_the_end => {
            Err(patch_deletion(name, &shadow.id, spec, in_the_end))
        }
        ShadowSpec::Claim(_) | ShadowSpec::Access(_) => Err(delete(name, shadow)),
    }
}

/// Ensures that the BucketAccess and its keys are gone. Its bucket is not touched.
pub(super) fn remove_access(view: &ObcView, name: &str) -> Result<(), Halt> {
    match own(view, ShadowKind::Access, name)? {
        Some(shadow) => Err(delete(name, shadow)),
        None => Ok(()),
    }
}

fn own<'a>(view: &'a ObcView, kind: ShadowKind, name: &str) -> Result<Option<&'a Shadow>, Halt> {
    match view.shadow(kind) {
        Seen::Absent => Ok(None),
        Seen::Live(shadow) => Ok(Some(shadow).filter(|shadow| shadow.is_of(view.obc.uid()))),
        Seen::Unknown | Seen::Cached(_) => Err(ObcLook::Shadow(kind, name.to_owned()).into()),
    }
}

/// Deletes the object, or waits for its deletion to finish. The stop reports a deletion that needs
/// help.
fn delete(name: &str, shadow: &Shadow) -> Halt {
    if !shadow.deleting {
        return ObcAct::DeleteShadow(shadow.kind(), name.to_owned(), shadow.id.clone()).into();
    }
    match &shadow.ready {
        Some((false, reason, message)) if shadow.stalled => Stop::new(Phase::Failed, reason, message.clone()),
        Some(_) | None => Stop::waiting(),
    }
    .into()
}
