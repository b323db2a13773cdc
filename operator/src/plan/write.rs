//! Halts whose step writes to a Secret that is there.

use crate::api::BucketRecord;

use super::halt::Halt;
use super::patch::{Change, SecretPatch};
use super::secret::Stored;
use super::step::Act;
use super::view::View;

/// The patch that makes the stored record say what `record` says, labels and annotations included.
pub(super) fn record_patch(view: &View, record: &BucketRecord, stored: &Stored, change: Change) -> Option<SecretPatch> {
    let content = record.content(&view.setting().operator_namespace);
    SecretPatch::between(&stored.0, &content, &BucketRecord::REMOVABLE, change)
}

/// The step that writes `record` over the one that is `stored`.
pub(super) fn rewrite(view: &View, record: &BucketRecord, stored: &Stored, change: Change) -> Halt {
    match record_patch(view, record, stored, change) {
        Some(patch) => patched(view, patch),
        None => Halt::Stale("the record says so already"),
    }
}

/// Halts with the patch, if there is one.
pub(super) fn repair(view: &View, patch: Option<SecretPatch>) -> Result<(), Halt> {
    patch.map_or(Ok(()), |patch| Err(patched(view, patch)))
}

/// The step that patches, planned on a claim read live. It is bound to the version that was read,
/// so an old cache can't make it undo what somebody did since.
fn patched(view: &View, patch: SecretPatch) -> Halt {
    view.require_live_claim().err().unwrap_or_else(|| Act::Patch(patch).into())
}
