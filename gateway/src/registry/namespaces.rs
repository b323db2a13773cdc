//! The namespaces of keys and public buckets, which are the tenants that share the gateway's
//! resources.

use stowage_api::{BucketName, ClaimRef, ClaimUid, ServedBinding};

use super::internal::{Holder, Key};
use super::tables::Tables;

impl Tables {
    /// Returns the namespace of the claim or access that holds a key, or `None` if it is unknown.
    #[must_use]
    pub fn namespace_of<'a>(&'a self, key: &'a Key) -> Option<&'a str> {
        match &key.holder {
            Holder::Access(access) => self.access(&access.uid).map(|record| record.access.namespace.as_str()),
            Holder::Claim(credential) => {
                let buckets = credential.scopes.iter().map(|scope| &scope.bucket);
                self.namespace_of_claim(&credential.uid, buckets, credential.claim.as_ref())
            }
        }
    }

    /// Returns the namespace of the claim that makes a bucket public.
    #[must_use]
    pub fn namespace_of_binding<'a>(&'a self, binding: &'a ServedBinding) -> Option<&'a str> {
        self.namespace_of_claim(&binding.uid, [&binding.bucket], binding.claim.as_ref())
    }

    /// Takes the namespace from the claim's record of one of its buckets, or else from the labels
    /// of the Secret.
    fn namespace_of_claim<'a>(
        &'a self,
        uid: &ClaimUid,
        buckets: impl IntoIterator<Item = &'a BucketName>,
        labelled: Option<&'a ClaimRef>,
    ) -> Option<&'a str> {
        let record = buckets.into_iter().flat_map(|bucket| self.records_of(bucket)).find(|record| record.uid == *uid);
        record.map(|record| &record.claim).or(labelled).map(|claim| claim.namespace.as_str())
    }
}
