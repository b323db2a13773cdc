//! Steps of a pass: queries, effects and the end.
//!
//! Steps are plain data. They can be compared and printed, never contain a secret, and are
//! complete: the code that carries a step out has nothing left to decide.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::api::{
    AnonymousBinding, BucketClaimStatus, BucketRecord, CredentialFacts, ObjectId, RecordName, SecretContent, Versioning,
};

use super::asking::ConsentQuestion;
use super::patch::SecretPatch;
use super::secret::SecretRef;
use super::target::Target;

/// The next step of a pass.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A query. Changes nothing.
    Look(Look),
    /// An effect.
    Act(Act),
    /// The end of the pass.
    Rest(Rest),
}

impl Step {
    /// Returns the bucket that this step calls a store about, or `None` if it calls no store.
    pub fn upstream(&self) -> Option<&Target> {
        match self {
            Self::Look(
                Look::Bucket(target) | Look::Owner(target) | Look::Contents(target) | Look::Versioning(target),
            )
            | Self::Act(
                Act::CreateBucket(target)
                | Act::Purge(target, _)
                | Act::DeleteBucket(target)
                | Act::TagBucket(target, _)
                | Act::SetVersioning(target, _),
            ) => Some(target),
            Self::Look(_) | Self::Act(_) | Self::Rest(_) => None,
        }
    }
}

/// A query. The docs say so if it is answered from a cache; every other query is answered live.
#[derive(Clone, Debug, PartialEq)]
pub enum Look {
    /// The S3Backend with this name and the labels of the claim's namespace, from the caches.
    Backend(String),
    /// The claim that holds this bucket, from the caches.
    Holder(Target),
    /// Query of the caches: the other claim that has public access to a bucket of this name at
    /// another store. Only one of the two claims can have it.
    PublicRival(Target),
    /// GET the claim.
    Claim,
    /// LIST every internal Secret that carries the claim's UID.
    Own,
    /// GET an internal Secret by name.
    Internal(String),
    /// GET a Secret in the claim's namespace by name.
    Consumer(String),
    /// LIST the credentials for this bucket, of all claims.
    CredentialsFor(Target),
    /// Existence and tags of the bucket (GetBucketTagging, else HeadBucket).
    Bucket(Target),
    /// Ownership of the bucket by the account of the admin credentials (GetBucketAcl and
    /// ListBuckets).
    Owner(Target),
    /// Presence of an object, a version or an unfinished upload in the bucket.
    Contents(Target),
    /// GetBucketVersioning.
    Versioning(Target),
    /// Data that decides which accesses a bucket is open to, read live and in a fixed order.
    Consent(ConsentQuestion),
}

/// An effect.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// PATCH the claim: add our finalizer and note this operator.
    AddFinalizer(ObjectId),
    /// PATCH the claim: remove our finalizer.
    RemoveFinalizer(ObjectId),
    /// POST the bucket record.
    CreateRecord(Box<BucketRecord>),
    /// CreateBucket.
    CreateBucket(Target),
    /// Delete the contents of the bucket, up to this number of versions, delete markers and
    /// unfinished uploads.
    Purge(Target, u32),
    /// DeleteBucket.
    DeleteBucket(Target),
    /// PutBucketTagging with this complete set.
    TagBucket(Target, BTreeMap<String, String>),
    /// PutBucketVersioning.
    SetVersioning(Target, Versioning),
    /// POST an internal Secret with a new secret key.
    Mint(CredentialFacts),
    /// POST the consumer Secret.
    CreateConsumer(Box<SecretContent>),
    /// POST the anonymous binding.
    CreateBinding(AnonymousBinding),
    /// PATCH a Secret of ours.
    Patch(SecretPatch),
    /// DELETE a Secret of ours.
    Delete(SecretRef),
    /// PATCH the claim's status.
    WriteStatus(ObjectId, Box<BucketClaimStatus>),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Look(look) => look.fmt(f),
            Self::Act(act) => act.fmt(f),
            Self::Rest(rest) => write!(f, "rest: {}", rest.then),
        }
    }
}

impl fmt::Display for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Backend(name) => write!(f, "look up S3Backend {name}"),
            Self::Holder(target) => write!(f, "look up who holds bucket {}", target.bucket),
            Self::PublicRival(target) => write!(f, "look up who else opens a bucket {}", target.bucket),
            Self::Claim => write!(f, "read the claim"),
            Self::Own => write!(f, "list the claim's internal Secrets"),
            Self::Internal(name) => write!(f, "read internal Secret {name}"),
            Self::Consumer(name) => write!(f, "read Secret {name}"),
            Self::CredentialsFor(target) => write!(f, "list the credentials for bucket {}", target.bucket),
            Self::Bucket(target) => write!(f, "look at bucket {}", target.bucket),
            Self::Owner(target) => write!(f, "look whose account bucket {} is of", target.bucket),
            Self::Contents(target) => write!(f, "look whether bucket {} is empty", target.bucket),
            Self::Versioning(target) => write!(f, "look at the versioning of bucket {}", target.bucket),
            Self::Consent(question) => write!(f, "read who may be let at the bucket of {}", question.record),
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddFinalizer(_) => write!(f, "add the finalizer"),
            Self::RemoveFinalizer(_) => write!(f, "remove the finalizer"),
            Self::CreateRecord(record) => write!(f, "create record {}", record.name()),
            Self::CreateBucket(target) => write!(f, "create bucket {}", target.bucket),
            Self::Purge(target, most) => write!(f, "delete up to {most} objects of bucket {}", target.bucket),
            Self::DeleteBucket(target) => write!(f, "delete bucket {}", target.bucket),
            Self::TagBucket(target, _) => write!(f, "tag bucket {}", target.bucket),
            Self::SetVersioning(target, versioning) => {
                write!(f, "set versioning of bucket {} to {versioning:?}", target.bucket)
            }
            // The id differs with each attempt, and a message in a status has to be stable.
            Self::Mint(_) => write!(f, "create a credential"),
            Self::CreateConsumer(content) => write!(f, "create Secret {}", content.name),
            Self::CreateBinding(_) => write!(f, "create the anonymous binding"),
            Self::Patch(patch) => write!(f, "patch Secret {}: {}", patch.target.name, patch.change),
            Self::Delete(secret) => write!(f, "delete Secret {}", secret.name),
            Self::WriteStatus(..) => write!(f, "write the status"),
        }
    }
}

/// The end of a pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Rest {
    /// Time of the next pass over the claim.
    pub then: Then,
    /// Events to publish: transitions only.
    pub events: Vec<Announcement>,
    /// The record that the claim waits for. The claim is woken when the holder releases it.
    pub waits_for: Option<RecordName>,
}

/// Time of the next pass over a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Then {
    /// After a change of something that the claim depends on, and on the slow resync.
    AwaitChange,
    /// After this time, or earlier on a change: something becomes due then. The status is up to
    /// date and the backoff is reset.
    After(Duration),
    /// After this time, or earlier on a change: the pass holds off. The status stays as it is and
    /// earlier failures still count towards the backoff.
    Wait(Duration),
    /// After a growing backoff: something failed that may succeed on retry. Holds the reason.
    Retry(String),
}

impl Rest {
    /// Ends the pass without Events.
    pub(super) fn silent(then: Then) -> Self {
        Self { then, events: Vec::new(), waits_for: None }
    }
}

impl Then {
    /// Returns a retry after a backoff, with the reason.
    pub(super) fn retry(why: &str) -> Self {
        Self::Retry(why.to_owned())
    }

    /// Returns a retry of a pass that reached the bound on its steps.
    pub(super) fn cut_short() -> Self {
        Self::retry("the pass does not come to an end")
    }

    /// Limits the wait to `time` for a pass that holds off and reports nothing.
    pub(super) fn held_off(self, time: Duration) -> Self {
        match self {
            Self::AwaitChange => Self::Wait(time),
            Self::After(delay) | Self::Wait(delay) => Self::Wait(delay.min(time)),
            Self::Retry(why) => Self::Retry(why),
        }
    }
}

impl fmt::Display for Then {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AwaitChange => write!(f, "nothing to do"),
            Self::After(delay) | Self::Wait(delay) => write!(f, "look again in {} s", delay.as_secs()),
            Self::Retry(why) => write!(f, "try again: {why}"),
        }
    }
}

/// A Kubernetes Event on the claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// `Warning` rather than `Normal`.
    pub warning: bool,
    /// CamelCase reason of the Event.
    pub reason: String,
    /// Human-readable sentence.
    pub note: String,
}
