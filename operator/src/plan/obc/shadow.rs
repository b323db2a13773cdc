//! The BucketClaim that does the work: in the claim's namespace, controlled by it, and kept as it
//! should be (spec §9).

use kube::core::ObjectMeta;

use crate::api::{BucketClaim, BucketClaimSpec, Deletion, OBC_PROVISIONER, Quantity, Quota, wire};

use super::desired;
use super::step::{ObcAct, ObcLook};
use super::view::{Halt, ObcView, Phase, Seen, Stop};
use super::words::{Pins, Shadow};

/// That it is there, and asks for what it should. `quota` is absent where that can't be known.
pub(super) fn ensure<'a>(view: &'a ObcView, pins: &Pins, quota: Option<Option<String>>) -> Result<&'a Shadow, Halt> {
    let shadow = match &view.shadow {
        Seen::Unknown => return Err(ObcLook::Shadow(pins.shadow.clone()).into()),
        Seen::Absent => {
            view.require_live()?;
            let spec = desired::shadow(&view.obc, pins, hard(quota.flatten()), pins.meanwhile());
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
    let quota = quota.map_or_else(|| shadow.spec.quota.clone(), hard);
    let wanted = desired::shadow(&view.obc, pins, quota, pins.meanwhile());
    if shadow.spec == wanted {
        return Ok(shadow);
    }
    require_live(view, pins)?;
    if shadow.spec.bucket_name != wanted.bucket_name {
        let why = format!("BucketClaim {} is there and asks for another bucket; delete it", pins.shadow);
        return Err(Stop::new(Phase::Failed, "NameTaken", why).into());
    }
    Err(ObcAct::PatchShadow(pins.shadow.clone(), shadow.id.clone(), Box::new(wanted)).into())
}

fn hard(size: Option<String>) -> Option<Quota> {
    size.map(|size| Quota { soft: None, hard: Some(Quantity::Text(size)) })
}

fn content(view: &ObcView, pins: &Pins, spec: BucketClaimSpec) -> BucketClaim {
    let metadata = ObjectMeta {
        name: Some(pins.shadow.clone()),
        namespace: Some(view.obc.at.namespace.clone()),
        labels: Some([(OBC_PROVISIONER.to_owned(), view.setting.label())].into()),
        annotations: Some([(wire::SERVED_BY.to_owned(), view.setting.operator.to_string())].into()),
        owner_references: Some(vec![view.obc.owner()]),
        ..ObjectMeta::default()
    };
    BucketClaim { metadata, spec, status: None }
}

fn require_live(view: &ObcView, pins: &Pins) -> Result<(), Halt> {
    if view.shadow.is_live() { Ok(()) } else { Err(ObcLook::Shadow(pins.shadow.clone()).into()) }
}

/// One that another object controls, or none: that of an earlier claim of this name goes by itself.
fn foreign(view: &ObcView, pins: &Pins, shadow: &Shadow) -> Stop {
    let is_earlier = shadow.controller.as_ref().is_some_and(|(name, _)| *name == view.obc.at.name);
    if is_earlier {
        let why = format!("BucketClaim {} of an earlier claim of this name is on its way out", pins.shadow);
        return Stop::new(Phase::Pending, "BucketClaimLeaving", why);
    }
    let why = format!("BucketClaim {} is there, and this claim does not control it", pins.shadow);
    Stop::new(Phase::Pending, "NameTaken", why)
}

/// Somebody has deleted it, and not this claim: its bucket is kept for the one that follows. Where
/// the whole namespace goes it is left alone, as this claim goes as well.
fn leaving(view: &ObcView, pins: &Pins, shadow: &Shadow) -> Result<Stop, Halt> {
    require_live(view, pins)?;
    view.require_live()?;
    if shadow.deletion() != Deletion::Retain {
        match view.stays {
            None => return Err(ObcLook::Namespace.into()),
            Some(true) => return Err(patch_deletion(&pins.shadow, shadow, Deletion::Retain)),
            Some(false) => return Ok(Stop::waiting()),
        }
    }
    let why = format!("BucketClaim {} was deleted, and is made again once it is gone", pins.shadow);
    Ok(Stop::new(Phase::Pending, "BucketClaimLeaving", why))
}

/// What becomes of the bucket; of the spec nothing else is touched.
fn patch_deletion(name: &str, shadow: &Shadow, deletion: Deletion) -> Halt {
    let mut spec = shadow.spec.clone();
    spec.deletion_policy = desired::policy(deletion).into();
    spec.force_delete = deletion == Deletion::Force;
    ObcAct::PatchShadow(name.to_owned(), shadow.id.clone(), Box::new(spec)).into()
}

/// What keeps it from being used, by its own word.
pub(super) fn obstacle(view: &ObcView, shadow: &Shadow) -> Option<Stop> {
    match &shadow.ready {
        Some((true, ..)) if shadow.secret.as_deref() == Some(&view.obc.at.name) => None,
        Some((false, reason, message)) if shadow.stalled => Some(Stop::new(Phase::Failed, reason, message.clone())),
        Some((false, reason, message)) => Some(Stop::new(Phase::Pending, reason, message.clone())),
        Some((true, ..)) | None => Some(Stop::waiting()),
    }
}

/// That it is gone, by what is pinned: `None` = that is lost, and keeps the bucket.
pub(super) fn remove(view: &ObcView, name: &str, pinned: Option<Deletion>) -> Result<(), Halt> {
    let shadow = match &view.shadow {
        Seen::Absent => return Ok(()),
        Seen::Live(shadow) => shadow,
        Seen::Unknown | Seen::Cached(_) => return Err(ObcLook::Shadow(name.to_owned()).into()),
    };
    if !shadow.is_of(view.obc.uid()) {
        return Ok(());
    }
    let deletion = pinned.unwrap_or(Deletion::Retain);
    if shadow.deletion() != deletion {
        return Err(patch_deletion(name, shadow, deletion));
    }
    if !shadow.deleting {
        return Err(ObcAct::DeleteShadow(name.to_owned(), shadow.id.clone()).into());
    }
    let stop = obstacle(view, shadow).filter(|_| shadow.stalled).unwrap_or_else(Stop::waiting);
    Err(stop.into())
}
