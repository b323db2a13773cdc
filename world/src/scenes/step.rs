//! Steps of scenes, as plain data.

use std::convert::Infallible;
use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::target::Target;
use super::told;
use crate::history::Facts;

/// A condition that must become true.
#[derive(Clone, Copy)]
pub struct Goal {
    /// Description, such as `the claim is bound`.
    pub what: &'static str,
    /// Returns true if the condition is met.
    pub holds: fn(&Facts) -> bool,
}

impl Goal {
    /// Creates a goal from a description and a predicate.
    pub const fn new(what: &'static str, holds: fn(&Facts) -> bool) -> Self {
        Self { what, holds }
    }
}

impl fmt::Debug for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }
}

/// An action or a wait. `More` has the steps that only one stage can perform.
#[derive(Clone, Debug)]
pub enum Step<More = Infallible> {
    /// A user applies manifests.
    Apply(String),
    /// A user merges a patch into an object.
    Patch(Target, Value),
    /// A user deletes an object.
    Delete(Target),
    /// An action at the store.
    Store(StoreStep),
    /// A tenant begins to use the consumer Secret of a claim, if the stage has a gateway. The
    /// fields are namespace and name.
    Tenant(&'static str, &'static str),
    /// Faults of the plan can occur from here on.
    Begin,
    /// Waits until the goal is reached.
    Until(Goal),
    /// Waits this long; without faults the goal is reached in that time. A stage in real time
    /// continues as soon as it is.
    Settle(Duration, Goal),
    /// Waits this long.
    Pass(Duration),
    /// A step that only one stage can perform.
    More(More),
}

/// An action at the store that bypasses the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreStep {
    /// Creates a bucket for an account.
    PutBucket {
        /// The account.
        account: &'static str,
        /// The bucket.
        bucket: &'static str,
    },
    /// Grants another account access to a bucket, as its owner can with a bucket policy.
    LetIn {
        /// The bucket.
        bucket: &'static str,
        /// The account.
        account: &'static str,
    },
    /// Writes an object.
    PutObject {
        /// The bucket.
        bucket: &'static str,
        /// The key.
        key: &'static str,
    },
    /// Enables versioning.
    EnableVersioning {
        /// The bucket.
        bucket: &'static str,
    },
    /// Begins a multipart upload and does not complete it.
    StartUpload {
        /// The bucket.
        bucket: &'static str,
        /// The key.
        key: &'static str,
    },
    /// Puts a legal hold on an object.
    Hold {
        /// The bucket.
        bucket: &'static str,
        /// The key.
        key: &'static str,
    },
    /// Removes the legal hold.
    Release {
        /// The bucket.
        bucket: &'static str,
        /// The key.
        key: &'static str,
    },
    /// Deletes a bucket with all its objects.
    RemoveBucket {
        /// The bucket.
        bucket: &'static str,
    },
    /// Copies tags and latest objects of a bucket from the usual store to the store at this
    /// endpoint.
    CopyBucket {
        /// The bucket.
        bucket: &'static str,
        /// The other store's endpoint.
        endpoint: &'static str,
    },
    /// Creates an empty bucket without tags in the store at this endpoint.
    PutBucketAt {
        /// The account that owns it.
        account: &'static str,
        /// The bucket.
        bucket: &'static str,
        /// The other store's endpoint.
        endpoint: &'static str,
    },
    /// Adds another pair of keys to an account.
    AddKey {
        /// The account.
        account: &'static str,
        /// The access key id.
        id: &'static str,
        /// The secret key.
        key: &'static str,
    },
    /// Revokes a key.
    RevokeKey {
        /// The access key id.
        id: &'static str,
    },
}

impl fmt::Display for StoreStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PutBucket { account, bucket } => write!(f, "{account} makes bucket {bucket}"),
            Self::LetIn { bucket, account } => write!(f, "{bucket} lets {account} in"),
            Self::PutObject { bucket, key } => write!(f, "somebody writes {bucket}/{key}"),
            Self::EnableVersioning { bucket } => write!(f, "somebody turns versioning of {bucket} on"),
            Self::StartUpload { bucket, key } => write!(f, "somebody begins an upload of {bucket}/{key}"),
            Self::Hold { bucket, key } => write!(f, "somebody puts a legal hold on {bucket}/{key}"),
            Self::Release { bucket, key } => write!(f, "somebody takes the legal hold off {bucket}/{key}"),
            Self::RemoveBucket { bucket } => write!(f, "somebody deletes bucket {bucket} and all in it"),
            Self::CopyBucket { bucket, endpoint } => write!(f, "somebody copies bucket {bucket} to {endpoint}"),
            Self::PutBucketAt { account, bucket, endpoint } => {
                write!(f, "{account} makes bucket {bucket} at {endpoint}")
            }
            Self::AddKey { account, id, .. } => write!(f, "{account} is given the key {id}"),
            Self::RevokeKey { id } => write!(f, "the key {id} is withdrawn"),
        }
    }
}

impl<More> From<More> for Step<More> {
    fn from(more: More) -> Self {
        Self::More(more)
    }
}

impl<More: fmt::Display> fmt::Display for Step<More> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Apply(yaml) => f.write_str(&told::applied(yaml)),
            Self::Patch(target, patch) => f.write_str(&told::patched(*target, patch)),
            Self::Delete(target) => write!(f, "a user deletes {target}"),
            Self::Store(step) => step.fmt(f),
            Self::Tenant(namespace, name) => write!(f, "a tenant of {namespace}/{name} begins to work"),
            Self::Begin => f.write_str("from here on faults happen"),
            Self::Until(goal) => write!(f, "until {}", goal.what),
            Self::Settle(time, goal) => write!(f, "within {} s {}", time.as_secs(), goal.what),
            Self::Pass(time) => write!(f, "{} s pass", time.as_secs()),
            Self::More(step) => step.fmt(f),
        }
    }
}
