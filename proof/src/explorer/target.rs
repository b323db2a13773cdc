//! Objects that users work on.

use std::fmt;

/// An object that a user works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its kind.
    pub kind: TargetKind,
    /// Empty for cluster-scoped kinds.
    pub namespace: &'static str,
    /// Its name.
    pub name: &'static str,
}

/// Kinds of objects that users work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A BucketClaim.
    Claim,
    /// An S3Backend.
    Backend,
    /// A Secret.
    Secret,
    /// A Namespace.
    Namespace,
    /// A Lease.
    Lease,
    /// A BucketAccess.
    Access,
    /// An ObjectBucketClaim.
    Obc,
    /// A ConfigMap.
    ConfigMap,
    /// A StorageClass.
    StorageClass,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            TargetKind::Claim => "bucketclaim",
            TargetKind::Backend => "s3backend",
            TargetKind::Secret => "secret",
            TargetKind::Namespace => "namespace",
            TargetKind::Lease => "lease",
            TargetKind::Access => "bucketaccess",
            TargetKind::Obc => "objectbucketclaim",
            TargetKind::ConfigMap => "configmap",
            TargetKind::StorageClass => "storageclass",
        };
        match self.namespace {
            "" => write!(f, "{kind} {}", self.name),
            namespace => write!(f, "{kind} {namespace}/{}", self.name),
        }
    }
}
