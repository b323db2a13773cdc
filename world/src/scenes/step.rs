//! The steps of which scenes are made, as plain data.

use std::convert::Infallible;
use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::target::Target;
use super::told;
use crate::history::Facts;

/// Something that is to come to hold.
#[derive(Clone, Copy)]
pub struct Goal {
    /// In words: `the claim is bound`.
    pub what: &'static str,
    /// Tells whether it holds.
    pub holds: fn(&Facts) -> bool,
}

impl Goal {
    /// A goal in words and as a question.
    pub const fn new(what: &'static str, holds: fn(&Facts) -> bool) -> Self {
        Self { what, holds }
    }
}

impl fmt::Debug for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }
}

/// One thing that somebody does, or waits for; `More` is what one stage alone can do.
#[derive(Clone, Debug)]
pub enum Step<More = Infallible> {
    /// A user applies manifests.
    Apply(String),
    /// A user merges a patch into an object.
    Patch(Target, Value),
    /// A user deletes an object.
    Delete(Target),
    /// Somebody does something at the store.
    Store(StoreStep),
    /// A tenant begins to work with the consumer Secret of a claim, where there is a gateway to
    /// work at: namespace and name.
    Tenant(&'static str, &'static str),
    /// From here on the plan's faults meet calls.
    Begin,
    /// Nothing is done until this holds.
    Until(Goal),
    /// Nothing is done for this long, in which this comes to hold if nothing disturbs it. A stage
    /// in real time goes on as soon as it does.
    Settle(Duration, Goal),
    /// Nothing is done for this long.
    Pass(Duration),
    /// Something that only one stage can do.
    More(More),
}

/// Something that somebody does at the store, past the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreStep {
    /// Makes a bucket for an account.
    PutBucket {
        /// The account.
        account: &'static str,
        /// The bucket.
        bucket: &'static str,
    },
    /// Has a bucket let another account in, as its owner may by a policy.
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
    /// Turns versioning on.
    EnableVersioning {
        /// The bucket.
        bucket: &'static str,
    },
    /// Begins an upload in parts and leaves it.
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
    /// Takes it off again.
    Release {
        /// The bucket.
        bucket: &'static str,
        /// The key.
        key: &'static str,
    },
    /// Deletes a bucket with all that is in it.
    RemoveBucket {
        /// The bucket.
        bucket: &'static str,
    },
    /// Makes a bucket in the store at this endpoint what it is in the usual one: tags and newest
    /// objects.
    CopyBucket {
        /// The bucket.
        bucket: &'static str,
        /// The other store's endpoint.
        endpoint: &'static str,
    },
    /// Makes a bucket in the store at this endpoint, with nothing in it and no tags.
    PutBucketAt {
        /// The account that it is of.
        account: &'static str,
        /// The bucket.
        bucket: &'static str,
        /// The other store's endpoint.
        endpoint: &'static str,
    },
    /// Gives an account another pair of keys.
    AddKey {
        /// The account.
        account: &'static str,
        /// The access key id.
        id: &'static str,
        /// The secret key.
        key: &'static str,
    },
    /// Withdraws a key.
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
