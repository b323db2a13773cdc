//! Steps of a pass over an access: queries, effects and answers. They have the form of a claim's.

use std::fmt;

use crate::api::{Access, AccessCredentialFacts, AccessRecord, BucketAccessStatus, ClaimRef, ObjectId, SecretContent};

use super::super::answer::{Failure, Posted};
use super::super::asking::Asker;
use super::super::patch::{Change, SecretPatch};
use super::super::secret::{SecretRef, Stored};
use super::words::ClaimWord;

/// The next step of a pass over an access.
#[derive(Clone, Debug, PartialEq)]
pub enum AccessStep {
    /// A query. Changes nothing.
    Look(AccessLook),
    /// An effect.
    Act(AccessAct),
}

/// A query. All queries are answered live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLook {
    /// GET the access.
    Access,
    /// GET the namespace of the access.
    Namespace,
    /// LIST the internal Secrets with the access's UID.
    Own,
    /// GET an internal Secret by name.
    Internal(String),
    /// GET a Secret in its namespace by name.
    Consumer(String),
    /// GET a claim that the access names, and the record of its bucket.
    Claim(ClaimRef),
}

/// An effect.
#[derive(Clone, Debug, PartialEq)]
pub enum AccessAct {
    /// PATCH the access: add our finalizer and note this operator.
    AddFinalizer(ObjectId),
    /// PATCH the access: remove our finalizer.
    RemoveFinalizer(ObjectId),
    /// POST the record of the access.
    CreateRecord(AccessRecord),
    /// POST an internal Secret with a new secret key.
    Mint(AccessCredentialFacts),
    /// POST the consumer Secret.
    CreateConsumer(Box<SecretContent>),
    /// PATCH a Secret of ours.
    Patch(SecretPatch),
    /// DELETE a Secret of ours.
    Delete(SecretRef),
    /// PATCH the status of the access.
    WriteStatus(ObjectId, Box<BucketAccessStatus>),
}

/// Result of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum AccessAnswer {
    /// The access as it is now, or `None` if it does not exist.
    Access(Option<Box<Access>>),
    /// Namespace of the access, or `None` if it does not exist or is terminating.
    Namespace(Option<Asker>),
    /// Internal Secrets of the access.
    Own(Vec<Stored>),
    /// The internal Secret of this name, or `None` if it does not exist.
    Internal(String, Option<Stored>),
    /// The Secret of this name in its namespace, or `None` if it does not exist.
    Consumer(String, Option<Stored>),
    /// Availability of a claim's bucket.
    Claim(ClaimRef, ClaimWord),
    /// The finalizer is added. Contains the updated access.
    FinalizerAdded(Box<Access>),
    /// The finalizer is removed.
    FinalizerRemoved,
    /// Answer to the POST of the record.
    RecordPosted(AccessRecord, Posted),
    /// Answer to the POST of a credential.
    CredentialPosted(AccessCredentialFacts, Posted),
    /// Answer to the POST of the consumer Secret of this name.
    ConsumerPosted(String, Posted),
    /// A Secret is patched. Contains the updated Secret.
    Patched(Change, Stored),
    /// A Secret is deleted. `Some` if a finalizer of another party keeps it.
    Deleted(SecretRef, Option<Stored>),
    /// The status is written. Contains the updated access.
    StatusWritten(Box<Access>),
    /// The step failed, or its outcome is unknown.
    Failed(AccessStep, Failure),
}

impl From<AccessLook> for AccessStep {
    fn from(look: AccessLook) -> Self {
        Self::Look(look)
    }
}

impl From<AccessAct> for AccessStep {
    fn from(act: AccessAct) -> Self {
        Self::Act(act)
    }
}

impl fmt::Display for AccessStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Look(AccessLook::Access) => f.write_str("read the access"),
            Self::Look(AccessLook::Namespace) => f.write_str("read the namespace of the access"),
            Self::Look(AccessLook::Own) => f.write_str("list the access's internal Secrets"),
            Self::Look(AccessLook::Internal(name)) => write!(f, "read internal Secret {name}"),
            Self::Look(AccessLook::Consumer(name)) => write!(f, "read Secret {name}"),
            Self::Look(AccessLook::Claim(claim)) => write!(f, "read claim {claim} and the record of its bucket"),
            Self::Act(AccessAct::AddFinalizer(_)) => f.write_str("put the finalizer on"),
            Self::Act(AccessAct::RemoveFinalizer(_)) => f.write_str("take the finalizer off"),
            Self::Act(AccessAct::CreateRecord(_)) => f.write_str("make the access's record"),
            Self::Act(AccessAct::Mint(facts)) => write!(f, "make credential {}", facts.access_key_id()),
            Self::Act(AccessAct::CreateConsumer(content)) => write!(f, "make Secret {}", content.name),
            Self::Act(AccessAct::Patch(patch)) => write!(f, "patch Secret {}: {}", patch.target.name, patch.change),
            Self::Act(AccessAct::Delete(secret)) => write!(f, "delete Secret {}", secret.name),
            Self::Act(AccessAct::WriteStatus(..)) => f.write_str("write the status"),
        }
    }
}
