//! Internal Secrets for tests, as the operator creates them. Tests override the fields that matter
//! to them.

use std::collections::BTreeMap;

use crate::{
    AccessRecord, AccessRef, AccessUid, AnonymousBinding, BucketName, BucketRecord, ClaimRef, ClaimUid,
    CredentialFacts, Endpoint, Limits, NamespaceUid,
};

impl BucketRecord {
    /// Returns the record of bucket `photos` at `http://s3.example`, to which the claim
    /// `team-a/photos` with UID `u-1` is bound by its first key.
    pub fn fixture() -> Self {
        Self {
            claim: ClaimRef { namespace: "team-a".to_owned(), name: "photos".to_owned() },
            uid: ClaimUid::new("u-1"),
            backend: "main".to_owned(),
            endpoint: Endpoint::parse("http://s3.example").expect("it is a URL"),
            bucket: BucketName::parse("photos").expect("it is a name"),
            absence: false,
            adopted: false,
            settled: true,
            generation: 1,
            handled_rotate_request: None,
            handled_revoke_request: None,
            revoked_through: 0,
            public: false,
            another: false,
            lowest: Some(1),
            accesses: BTreeMap::new(),
            limits: Limits::default(),
            ending: false,
        }
    }

    /// Returns the key of this generation for the record's bucket.
    pub fn key_fixture(&self, generation: u64) -> CredentialFacts {
        let Self { claim, uid, backend, endpoint, bucket, .. } = self.clone();
        CredentialFacts { claim, uid, backend, endpoint, bucket, generation, quota_soft: None, quota_hard: None }
    }

    /// Returns the anonymous binding for the record's bucket.
    pub fn binding_fixture(&self, per_source_ip_rps: u32) -> AnonymousBinding {
        let Self { claim, uid, backend, endpoint, bucket, .. } = self.clone();
        AnonymousBinding { claim, uid, backend, endpoint, bucket, per_source_ip_rps }
    }
}

impl AccessRecord {
    /// Returns the record of access `team-b/reader` with UID `a-1`, in the namespace with UID
    /// `n-1`.
    pub fn fixture() -> Self {
        Self {
            access: AccessRef { namespace: "team-b".to_owned(), name: "reader".to_owned() },
            uid: AccessUid::new("a-1"),
            namespace_uid: NamespaceUid::new("n-1"),
            generation: 1,
            handled_rotate_request: None,
            handled_revoke_request: None,
            revoked_through: 0,
            lowest: 1,
        }
    }
}
