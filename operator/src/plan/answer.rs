//! The answers that a view learns from: what steps found out and did, and Secrets as they were
//! read.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;

use crate::api::wire;
use crate::api::{Backend, Claim, ClaimRef, ClaimUid, ObjectId, Versioning};

use super::step::SecretRef;

/// A Secret as it was read. Prints without its data.
#[derive(Clone, PartialEq)]
pub struct Stored(pub Arc<Secret>);

impl Stored {
    /// Name of the Secret.
    pub fn name(&self) -> &str {
        self.0.metadata.name.as_deref().unwrap_or_default()
    }

    /// The Secret, in the version that was read.
    pub fn reference(&self) -> SecretRef {
        SecretRef {
            namespace: self.0.metadata.namespace.clone().unwrap_or_default(),
            name: self.name().to_owned(),
            id: ObjectId::of(self.0.as_ref()),
        }
    }

    /// A label's value.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.0.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.0.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// The claim that labels and annotations name: enough to wake that claim or to ask for it, and no more. An annotation
    /// counts only as what its label was shortened from.
    pub fn claim(&self) -> Option<ClaimRef> {
        let whole = |key: &str| {
            let label = self.label(key);
            let fits = |long: &&str| label.is_none_or(|label| wire::label_value(long) == label);
            self.annotation(key).filter(fits).or(label).map(str::to_owned)
        };
        Some(ClaimRef { namespace: whole(wire::CLAIM_NAMESPACE)?, name: whole(wire::CLAIM_NAME)? })
    }

    /// The finalizers that keep it although it is deleted; none of them is the operator's.
    pub fn kept_by(&self) -> Option<String> {
        let metadata = &self.0.metadata;
        metadata.deletion_timestamp.as_ref().map(|_| metadata.finalizers.as_deref().unwrap_or_default().join(", "))
    }

    /// A data field as text.
    pub fn text(&self, key: &str) -> Option<&str> {
        std::str::from_utf8(&self.0.data.as_ref()?.get(key)?.0).ok()
    }

    /// Whether the controller owner reference has this UID: what makes a consumer Secret ours (spec §2).
    pub fn is_controlled_by(&self, uid: &ClaimUid) -> bool {
        let owners = self.0.metadata.owner_references.as_deref().unwrap_or_default();
        owners.iter().any(|owner| owner.controller == Some(true) && owner.uid == uid.as_str())
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.reference())
    }
}

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
    },
}

/// Who holds the bucket that this claim wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Holder {
    /// Nobody that we know of.
    Unknown,
    /// No record that we know of, but another claim has credentials for the bucket: perhaps somebody deleted its
    /// record.
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
    /// The store was not asked: no client for the backend could be made, or the store is given a rest.
    NoUpstream(String),
}

/// What a step found out or did.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// To [`Look::Backend`](super::Look::Backend).
    Backend(BackendSeen),
    /// To [`Look::Holder`](super::Look::Holder).
    Holder(Holder),
    /// The claim as it is stored now; `None` = gone.
    Claim(Option<Box<Claim>>),
    /// Internal Secrets.
    Secrets(Vec<Stored>),
    /// A Secret as it is stored now; `None` = gone, or never was.
    Secret(Option<Stored>),
    /// To [`Look::Bucket`](super::Look::Bucket).
    Bucket(BucketSeen),
    /// To [`Look::Contents`](super::Look::Contents): whether the bucket is empty.
    Empty(bool),
    /// To [`Look::Versioning`](super::Look::Versioning).
    Versioning(VersioningSeen),
    /// To [`Act::CreateBucket`](super::Act::CreateBucket).
    Created(CreateAnswer),
    /// To [`Act::Purge`](super::Act::Purge).
    Purged(Purged),
    /// To [`Act::DeleteBucket`](super::Act::DeleteBucket).
    Deleted(DeleteAnswer),
    /// A POST found the name taken.
    Exists,
    /// Done; there is nothing more to say.
    Done,
    /// Not done.
    Failed(Failure),
}
