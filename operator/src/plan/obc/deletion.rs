//! Deletion of an ObjectBucketClaim, from the deletion timestamp on (spec §9): BucketClaim or
//! BucketAccess → ObjectBucket → finalizer. Neither class nor backend is consulted: the pinned
//! values decide, and nothing is destroyed if they are lost.

use crate::api::Deletion;

use super::bucket;
use super::halt::Halt;
use super::kinds::{ShadowKind, Work};
use super::shadow;
use super::step::{ObcAct, ObcLook};
use super::view::{ObcView, Seen};
use super::words::shadow_name;

/// Walks through the steps of a deletion. `Ok` means that nothing is left to do.
pub(super) fn walk(view: &ObcView) -> Result<(), Halt> {
    if view.is_finalizer_removed || !view.obc.has_finalizer() {
        return Ok(());
    }
    view.require_live()?;
    let pins = match &view.bucket {
        Seen::Live(bucket) => {
            bucket::phase(bucket, "Released")?;
            bucket.pins.as_ref()
        }
        Seen::Absent => None,
        Seen::Unknown | Seen::Cached(_) => return Err(ObcLook::Buckets.into()),
    };
    let name = pins.map_or_else(|| shadow_name(&view.obc), |pins| pins.shadow.clone());
    match pins.map(|pins| pins.work) {
        Some(Work::Claim(in_the_end)) => shadow::remove_claim(view, &name, in_the_end)?,
        Some(Work::Access(_)) => shadow::remove_access(view, &name)?,
        None => {
            shadow::remove_claim(view, &name, Deletion::Retain)?;
            // Read only if a watch has shown a BucketAccess: the cluster may not have the kind. A
            // BucketAccess that no watch has shown is garbage-collected with the claim that
            // controls it.
            if view.shadow(ShadowKind::Access).present().is_some_and(|it| it.is_of(view.obc.uid())) {
                shadow::remove_access(view, &name)?;
            }
        }
    }
    bucket::remove(view)?;
    Err(ObcAct::RemoveFinalizer(view.obc.id.clone()).into())
}
