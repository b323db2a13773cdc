//! Writes to the record of a key holder and to its other Secrets.

use super::super::patch::{Change, SecretPatch};
use super::super::secret::Stored;
use super::super::walk::Halt;
use super::holder::{HaltOf, KeyHolder, KeyStep, KeyStop};

/// Returns the patch that turns the stored record into `record`, labels and annotations included.
pub(in super::super) fn record_patch<H: KeyHolder>(
    holder: &H,
    record: &H::Record,
    stored: &Stored,
    change: Change,
) -> Option<SecretPatch> {
    SecretPatch::between(&stored.0, &holder.content(record), H::REMOVABLE, change)
}

/// Returns the step that overwrites the `stored` record with `record`.
pub(in super::super) fn rewrite<H: KeyHolder>(
    holder: &H,
    record: &H::Record,
    stored: &Stored,
    change: Change,
) -> HaltOf<H> {
    match record_patch(holder, record, stored, change) {
        Some(patch) => patched(holder, patch),
        None => Halt::Stale("the record says so already"),
    }
}

/// Halts with the patch, if there is one.
pub(in super::super) fn repair<H: KeyHolder>(holder: &H, patch: Option<SecretPatch>) -> Result<(), HaltOf<H>> {
    patch.map_or(Ok(()), |patch| Err(patched(holder, patch)))
}

/// Returns the patch step, once the object was read live. The patch carries the resourceVersion
/// that was read, so that an outdated cache can't undo later changes.
fn patched<H: KeyHolder>(holder: &H, patch: SecretPatch) -> HaltOf<H> {
    holder.require_live().err().unwrap_or_else(|| Halt::step(KeyStep::Patch(patch)))
}

/// Returns the step that deletes a Secret of ours, or a stop if it is deleted already and a
/// finalizer of another party keeps it.
pub(in super::super) fn delete_secret<H: KeyHolder>(_: &H, secret: &Stored) -> HaltOf<H> {
    match secret.kept_by() {
        Some(finalizers) => Halt::stop(KeyStop::Kept { secret: secret.name().to_owned(), finalizers }),
        None => Halt::step(KeyStep::Delete(secret.reference())),
    }
}
