//! What a plan is made of: questions, effects and verdicts. Plain data: comparable and printable, never with
//! a secret in it, complete enough that whoever carries it out has no choice left.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::api::{
    AnonymousBinding, BucketClaimStatus, BucketName, BucketRecord, ClaimRef, CredentialFacts, Endpoint, ObjectId,
    Reason, RecordName, SecretContent, Versioning,
};

use super::answer::Stored;
use super::repair::SecretPatch;

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
            Self::Look(Look::Bucket(target) | Look::Contents(target) | Look::Versioning(target))
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

/// A question. Where the answer comes from a cache, the question says so; every other one is asked live.
#[derive(Clone, Debug, PartialEq)]
pub enum Look {
    /// The S3Backend of this name and the labels of the claim's namespace, from the caches.
    Backend(String),
    /// Who holds this bucket, as far as the caches know.
    Holder(Target),
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
    /// Does the bucket hold an object, a version or an unfinished upload?
    Contents(Target),
    /// GetBucketVersioning.
    Versioning(Target),
}

/// A bucket at a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Name of the S3Backend.
    pub backend: String,
    /// Its endpoint: the call is made only if the backend still has it.
    pub endpoint: Endpoint,
    /// The bucket.
    pub bucket: BucketName,
}

impl Target {
    /// Name of the record of this bucket.
    pub fn record(&self) -> RecordName {
        RecordName::of(&self.endpoint, &self.bucket)
    }
}

/// An effect.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// PATCH the claim: put our finalizer on.
    AddFinalizer(ObjectId),
    /// PATCH the claim: take our finalizer off.
    RemoveFinalizer(ObjectId),
    /// POST the bucket record.
    CreateRecord(BucketRecord),
    /// CreateBucket.
    CreateBucket(Target),
    /// Delete what the bucket holds, at most this many versions, delete markers and unfinished uploads.
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
    CreateConsumer(SecretContent),
    /// POST the anonymous binding.
    CreateBinding(AnonymousBinding),
    /// PATCH a Secret of ours.
    Patch(SecretPatch),
    /// DELETE a Secret of ours.
    Delete(SecretRef),
    /// PATCH the claim's status.
    WriteStatus(ObjectId, Box<BucketClaimStatus>),
}

/// A Secret, in the version that a decision was made on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretRef {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Which object, in which version.
    pub id: ObjectId,
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
            Self::Claim => write!(f, "read the claim"),
            Self::Own => write!(f, "list the claim's internal Secrets"),
            Self::Internal(name) => write!(f, "read internal Secret {name}"),
            Self::Consumer(name) => write!(f, "read Secret {name}"),
            Self::CredentialsFor(target) => write!(f, "list the credentials for bucket {}", target.bucket),
            Self::Bucket(target) => write!(f, "look at bucket {}", target.bucket),
            Self::Contents(target) => write!(f, "look whether bucket {} is empty", target.bucket),
            Self::Versioning(target) => write!(f, "look at the versioning of bucket {}", target.bucket),
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
    /// At this distance, if nothing changes before.
    After(Duration),
    /// At this distance, if nothing changes before; what failed until now still counts towards the backoff.
    Wait(Duration),
    /// After a backoff that grows: something failed that may succeed when tried again. Says what.
    Retry(String),
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

/// Why a pass stops before everything is as it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Stop {
    /// Reason of `Ready=False`.
    pub reason: Reason,
    /// Message of the condition: stable, without request ids or times.
    pub message: String,
    /// Which condition besides `Ready` it belongs to.
    pub concerns: Concern,
    /// When to look again.
    pub then: Then,
    /// The name that the claim waits for.
    pub waits_for: Option<RecordName>,
}

/// Which condition besides `Ready` a stop belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concern {
    /// None.
    Ready,
    /// `BucketCreated`.
    Bucket,
    /// `CredentialsProvisioned`.
    Credentials,
}

impl Stop {
    /// Somebody has to change something; the claim is woken when they do.
    pub(super) fn refused(reason: Reason, concerns: Concern, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), concerns, then: Then::AwaitChange, waits_for: None }
    }

    /// Something failed that may succeed when tried again.
    pub(super) fn failed(concerns: Concern, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { then: Then::Retry(message.clone()), ..Self::refused(Reason::BackendError, concerns, message) }
    }

    /// A Secret that is deleted waits for these finalizers of others.
    pub(super) fn kept(secret: &str, finalizers: &str) -> Self {
        let message = format!(
            "can't delete Secret {secret}: it waits for its finalizers ({finalizers}), which are not the operator's"
        );
        Self::refused(Reason::BackendError, Concern::Ready, message)
    }

    /// Where two things stand in the way: one is told, what waits for somebody before what is tried again, else the first; but
    /// what either waits for is waited for.
    fn beside(self, other: Self) -> Self {
        let is_hidden = other.reason.stalls() && !self.reason.stalls();
        let (told, hidden) = if is_hidden { (other, self) } else { (self, other) };
        let then = if told.then == Then::AwaitChange { hidden.then } else { told.then };
        Self { then, waits_for: told.waits_for.or(hidden.waits_for), ..told }
    }

    /// Another claim holds the bucket.
    pub(super) fn held(record: RecordName, holder: &ClaimRef, bucket: &BucketName, own_namespace: &str) -> Self {
        // Tenants of one namespace don't learn who is in another.
        let whose = if holder.namespace == own_namespace {
            format!("claim {}", holder.name)
        } else {
            "a claim in another namespace".to_owned()
        };
        let message = format!(
            "bucket {bucket} is held by {whose}; give this claim another bucketName (in a new claim) or delete the other"
        );
        let stop = Self::refused(Reason::BucketNameConflict, Concern::Bucket, message);
        Self { waits_for: Some(record), ..stop }
    }
}

/// Why the walk through the steps halts.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Halt {
    /// There is something to do first.
    Do(Box<Step>),
    /// It can't go on; the status says why.
    Stop(Box<Stop>),
    /// There is nothing to do for this long; the status stays as it is.
    Wait(Duration),
    /// What the pass reads is old: it ends without a word, and is tried again after its backoff.
    Stale(&'static str),
}

impl Halt {
    /// The step that deletes a Secret of ours, unless that was done and somebody's finalizer keeps it.
    pub(super) fn delete(secret: &Stored) -> Self {
        match secret.kept_by() {
            Some(finalizers) => Stop::kept(secret.name(), &finalizers).into(),
            None => Act::Delete(secret.reference()).into(),
        }
    }
}

/// All that stands in the way, as one stop.
pub(super) fn together(stops: impl IntoIterator<Item = Option<Stop>>) -> Option<Stop> {
    stops.into_iter().flatten().reduce(Stop::beside)
}

/// What goes on although something stands in its way: `Ok` carries what that is.
pub(super) fn tolerate(outcome: Result<(), Halt>) -> Result<Option<Stop>, Halt> {
    match outcome {
        Ok(()) => Ok(None),
        Err(Halt::Stop(stop)) => Ok(Some(*stop)),
        Err(halt) => Err(halt),
    }
}

impl From<Look> for Halt {
    fn from(look: Look) -> Self {
        Self::Do(Box::new(Step::Look(look)))
    }
}

impl From<Act> for Halt {
    fn from(act: Act) -> Self {
        Self::Do(Box::new(Step::Act(act)))
    }
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Self {
        Self::Stop(Box::new(stop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_all_that_stands_in_the_way_the_worst_is_told_and_everything_is_waited_for() {
        let kept = Stop::kept("stowage-vc-1", "example.com/backup");
        let missing = Stop::refused(Reason::BucketMissing, Concern::Bucket, "it is gone");
        assert_eq!(together([]), None);
        assert_eq!(together([Some(kept.clone()), None, Some(missing.clone())]), Some(missing.clone()));
        assert_eq!(together([Some(missing.clone()), Some(kept.clone())]), Some(missing.clone()));
        let failed = Stop::failed(Concern::Ready, "it timed out");
        let told = together([Some(kept.clone()), Some(failed.clone())]);
        assert_eq!(told, Some(Stop { then: failed.then.clone(), ..kept.clone() }), "of two alike the first");
        let endpoint = crate::api::Endpoint::parse("http://s3.example").unwrap();
        let record = RecordName::of(&endpoint, &BucketName::parse("photos").unwrap());
        let holder = ClaimRef { namespace: "team-b".to_owned(), name: "films".to_owned() };
        let held = Stop::held(record.clone(), &holder, &BucketName::parse("photos").unwrap(), "team-a");
        assert_eq!(together([Some(kept), Some(held.clone())]), Some(held));
        let told = together([Some(missing.clone()), Some(Stop { waits_for: Some(record.clone()), ..failed.clone() })]);
        assert_eq!(told, Some(Stop { then: failed.then, waits_for: Some(record), ..missing }));
    }
}
