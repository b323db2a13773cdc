//! From the deletion timestamp to the end of an ObjectBucketClaim (spec §9): BucketClaim →
//! ObjectBucket → finalizer. Neither class nor backend is asked: what is pinned decides, and what
//! is lost destroys nothing.

use super::bucket;
use super::shadow;
use super::step::{ObcAct, ObcLook};
use super::view::{Halt, ObcView, Seen};
use super::words::shadow_name;

/// Walks through the steps. `Ok` = nothing is left to do.
pub(super) fn walk(view: &ObcView) -> Result<(), Halt> {
    if view.is_finalizer_removed || !view.obc.has_finalizer() {
        return Ok(());
    }
    view.require_live()?;
    let pins = match &view.bucket {
        Seen::Live(bucket) => {
            bucket::phase(view, bucket, "Released")?;
            bucket.pins.as_ref()
        }
        Seen::Absent => None,
        Seen::Unknown | Seen::Cached(_) => return Err(ObcLook::Buckets.into()),
    };
    let name = pins.map_or_else(|| shadow_name(&view.obc), |pins| pins.shadow.clone());
    shadow::remove(view, &name, pins.map(|pins| pins.deletion()))?;
    bucket::remove(view)?;
    Err(ObcAct::RemoveFinalizer(view.obc.id.clone()).into())
}
