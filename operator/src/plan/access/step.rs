//! What a pass over an access is made of: questions, effects and answers, as of a claim's.

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
    /// Find something out; changes nothing.
    Look(AccessLook),
    /// Change something.
    Act(AccessAct),
}

/// A question. All are asked live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLook {
    /// GET the access.
    Access,
    /// GET its namespace.
    Namespace,
    /// LIST the internal Secrets that carry its UID.
    Own,
    /// GET an internal Secret by name.
    Internal(String),
    /// GET a Secret in its namespace by name.
    Consumer(String),
    /// GET a claim that it names, and the record of its bucket.
    Claim(ClaimRef),
}

/// An effect.
#[derive(Clone, Debug, PartialEq)]
pub enum AccessAct {
    /// PATCH the access: put our finalizer on, and note this operator.
    AddFinalizer(ObjectId),
    /// PATCH the access: take our finalizer off.
    RemoveFinalizer(ObjectId),
    /// POST its record.
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

/// What came of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum AccessAnswer {
    /// The access as it is now; `None` = there is none.
    Access(Option<Box<Access>>),
    /// Its namespace; `None` = there is none, or it is on its way out.
    Namespace(Option<Asker>),
    /// Its internal Secrets.
    Own(Vec<Stored>),
    /// The internal Secret of this name; `None` = there is none.
    Internal(String, Option<Stored>),
    /// The Secret of this name in its namespace.
    Consumer(String, Option<Stored>),
    /// What is to be had of a claim.
    Claim(ClaimRef, ClaimWord),
    /// The finalizer is on, and the access is this.
    FinalizerAdded(Box<Access>),
    /// The finalizer is off.
    FinalizerRemoved,
    /// To the POST of the record.
    RecordPosted(AccessRecord, Posted),
    /// To the POST of a credential.
    CredentialPosted(AccessCredentialFacts, Posted),
    /// To the POST of the consumer Secret of this name.
    ConsumerPosted(String, Posted),
    /// A Secret is patched, and is this by now.
    Patched(Change, Stored),
    /// A Secret is deleted, or was gone; `Some` = somebody's finalizer keeps it.
    Deleted(SecretRef, Option<Stored>),
    /// The status is written, and the access is this.
    StatusWritten(Box<Access>),
    /// The step was not done, or whether it was done is unknown.
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
