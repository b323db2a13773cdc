//! Claims and backends as watches deliver them.

use kube::ResourceExt;
use kube::core::DeserializeGuard;

use crate::api::{BucketClaim, ClaimRef, S3Backend};

/// A claim, or why it can't be decoded: one such object must not stop the watch of all.
pub(super) type Claim = DeserializeGuard<BucketClaim>;
/// A backend, or why it can't be decoded.
pub(super) type Backend = DeserializeGuard<S3Backend>;

/// Namespace and name of a claim, whether it can be decoded or not.
pub(super) fn claim_ref(claim: &impl ResourceExt) -> ClaimRef {
    ClaimRef { namespace: claim.namespace().unwrap_or_default(), name: claim.name_any() }
}
