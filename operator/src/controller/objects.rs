//! Claims, backends and accesses as watches deliver them.

use kube::ResourceExt;
use kube::core::DeserializeGuard;

use crate::api::{AccessRef, BucketAccess, BucketClaim, ClaimRef, ObjectBucketClaim, S3Backend, kept};

/// A claim, or the error if it can't be decoded. One such object must not stop the whole watch.
pub(crate) type Claim = DeserializeGuard<BucketClaim>;
/// A backend, or the error if it can't be decoded.
pub(crate) type Backend = DeserializeGuard<S3Backend>;

/// An access, or the error if it can't be decoded.
pub(crate) type Access = DeserializeGuard<BucketAccess>;

/// An ObjectBucketClaim, or the error if it can't be decoded.
pub(crate) type ObcObject = DeserializeGuard<ObjectBucketClaim>;

/// Returns namespace and name of a claim, also of one that can't be decoded.
pub(crate) fn claim_ref(claim: &impl ResourceExt) -> ClaimRef {
    ClaimRef { namespace: claim.namespace().unwrap_or_default(), name: claim.name_any() }
}

/// Returns namespace and name of an access, also of one that can't be decoded.
pub(crate) fn access_ref(access: &impl ResourceExt) -> AccessRef {
    AccessRef { namespace: access.namespace().unwrap_or_default(), name: access.name_any() }
}

/// Maximum length of a stored decoding error, in characters: it quotes the object.
const LONGEST_WHY: usize = 1000;

/// Trims an object to the parts that are stored, also if it can't be decoded.
pub(crate) fn keep<K>(object: &mut DeserializeGuard<K>, of: fn(&K) -> K) {
    match &mut object.0 {
        Ok(object) => *object = of(object),
        Err(invalid) => {
            invalid.metadata = kept::metadata(&invalid.metadata, &[], &[]);
            invalid.error = invalid.error.chars().take(LONGEST_WHY).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // covers: 3.5.memory
    #[test]
    fn of_an_object_that_can_not_be_decoded_little_is_kept() {
        let long = "x".repeat(1 << 20);
        let metadata = json!({"name": "photos", "labels": {"theirs": long}, "finalizers": [long]});
        let spec = json!({"backendRef": {"name": "main"}, "forceDelete": long});
        let mut claim: Claim = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).expect("an object");
        keep(&mut claim, kept::claim);
        let invalid = claim.0.expect_err("that is no boolean");
        assert_eq!(invalid.metadata.name.as_deref(), Some("photos"));
        assert!(invalid.metadata.labels.is_some_and(|labels| labels.is_empty()));
        assert!(invalid.error.capacity() <= 2 * LONGEST_WHY);
    }
}
