//! Steps of a pass over an ObjectBucketClaim: queries, effects and answers (spec §9).

use std::fmt;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;

use crate::api::{BucketClass, Obc, ObjectBucket, ObjectId};

use super::super::answer::Failure;
use super::kinds::{NewShadow, Shadow, ShadowKind, ShadowSpec};
use super::words::{Bucket, Told};

/// The next step of a pass over an ObjectBucketClaim.
#[derive(Clone, Debug, PartialEq)]
pub enum ObcStep {
    /// A query. Changes nothing.
    Look(ObcLook),
    /// An effect.
    Act(ObcAct),
}

/// A query. All queries are answered live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObcLook {
    /// GET the ObjectBucketClaim.
    Obc,
    /// GET the namespace of the claim.
    Namespace,
    /// GET the storage class of this name.
    Class(String),
    /// GET the ObjectBuckets of the names that the claim's ObjectBucket may have.
    Buckets,
    /// GET the BucketClaim or BucketAccess of this name in the claim's namespace.
    Shadow(ShadowKind, String),
    /// GET the ConfigMap of the claim's name in its namespace.
    ConfigMap,
}

/// An effect. Every request except a POST names UID and version of its object.
#[derive(Clone, Debug, PartialEq)]
pub enum ObcAct {
    /// PATCH the ObjectBucketClaim: add finalizer and label.
    AddFinalizer(ObjectId),
    /// PATCH the claim: remove the finalizer.
    RemoveFinalizer(ObjectId),
    /// PATCH the spec of the claim: the names of bucket and ObjectBucket.
    WriteNames(ObjectId, Vec<(&'static str, String)>),
    /// PATCH the status of the claim: the phase.
    WritePhase(ObjectId, &'static str),
    /// POST the ObjectBucket.
    CreateBucket(Box<ObjectBucket>),
    /// PATCH the ObjectBucket of this name with these operations, for this purpose.
    PatchBucket(String, ObjectId, Vec<Value>, &'static str),
    /// PATCH the status of the ObjectBucket of this name: the phase.
    WriteBucketPhase(String, ObjectId, &'static str),
    /// DELETE the ObjectBucket of this name.
    DeleteBucket(String, ObjectId),
    /// POST the BucketClaim or BucketAccess.
    CreateShadow(Box<NewShadow>),
    /// PATCH the spec of the BucketClaim or BucketAccess of this name.
    PatchShadow(String, ObjectId, Box<ShadowSpec>),
    /// DELETE the object of this kind and name.
    DeleteShadow(ShadowKind, String, ObjectId),
    /// POST the ConfigMap.
    CreateConfigMap(Box<ConfigMap>),
    /// PATCH the ConfigMap with these operations.
    PatchConfigMap(ObjectId, Vec<Value>),
}

/// Result of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum ObcAnswer {
    /// The ObjectBucketClaim as it is now, or `None` if it does not exist.
    Obc(Option<Box<Obc>>),
    /// True if the namespace of the claim exists and is not terminating.
    Namespace(bool),
    /// The storage class.
    Class(Option<BucketClass>),
    /// The ObjectBuckets of these names.
    Buckets(Vec<(String, Option<Bucket>)>),
    /// The BucketClaim or BucketAccess.
    Shadow(ShadowKind, Option<Box<Shadow>>),
    /// The ConfigMap.
    ConfigMap(Option<Told>),
    /// The ObjectBucketClaim is written. Contains the updated object.
    ObcWritten(Box<Obc>),
    /// The finalizer is removed.
    FinalizerRemoved,
    /// The ObjectBucket is created, or `None` if the name is taken.
    BucketPosted(Option<Box<Bucket>>),
    /// The ObjectBucket is written. Contains the updated object.
    BucketWritten(Box<Bucket>),
    /// The ObjectBucket is deleted. `Some` if a finalizer keeps it.
    BucketDeleted(Option<Box<Bucket>>),
    /// The BucketClaim or BucketAccess is created, or `None` if the name is taken.
    ShadowPosted(ShadowKind, Option<Box<Shadow>>),
    /// The BucketClaim or BucketAccess is written. Contains the updated object.
    ShadowWritten(Box<Shadow>),
    /// The BucketClaim or BucketAccess is deleted. `Some` if a finalizer keeps it.
    ShadowDeleted(ShadowKind, Option<Box<Shadow>>),
    /// The ConfigMap is created, or `None` if the name is taken.
    ConfigMapPosted(Option<Told>),
    /// The ConfigMap is written. Contains the updated object.
    ConfigMapWritten(Told),
    /// The step failed, or its outcome is unknown.
    Failed(ObcStep, Failure),
}

impl From<ObcLook> for ObcStep {
    fn from(look: ObcLook) -> Self {
        Self::Look(look)
    }
}

impl From<ObcAct> for ObcStep {
    fn from(act: ObcAct) -> Self {
        Self::Act(act)
    }
}

impl fmt::Display for ObcStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Look(ObcLook::Obc) => f.write_str("read the ObjectBucketClaim"),
            Self::Look(ObcLook::Namespace) => f.write_str("read its namespace"),
            Self::Look(ObcLook::Class(name)) => write!(f, "read storage class {name}"),
            Self::Look(ObcLook::Buckets) => f.write_str("read its ObjectBucket"),
            Self::Look(ObcLook::Shadow(kind, name)) => write!(f, "read {kind} {name}"),
            Self::Look(ObcLook::ConfigMap) => f.write_str("read its ConfigMap"),
            Self::Act(ObcAct::AddFinalizer(_)) => f.write_str("put the finalizer on"),
            Self::Act(ObcAct::RemoveFinalizer(_)) => f.write_str("take the finalizer off"),
            Self::Act(ObcAct::WriteNames(..)) => f.write_str("write the names of bucket and ObjectBucket"),
            Self::Act(ObcAct::WritePhase(_, phase)) => write!(f, "write phase {phase}"),
            Self::Act(ObcAct::CreateBucket(bucket)) => {
                write!(f, "make ObjectBucket {}", bucket.metadata.name.as_deref().unwrap_or_default())
            }
            Self::Act(ObcAct::PatchBucket(name, _, _, why)) => write!(f, "patch ObjectBucket {name}: {why}"),
            Self::Act(ObcAct::WriteBucketPhase(name, _, phase)) => {
                write!(f, "write phase {phase} of ObjectBucket {name}")
            }
            Self::Act(ObcAct::DeleteBucket(name, _)) => write!(f, "delete ObjectBucket {name}"),
            Self::Act(ObcAct::CreateShadow(shadow)) => {
                let name = shadow.metadata.name.as_deref().unwrap_or_default();
                write!(f, "make {} {name}", shadow.spec.kind())
            }
            Self::Act(ObcAct::PatchShadow(name, _, spec)) => write!(f, "patch {} {name}", spec.kind()),
            Self::Act(ObcAct::DeleteShadow(kind, name, _)) => write!(f, "delete {kind} {name}"),
            Self::Act(ObcAct::CreateConfigMap(_)) => f.write_str("make the ConfigMap"),
            Self::Act(ObcAct::PatchConfigMap(..)) => f.write_str("patch the ConfigMap"),
        }
    }
}
