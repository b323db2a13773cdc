//! Authorisation of an access's key: mode and prefix, for every operation (spec §8). Operations
//! that are not listed are denied.

use std::sync::Arc;

use stowage_api::{AccessMode, BucketName, ServedAccess};

use super::refusals::{denied, of_unreachable};
use super::wanted::Wanted;
use crate::head::{CopySource, Operation};
use crate::refusal::Refusal;
use crate::registry::{Backend, Granted, Tables};

/// The kind of permission that an operation needs on the bucket that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// None: it reveals only that the bucket exists, which the holder of a key knows.
    Nothing,
    /// Reading or listing present objects.
    Read,
    /// Storing an object.
    Store,
    /// Anything else.
    All,
}

impl Need {
    fn of(operation: Operation, names_version: bool) -> Self {
        use Operation as O;
        match operation {
            // Past versions are not shown to a reader.
            _ if names_version => Self::All,
            O::CreateBucket => Self::Nothing,
            O::GetBucketAcl
            | O::GetBucketEncryption
            | O::GetBucketLocation
            | O::GetBucketTagging
            | O::GetBucketVersioning
            | O::GetObject
            | O::GetObjectAcl
            | O::GetObjectAttributes
            | O::GetObjectLockConfiguration
            | O::GetObjectTagging
            | O::GetPublicAccessBlock
            | O::HeadObject
            | O::HeadBucket
            | O::ListObjects
            | O::ListObjectsV2 => Self::Read,
            O::AbortMultipartUpload
            | O::CompleteMultipartUpload
            | O::CopyObject
            | O::CreateMultipartUpload
            | O::PostObject
            | O::PutObject
            | O::UploadPart
            | O::UploadPartCopy => Self::Store,
            O::DeleteObject
            | O::DeleteObjectTagging
            | O::DeleteObjects
            | O::ListBuckets
            | O::ListMultipartUploads
            | O::ListObjectVersions
            | O::ListParts
            | O::PutObjectTagging => Self::All,
        }
    }

    fn is_met_by(self, mode: AccessMode) -> bool {
        match (mode, self) {
            (_, Self::Nothing)
            | (AccessMode::ReadWrite, _)
            | (AccessMode::ReadOnly, Self::Read)
            | (AccessMode::WriteOnly, Self::Store) => true,
            (AccessMode::ReadOnly, Self::Store | Self::All) | (AccessMode::WriteOnly, Self::Read | Self::All) => false,
        }
    }
}

/// Returns the store of the bucket that a request is about.
///
/// # Errors
/// `AccessDenied` if the key doesn't allow the request; otherwise the same as for a claim's key.
pub(super) fn target(
    access: &ServedAccess,
    bucket: &BucketName,
    wanted: &Wanted<'_>,
    known: &Tables,
) -> Result<Arc<Backend>, Refusal> {
    let granted = known.grant(access, bucket).map_err(of_unreachable)?;
    let is_met = Need::of(wanted.operation, wanted.names_version).is_met_by(granted.mode);
    if is_met && is_covered(&granted, wanted) { Ok(granted.backend) } else { Err(denied()) }
}

/// Returns the store of the bucket that a copy is read from.
///
/// # Errors
/// `AccessDenied` if the key doesn't allow the read; otherwise the same as for a claim's key.
pub(super) fn source(access: &ServedAccess, source: &CopySource, known: &Tables) -> Result<Arc<Backend>, Refusal> {
    let granted = known.grant(access, &source.bucket).map_err(of_unreachable)?;
    let is_met = Need::of(Operation::GetObject, source.version.is_some()).is_met_by(granted.mode);
    let is_covered = granted.covers(source.key.as_str().as_bytes());
    if is_met && is_covered { Ok(granted.backend) } else { Err(denied()) }
}

/// Returns true if a request stays below the granted prefix: by the object's key, by the keys of
/// the objects that it deletes, or by the prefix of a list. A DeleteObjects passes until its
/// document has been read.
fn is_covered(granted: &Granted, wanted: &Wanted<'_>) -> bool {
    use Operation as O;
    if granted.is_whole() {
        return true;
    }
    match (wanted.operation, wanted.key, wanted.prefix) {
        // These reveal nothing about objects.
        (
            O::CreateBucket
            | O::GetBucketAcl
            | O::GetBucketEncryption
            | O::GetBucketLocation
            | O::GetBucketTagging
            | O::GetBucketVersioning
            | O::GetObjectLockConfiguration
            | O::GetPublicAccessBlock
            | O::HeadBucket,
            None,
            _,
        ) => true,
        (O::DeleteObjects, _, _) => {
            wanted.deletion.is_none_or(|deletion| deletion.keys().all(|key| granted.covers(key.as_str().as_bytes())))
        }
        (O::ListObjects | O::ListObjectsV2 | O::ListObjectVersions | O::ListMultipartUploads, None, Some(prefix)) => {
            granted.covers(prefix)
        }
        (_, Some(key), _) => granted.covers(key),
        (_, None, _) => false,
    }
}

#[cfg(test)]
#[path = "grants_tests.rs"]
mod tests;
