//! What a pass learns from: each answer carries the question that it answers, so that none can be
//! taken for the answer to another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::api::{Backend, BucketName, BucketRecord, Claim, ClaimRef, CredentialFacts, Endpoint, Versioning};

use super::asking::{ConsentQuestion, ConsentSeen};
use super::patch::Change;
use super::secret::{SecretRef, Stored};
use super::step::{Look, Step};
use super::target::Target;

/// A backend, as the cache has it.
#[derive(Clone, Debug, PartialEq)]
pub enum BackendSeen {
    /// There is none of that name.
    Missing,
    /// Its spec can't be read. Says why.
    Invalid(String),
    /// There it is; whether the claim's namespace may use it.
    Present {
        /// The backend.
        backend: Arc<Backend>,
        /// The allow-list lets the claim's namespace in.
        allowed: bool,
        /// Its endpoint as other backends spell it.
        spellings: Vec<Endpoint>,
        /// Buckets that it shares, or another backend of its store, which are for accesses alone.
        shared: BTreeSet<BucketName>,
    },
}

/// Who holds the bucket that this claim wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Holder {
    /// Nobody that we know of.
    Unknown,
    /// No record that we know of, but another claim has credentials for the bucket: perhaps
    /// somebody deleted its record.
    Suspect,
    /// Another claim.
    Other(ClaimRef),
    /// The record can't be read. Says why.
    Damaged(String),
}

/// What a look at a bucket showed (spec §3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BucketSeen {
    /// There is none.
    Absent,
    /// There is one, with these tags; `None` = the store has no tagging.
    Present(Option<BTreeMap<String, String>>),
    /// There is one that we may not look at.
    Forbidden,
}

/// Whose account a bucket is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OwnerSeen {
    /// That of the admin credentials.
    Ours,
    /// Another one, or we may not know.
    Other,
    /// The store tells no owners.
    Untold,
}

/// What CreateBucket answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateAnswer {
    /// Plain success.
    Created,
    /// `BucketAlreadyOwnedByYou`
    AlreadyOwned,
    /// `BucketAlreadyExists`
    AlreadyExists,
}

/// What DeleteBucket answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteAnswer {
    /// Plain success.
    Deleted,
    /// `NoSuchBucket`
    Absent,
    /// `BucketNotEmpty`
    NotEmpty,
}

/// What became of a bucket's contents in one slice of its emptying.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purged {
    /// Versions, delete markers and unfinished uploads that are gone.
    pub deleted: u64,
    /// How it ended.
    pub end: PurgeEnd,
}

/// How a slice of emptying a bucket ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeEnd {
    /// The bucket was empty in the end.
    Empty,
    /// There is more to delete.
    More,
    /// The store refuses to delete what is left, with this code.
    Refused(String),
    /// A request failed.
    Failed(Failure),
}

/// What GetBucketVersioning answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersioningSeen {
    /// It was never set.
    Unset,
    /// It was set to this.
    Set(Versioning),
}

/// What came of a look at the bucket that the claim is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// This pass did not look.
    No,
    /// The store gave no usable answer, which says nothing about the bucket.
    Failed,
    /// It showed whether the bucket is there.
    Seen,
}

/// So many passes in a row have to fail before an object that stays tells of what the API server
/// did not do.
pub(super) const TOLD_AFTER: u32 = 3;

/// Why a step did not do what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The object changed since it was read: this pass's view is old.
    Conflict,
    /// The API server gave no usable answer; whether the step happened is unknown.
    Kubernetes(String),
    /// The API server refuses, and will refuse again.
    Refused(String),
    /// The namespace of what was to be written is going away, or gone.
    NamespaceTerminating,
    /// The store failed or gave no answer; whether the step happened is unknown.
    Upstream(String),
    /// The store refuses us. Trying again helps only when somebody changed something.
    UpstreamDenied(String),
    /// The store does not know this operation.
    Unsupported,
    /// This operator changes nothing: the step was not done.
    ReadOnly,
    /// The store was not asked: it was asked about this claim too often, and may be again after so
    /// long.
    Paced(Duration),
    /// The store was not asked: no client for the backend could be made, or the store is given a
    /// rest.
    NoUpstream(String),
}

/// What a step found out or did, together with what was asked or done.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// To [`Look::Backend`]: the backend of this name.
    Backend(String, BackendSeen),
    /// To [`Look::Holder`]: who holds this bucket.
    Holder(Target, Holder),
    /// To [`Look::PublicRival`]: the claim whose public access counts, if it is another.
    PublicRival(Target, Option<ClaimRef>),
    /// To [`Look::Claim`]: the claim as it is stored now; `None` = gone.
    Claim(Option<Box<Claim>>),
    /// To [`Look::Own`]: every internal Secret that carries the claim's UID.
    Own(Vec<Stored>),
    /// To [`Look::Internal`]: the Secret of this name; `None` = gone, or never was.
    Internal(String, Option<Stored>),
    /// To [`Look::Consumer`]: the Secret of this name; `None` = gone, or never was.
    Consumer(String, Option<Stored>),
    /// To [`Look::CredentialsFor`]: the credentials for this bucket, whoever's.
    CredentialsFor(Target, Vec<Stored>),
    /// To [`Look::Bucket`].
    Bucket(Target, BucketSeen),
    /// To [`Look::Owner`].
    Owner(Target, OwnerSeen),
    /// To [`Look::Contents`]: whether the bucket is empty.
    Contents(Target, bool),
    /// To [`Look::Versioning`].
    Versioning(Target, VersioningSeen),
    /// What a bucket is opened to accesses by.
    Consent(ConsentQuestion, Box<ConsentSeen>),
    /// The finalizer is on, and the claim is this.
    FinalizerAdded(Box<Claim>),
    /// The finalizer is off.
    FinalizerRemoved,
    /// The status is written, and the claim is this.
    StatusWritten(Box<Claim>),
    /// To the POST of a bucket record.
    RecordPosted(BucketRecord, Posted),
    /// To the POST of a credential.
    CredentialPosted(CredentialFacts, Posted),
    /// To the POST of the consumer Secret of this name.
    ConsumerPosted(String, Posted),
    /// To the POST of the anonymous binding.
    BindingPosted(Posted),
    /// A Secret is patched, and is this by now.
    Patched(Change, Stored),
    /// A Secret is deleted, or was gone; `Some` = somebody's finalizer keeps it, as it is by now.
    Deleted(SecretRef, Option<Stored>),
    /// To CreateBucket.
    BucketCreated(Target, CreateAnswer),
    /// To PutBucketTagging with these tags: done.
    BucketTagged(Target, BTreeMap<String, String>),
    /// To PutBucketVersioning: done.
    VersioningSet(Target, Versioning),
    /// A slice of emptying, of at most so many objects.
    BucketPurged(Target, u32, Purged),
    /// To DeleteBucket.
    BucketDeleted(Target, DeleteAnswer),
    /// The step was not done, or whether it was done is unknown.
    Failed(Step, Failure),
}

impl Answer {
    /// The question that this answers; `None` for effects, and for what failed.
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

/// What a POST of a Secret came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Posted {
    /// It is stored.
    Stored(Stored),
    /// The name is taken; by what, the answer does not say.
    NameTaken,
}
