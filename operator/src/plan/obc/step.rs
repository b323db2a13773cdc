//! What a pass over an ObjectBucketClaim is made of: questions, effects and answers (spec §9).

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
    /// Find something out; changes nothing.
    Look(ObcLook),
    /// Change something.
    Act(ObcAct),
}

/// A question. All are asked live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObcLook {
    /// GET the ObjectBucketClaim.
    Obc,
    /// GET its namespace.
    Namespace,
    /// GET the storage class of this name.
    Class(String),
    /// GET the ObjectBuckets of the names that its own may have.
    Buckets,
    /// GET the object of this kind and name in its namespace, which does the work.
    Shadow(ShadowKind, String),
    /// GET the ConfigMap of its name in its namespace.
    ConfigMap,
}

/// An effect. All but POSTs are bound to UID and version.
#[derive(Clone, Debug, PartialEq)]
pub enum ObcAct {
    /// PATCH the ObjectBucketClaim: put finalizer and label on.
    AddFinalizer(ObjectId),
    /// PATCH it: take the finalizer off.
    RemoveFinalizer(ObjectId),
    /// PATCH its spec: the names of bucket and ObjectBucket.
    WriteNames(ObjectId, Vec<(&'static str, String)>),
    /// PATCH its status: the phase.
    WritePhase(ObjectId, &'static str),
    /// POST the ObjectBucket.
    CreateBucket(Box<ObjectBucket>),
    /// PATCH the ObjectBucket of this name by these operations; says what for.
    PatchBucket(String, ObjectId, Vec<Value>, &'static str),
    /// PATCH the status of the ObjectBucket of this name: the phase.
    WriteBucketPhase(String, ObjectId, &'static str),
    /// DELETE the ObjectBucket of this name.
    DeleteBucket(String, ObjectId),
    /// POST the object that does the work.
    CreateShadow(Box<NewShadow>),
    /// PATCH the one of this name: its spec.
    PatchShadow(String, ObjectId, Box<ShadowSpec>),
    /// DELETE the one of this kind and name.
    DeleteShadow(ShadowKind, String, ObjectId),
    /// POST the ConfigMap.
    CreateConfigMap(Box<ConfigMap>),
    /// PATCH the ConfigMap by these operations.
    PatchConfigMap(ObjectId, Vec<Value>),
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum ObcAnswer {
    /// The ObjectBucketClaim as it is now; `None` = there is none.
    Obc(Option<Box<Obc>>),
    /// Whether its namespace is there, and is to stay.
    Namespace(bool),
    /// The storage class.
    Class(Option<BucketClass>),
    /// The ObjectBuckets of these names.
    Buckets(Vec<(String, Option<Bucket>)>),
    /// The object of this kind that does the work.
    Shadow(ShadowKind, Option<Box<Shadow>>),
    /// The ConfigMap.
    ConfigMap(Option<Told>),
    /// The ObjectBucketClaim is written, and is this.
    ObcWritten(Box<Obc>),
    /// The finalizer is off.
    FinalizerRemoved,
    /// The ObjectBucket is made; `None` = the name is taken.
    BucketPosted(Option<Box<Bucket>>),
    /// The ObjectBucket is written, and is this.
    BucketWritten(Box<Bucket>),
    /// The ObjectBucket is deleted; `Some` = a finalizer keeps it.
    BucketDeleted(Option<Box<Bucket>>),
    /// It is made; `None` = the name is taken among its kind.
    ShadowPosted(ShadowKind, Option<Box<Shadow>>),
    /// It is written, and is this.
    ShadowWritten(Box<Shadow>),
    /// It is deleted; `Some` = a finalizer keeps it.
    ShadowDeleted(ShadowKind, Option<Box<Shadow>>),
    /// The ConfigMap is made; `None` = the name is taken.
    ConfigMapPosted(Option<Told>),
    /// The ConfigMap is written, and is this.
    ConfigMapWritten(Told),
    /// The step was not done, or whether it was done is unknown.
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
