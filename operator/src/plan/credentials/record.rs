//! Writes to a holder's record and to its other Secrets.

use super::super::patch::{Change, SecretPatch};
use super::super::secret::Stored;
use super::super::walk::Halt;
use super::holder::{HaltOf, KeyHolder, KeyStep, KeyStop};

/// The patch that makes the stored record say what `record` says, labels and annotations included.
pub(in super::super) fn record_patch<H: KeyHolder>(
    holder: &H,
    record: &H::Record,
    stored: &Stored,
    change: Change,
) -> Option<SecretPatch> {
    SecretPatch::between(&stored.0, &holder.content(record), H::REMOVABLE, change)
}

/// The step that writes `record` over the one that is `stored`.
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

/// The step that patches, planned on an object read live. It is bound to the version that was read,
/// so an old cache can't make it undo what somebody did since.
fn patched<H: KeyHolder>(holder: &H, patch: SecretPatch) -> HaltOf<H> {
    holder.require_live().err().unwrap_or_else(|| Halt::step(KeyStep::Patch(patch)))
}

/// The step that deletes a Secret of ours, unless that was done and somebody's finalizer keeps it.
pub(in super::super) fn delete_secret<H: KeyHolder>(_: &H, secret: &Stored) -> HaltOf<H> {
    match secret.kept_by() {
        Some(finalizers) => Halt::stop(KeyStop::Kept { secret: secret.name().to_owned(), finalizers }),
        None => Halt::step(KeyStep::Delete(secret.reference())),
    }
}
