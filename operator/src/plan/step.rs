//! What a pass is made of: questions, effects and a rest. Plain data: comparable and printable,
//! never with a secret in it, complete enough that whoever carries it out has no choice left.

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
    /// Find something out; changes nothing.
    Look(Look),
    /// Change something.
    Act(Act),
    /// The pass is over.
    Rest(Rest),
}

impl Step {
    /// The bucket that this step calls a store about; `None` if it calls none.
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

/// A question. Where the answer comes from a cache, the question says so; every other one is asked
/// live.
#[derive(Clone, Debug, PartialEq)]
pub enum Look {
    /// The S3Backend of this name and the labels of the claim's namespace, from the caches.
    Backend(String),
    /// Who holds this bucket, as far as the caches know.
    Holder(Target),
    /// Whose public access to another store's bucket of this name counts, and not this claim's, as
    /// far as the caches know.
    PublicRival(Target),
    /// GET the claim.
    Claim,
    /// LIST every internal Secret that carries the claim's UID.
    Own,
    /// GET an internal Secret by name.
    Internal(String),
    /// GET a Secret in the claim's namespace by name.
    Consumer(String),
    /// LIST the credentials for this bucket, whoever's they are.
    CredentialsFor(Target),
    /// Does the bucket exist, and what do its tags say? (GetBucketTagging, else HeadBucket)
    Bucket(Target),
    /// Is the bucket of the account of the admin credentials? (GetBucketAcl and ListBuckets)
    Owner(Target),
    /// Does the bucket hold an object, a version or an unfinished upload?
    Contents(Target),
    /// GetBucketVersioning.
    Versioning(Target),
    /// What a bucket is opened to accesses by, read live and in order.
    Consent(ConsentQuestion),
}

/// An effect.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// PATCH the claim: put our finalizer on, and note this operator.
    AddFinalizer(ObjectId),
    /// PATCH the claim: take our finalizer off.
    RemoveFinalizer(ObjectId),
    /// POST the bucket record.
    CreateRecord(Box<BucketRecord>),
    /// CreateBucket.
    CreateBucket(Target),
    /// Delete what the bucket holds, at most this many versions, delete markers and unfinished
    /// uploads.
    Purge(Target, u32),
    /// DeleteBucket.
    DeleteBucket(Target),
    /// PutBucketTagging with this whole set.
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
            // Its id is another with each try, and what a status tells is to stay the same.
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
    /// When the claim is looked at again.
    pub then: Then,
    /// Events to publish: transitions only.
    pub events: Vec<Announcement>,
    /// The name that the claim waits for: it is woken when its holder lets go.
    pub waits_for: Option<RecordName>,
}

/// When the claim is looked at again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Then {
    /// When something that it depends on changes, and on the slow resync.
    AwaitChange,
    /// At this distance, if nothing changes before: something becomes due then. The status says how
    /// the claim is, and the backoff is reset.
    After(Duration),
    /// At this distance, if nothing changes before: the pass holds off. The status stays as it is,
    /// and what failed until now still counts towards the backoff.
    Wait(Duration),
    /// After a backoff that grows: something failed that may succeed when tried again. Says what.
    Retry(String),
}

impl Rest {
    /// An end without a word.
    pub(super) fn silent(then: Then) -> Self {
        Self { then, events: Vec::new(), waits_for: None }
    }
}

impl Then {
    /// Something failed that may succeed when tried again. Says what.
    pub(super) fn retry(why: &str) -> Self {
        Self::Retry(why.to_owned())
    }

    /// The end of a pass that took more steps than any should.
    pub(super) fn cut_short() -> Self {
        Self::retry("the pass does not come to an end")
    }

    /// The same for a pass that holds off for so long, and tells of nothing.
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

/// An event on the claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// `Warning` rather than `Normal`.
    pub warning: bool,
    /// CamelCase word.
    pub reason: String,
    /// Sentence for people.
    pub note: String,
}
