//! Objects that users change.

use std::fmt;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;

/// An object that a user changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Kind of the object.
    pub kind: TargetKind,
    /// Namespace of the object; empty for cluster-scoped kinds.
    pub namespace: &'static str,
    /// Name of the object.
    pub name: &'static str,
}

/// Kinds of objects that users change.
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
    /// An Event.
    Event,
}

impl TargetKind {
    /// Returns the resource name in URLs.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Claim => "bucketclaims",
            Self::Backend => "s3backends",
            Self::Secret => "secrets",
            Self::Namespace => "namespaces",
            Self::Lease => "leases",
            Self::Access => "bucketaccesses",
            Self::Obc => "objectbucketclaims",
            Self::ConfigMap => "configmaps",
            Self::StorageClass => "storageclasses",
            Self::Event => "events",
        }
    }

    /// Returns an API for its objects in a namespace, which is empty for cluster-scoped kinds.
    pub fn api(self, client: Client, namespace: &str) -> Api<DynamicObject> {
        let (group, version, kind) = match self {
            Self::Claim => ("broker.stowage.io", "v1alpha1", "BucketClaim"),
            Self::Backend => ("broker.stowage.io", "v1alpha1", "S3Backend"),
            Self::Secret => ("", "v1", "Secret"),
            Self::Namespace => ("", "v1", "Namespace"),
            Self::Lease => ("coordination.k8s.io", "v1", "Lease"),
            Self::Access => ("broker.stowage.io", "v1alpha1", "BucketAccess"),
            Self::Obc => ("objectbucket.io", "v1alpha1", "ObjectBucketClaim"),
            Self::ConfigMap => ("", "v1", "ConfigMap"),
            Self::StorageClass => ("storage.k8s.io", "v1", "StorageClass"),
            Self::Event => ("", "v1", "Event"),
        };
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), self.plural());
        match namespace {
            "" => Api::all_with(client, &resource),
            namespace => Api::namespaced_with(client, namespace, &resource),
        }
    }
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
            TargetKind::Event => "event",
        };
        match self.namespace {
            "" => write!(f, "{kind} {}", self.name),
            namespace => write!(f, "{kind} {namespace}/{}", self.name),
        }
    }
}
