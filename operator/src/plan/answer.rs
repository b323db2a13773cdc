//! Answers that a pass learns from. Each answer contains the query that it answers, so that it
//! can't be mistaken for the answer to another query.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::api::{Backend, BucketName, BucketRecord, Claim, ClaimRef, CredentialFacts, Endpoint, Versioning};

use super::asking::{ConsentQuestion, ConsentSeen};
use super::patch::Change;
use super::secret::{SecretRef, Stored};
use super::step::{Look, Step};
use super::target::Target;

/// A backend, as found in the cache.
#[derive(Clone, Debug, PartialEq)]
pub enum BackendSeen {
    /// No backend has that name.
    Missing,
    /// The spec of the backend is invalid, for this reason.
    Invalid(String),
    /// The backend exists.
    Present {
        /// The backend.
        backend: Arc<Backend>,
        /// True if the allow-list includes the claim's namespace.
        allowed: bool,
        /// Spellings of the endpoint in other backends.
        spellings: Vec<Endpoint>,
        /// Buckets that this backend, or another backend of its store, reserves for accesses.
        shared: BTreeSet<BucketName>,
    },
}

/// Holder of the bucket that this claim wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Holder {
    /// No known holder.
    Unknown,
    /// No known record, but another claim has credentials for the bucket. Its record may have been
    /// deleted by hand.
    Suspect,
    /// Another claim.
    Other(ClaimRef),
    /// The record can't be parsed, for this reason.
    Damaged(String),
}

/// Result of looking a bucket up (spec §3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BucketSeen {
    /// The bucket does not exist.
    Absent,
    /// The bucket exists, with these tags. `None` if the store does not support tagging.
    Present(Option<BTreeMap<String, String>>),
    /// The bucket exists, but access is denied.
    Forbidden,
}

/// Account that owns a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OwnerSeen {
    /// The account of the admin credentials.
    Ours,
    /// Another account, or the owner may not be read.
    Other,
    /// The store reports no owners.
    Untold,
}

/// Answer to CreateBucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateAnswer {
    /// Success.
    Created,
    /// `BucketAlreadyOwnedByYou`.
    AlreadyOwned,
    /// `BucketAlreadyExists`.
    AlreadyExists,
}

/// Answer to DeleteBucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteAnswer {
    /// Success.
    Deleted,
    /// `NoSuchBucket`.
    Absent,
    /// `BucketNotEmpty`.
    NotEmpty,
}

/// Result of one slice of emptying a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purged {
    /// Number of deleted versions, delete markers and unfinished uploads.
    pub deleted: u64,
    /// End of the slice.
    pub end: PurgeEnd,
}

/// End of a slice of emptying a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeEnd {
    /// The bucket is empty.
    Empty,
    /// More objects remain.
    More,
    /// The store refuses to delete the remaining objects, with this error code.
    Refused(String),
    /// A request failed.
    Failed(Failure),
}

/// Answer to GetBucketVersioning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersioningSeen {
    /// Versioning was never set.
    Unset,
    /// Versioning is set to this value.
    Set(Versioning),
}

/// Result of checking the bucket that the claim is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// This pass did not check the bucket.
    No,
    /// The store gave no usable answer. The state of the bucket is unknown.
    Failed,
    /// The store reported whether the bucket exists.
    Seen,
}

/// Number of consecutive failed passes after which the status of an object that is not being
/// deleted reports an API server failure.
pub(super) const TOLD_AFTER: u32 = 3;

/// Reason that a step failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The object has changed since it was read, so the view is outdated.
    Conflict,
    /// The API server gave no usable answer. The outcome of the step is unknown.
    Kubernetes(String),
    /// The API server refuses the request permanently.
    Refused(String),
    /// The namespace of the object to write is terminating or gone.
    NamespaceTerminating,
    /// The store failed or did not answer. The outcome of the step is unknown.
    Upstream(String),
    /// The store denies the request. A retry helps only after somebody changed something.
    UpstreamDenied(String),
    /// The store does not support this operation.
    Unsupported,
    /// This operator is read-only and did not carry out the step.
    ReadOnly,
    /// The store was not called: this claim has used up its request rate. It may call again after
    /// this time.
    Paced(Duration),
    /// The store was not called: the backend has no client, or its circuit is open.
    NoUpstream(String),
}

/// Result of a step, together with the step.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Answer to [`Look::Backend`], with the name of the backend.
    Backend(String, BackendSeen),
    /// Answer to [`Look::Holder`].
    Holder(Target, Holder),
    /// Answer to [`Look::PublicRival`]: the other claim whose public access takes precedence, if
    /// there is one.
    PublicRival(Target, Option<ClaimRef>),
    /// Answer to [`Look::Claim`]: the claim as stored now, or `None` if it is gone.
    Claim(Option<Box<Claim>>),
    /// Answer to [`Look::Own`]: every internal Secret with the claim's UID.
    Own(Vec<Stored>),
    /// Answer to [`Look::Internal`]: the Secret with this name, or `None` if it does not exist.
    Internal(String, Option<Stored>),
    /// Answer to [`Look::Consumer`]: the Secret with this name, or `None` if it does not exist.
    Consumer(String, Option<Stored>),
    /// Answer to [`Look::CredentialsFor`]: the credentials for this bucket, of all claims.
    CredentialsFor(Target, Vec<Stored>),
    /// Answer to [`Look::Bucket`].
    Bucket(Target, BucketSeen),
    /// Answer to [`Look::Owner`].
    Owner(Target, OwnerSeen),
    /// Answer to [`Look::Contents`]: true if the bucket is empty.
    Contents(Target, bool),
    /// Answer to [`Look::Versioning`].
    Versioning(Target, VersioningSeen),
    /// Answer to [`Look::Consent`].
    Consent(ConsentQuestion, Box<ConsentSeen>),
    /// The finalizer is added. Contains the updated claim.
    FinalizerAdded(Box<Claim>),
    /// The finalizer is removed.
    FinalizerRemoved,
    /// The status is written. Contains the updated claim.
    StatusWritten(Box<Claim>),
    /// Answer to the POST of a bucket record.
    RecordPosted(BucketRecord, Posted),
    /// Answer to the POST of a credential.
    CredentialPosted(CredentialFacts, Posted),
    /// Answer to the POST of the consumer Secret of this name.
    ConsumerPosted(String, Posted),
    /// Answer to the POST of the anonymous binding.
    BindingPosted(Posted),
    /// A Secret is patched. Contains the updated Secret.
    Patched(Change, Stored),
    /// A Secret is deleted. `Some` if a finalizer of another party keeps it, with its current
    /// state.
    Deleted(SecretRef, Option<Stored>),
    /// Answer to CreateBucket.
    BucketCreated(Target, CreateAnswer),
    /// Success of PutBucketTagging with these tags.
    BucketTagged(Target, BTreeMap<String, String>),
    /// Success of PutBucketVersioning.
    VersioningSet(Target, Versioning),
    /// A slice of emptying that deletes at most this number of objects.
    BucketPurged(Target, u32, Purged),
    /// Answer to DeleteBucket.
    BucketDeleted(Target, DeleteAnswer),
    /// The step failed, or its outcome is unknown.
    Failed(Step, Failure),
}

impl Answer {
    /// Returns the query that this answers, or `None` for effects and their failures.
    pub(super) fn question(&self) -> Option<Look> {
        match self {
            Self::Backend(name, _) => Some(Look::Backend(name.clone())),
            Self::Holder(at, _) => Some(Look::Holder(at.clone())),
            Self::PublicRival(at, _) => Some(Look::PublicRival(at.clone())),
            Self::Claim(_) => Some(Look::Claim),
            Self::Own(_) => Some(Look::Own),
            Self::Internal(name, _) => Some(Look::Internal(name.clone())),
            Self::Consumer(name, _) => Some(Look::Consumer(name.clone())),
            Self::CredentialsFor(at, _) => Some(Look::CredentialsFor(at.clone())),
            Self::Bucket(at, _) => Some(Look::Bucket(at.clone())),
            Self::Owner(at, _) => Some(Look::Owner(at.clone())),
            Self::Contents(at, _) => Some(Look::Contents(at.clone())),
            Self::Versioning(at, _) => Some(Look::Versioning(at.clone())),
            Self::Consent(question, _) => Some(Look::Consent(question.clone())),
            Self::Failed(Step::Look(look), _) => Some(look.clone()),
            Self::FinalizerAdded(_)
            | Self::FinalizerRemoved
            | Self::StatusWritten(_)
            | Self::RecordPosted(..)
            | Self::CredentialPosted(..)
            | Self::ConsumerPosted(..)
            | Self::BindingPosted(_)
            | Self::Patched(..)
            | Self::Deleted(..)
            | Self::BucketCreated(..)
            | Self::BucketTagged(..)
            | Self::VersioningSet(..)
            | Self::BucketPurged(..)
            | Self::BucketDeleted(..)
            | Self::Failed(..) => None,
        }
    }
}

/// Result of a POST of a Secret.
#[derive(Clone, Debug, PartialEq)]
pub enum Posted {
    /// The Secret is stored.
    Stored(Stored),
    /// The name is in use. The answer does not show the existing Secret.
    NameTaken,
}
