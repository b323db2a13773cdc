//! Outgoing calls: a Kubernetes verb on a resource, or an S3 operation on a bucket.
//!
//! They are parsed from method, URI and headers only. The body is never read, so this works for any
//! body type and costs nothing.

use std::fmt;

pub use super::kube_call::{KubeCall, KubeVerb};
pub use super::s3_call::{S3Call, S3Operation};
use super::words;

/// One outgoing call, named like its API names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// A request to the Kubernetes API.
    Kube(KubeCall),
    /// A request to an S3 store.
    S3(S3Call),
}

/// Part of a call that decides if a fault makes sense for it, and that patterns also name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// A Kubernetes call with this verb.
    Kube(KubeVerb),
    /// This S3 operation.
    S3(S3Operation),
}

words! {
    /// Moment in a call at which the process crashes.
    CrashPoint {
        /// Before the request reaches the server.
        Before = "before",
        /// After the request is carried out, before the answer is received.
        AfterEffect = "after-effect",
        /// After the answer is received, before the next call of this process is carried out.
        AfterAnswer = "after-answer",
    }
}

impl Call {
    /// Returns the verb or operation of the call.
    pub fn kind(&self) -> CallKind {
        match self {
            Self::Kube(call) => CallKind::Kube(call.verb),
            Self::S3(call) => CallKind::S3(call.operation),
        }
    }
}

impl Call {
    /// Parses the text form. It lacks the API group, which becomes empty, and the name of an Event,
    /// which stays masked.
    pub fn told(text: &str) -> Option<Self> {
        match text.split_once(':')? {
            ("kube", call) => KubeCall::told(call).map(Self::Kube),
            ("s3", call) => Some(Self::S3(S3Call::told(call))),
            _ => None,
        }
    }
}

impl fmt::Display for Call {
    /// Formats `kube:patch bucketclaims/status team-a/photos` or `s3:PutObject photos/a.txt`. Names
    /// that contain wall-clock time are masked.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kube(call) => call.fmt(f),
            Self::S3(call) => call.fmt(f),
        }
    }
}
