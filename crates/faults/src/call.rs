//! What a call is: a Kubernetes verb on a resource or an S3 operation on a bucket.
//!
//! Read from method, URI and headers alone, never from a body, so that it works for any body type
//! and costs nothing.

use std::fmt;

pub use super::kube_call::{KubeCall, KubeVerb};
pub use super::s3_call::{S3Call, S3Operation};
use super::words;

/// One outgoing call, as its API names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// A request to the Kubernetes API.
    Kube(KubeCall),
    /// A request to an S3 store.
    S3(S3Call),
}

/// What decides whether a fault makes sense for a call: the part that a pattern names too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// A Kubernetes call with this verb.
    Kube(KubeVerb),
    /// This S3 operation.
    S3(S3Operation),
}

words! {
    /// Where in a call the process dies.
    CrashPoint {
        /// Before the request reaches the world.
        Before = "before",
        /// After it is carried out, before the answer is back.
        AfterEffect = "after-effect",
        /// After the answer is back, before the next call of this life is carried out.
        AfterAnswer = "after-answer",
    }
}

impl Call {
    /// Verb or operation of the call.
    pub fn kind(&self) -> CallKind {
        match self {
            Self::Kube(call) => CallKind::Kube(call.verb),
            Self::S3(call) => CallKind::S3(call.operation),
        }
    }
}

impl Call {
    /// Reads the text form back. What it leaves out, the API group and an Event's name, is empty or
    /// masked.
    pub fn told(text: &str) -> Option<Self> {
        match text.split_once(':')? {
            ("kube", call) => KubeCall::told(call).map(Self::Kube),
            ("s3", call) => Some(Self::S3(S3Call::told(call))),
            _ => None,
        }
    }
}

impl fmt::Display for Call {
    /// `kube:patch bucketclaims/status team-a/photos` or `s3:PutObject photos/a.txt`: names that
    /// hold wall-clock time masked.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kube(call) => call.fmt(f),
            Self::S3(call) => call.fmt(f),
        }
    }
}
