//! Lines of a preview.

use std::fmt;

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::{AccessRef, ClaimRef};
use crate::plan::Act;

/// One line of a preview: an object and its next step.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The object.
    pub object: Object,
    /// The next step.
    pub next: Next,
    /// A fact that could not be found out here and may differ for the operator, for example because
    /// a store doesn't answer this process.
    pub doubt: Option<String>,
}

/// A previewed object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    /// An S3Backend.
    Backend(String),
    /// A claim.
    Claim(ClaimRef),
    /// An access.
    Access(AccessRef),
    /// An ObjectBucketClaim.
    Obc(ClaimRef),
    /// The remaining Secrets of a deleted claim.
    Left(ClaimRef),
    /// The remaining Secrets of a deleted access.
    LeftAccess(AccessRef),
}

/// The next step.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Nothing is due before this time, if one is given.
    Nothing(Option<Timestamp>),
    /// Nothing, because the object belongs to another operator or can't be decoded; the text says
    /// which.
    LeftAlone(String),
    /// The operator does something.
    Act(Box<Deed>),
    /// The object waits, and is checked again at this time at the latest.
    Wait(String, Option<Timestamp>),
    /// The next step is unknown, for this reason.
    Unknown(String),
}

/// An effect of the operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Deed {
    /// Purpose of the effect, and why it is due.
    pub words: String,
    /// The step, as the operator logs it.
    pub step: String,
    /// The effect, for a claim.
    pub act: Option<Act>,
}

impl Object {
    /// Returns the namespace, if there is one, and the name.
    pub fn name(&self) -> (Option<&str>, &str) {
        match self {
            Self::Backend(name) => (None, name),
            Self::Claim(claim) | Self::Obc(claim) | Self::Left(claim) => (Some(&claim.namespace), &claim.name),
            Self::Access(access) | Self::LeftAccess(access) => (Some(&access.namespace), &access.name),
        }
    }

    /// Returns the kind in the API.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Backend(_) => "S3Backend",
            Self::Claim(_) | Self::Left(_) => "BucketClaim",
            Self::Access(_) | Self::LeftAccess(_) => "BucketAccess",
            Self::Obc(_) => "ObjectBucketClaim",
        }
    }
}

/// Formats the name as the command line accepts it.
impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Backend(name) => write!(f, "s3backend/{name}"),
            Self::Claim(claim) => claim.fmt(f),
            Self::Access(access) => write!(f, "bucketaccess/{access}"),
            Self::Obc(claim) => write!(f, "obc/{claim}"),
            Self::Left(claim) => write!(f, "{claim} (gone)"),
            Self::LeftAccess(access) => write!(f, "bucketaccess/{access} (gone)"),
        }
    }
}

impl Next {
    /// Returns the value in JSON output.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Nothing(_) | Self::LeftAlone(_) => "nothing",
            Self::Act(_) => "act",
            Self::Wait(..) => "wait",
            Self::Unknown(_) => "unknown",
        }
    }

    /// Returns the time at which the step may change without any other change.
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Nothing(until) | Self::Wait(_, until) => *until,
            Self::LeftAlone(_) | Self::Act(_) | Self::Unknown(_) => None,
        }
    }

    /// Returns the step, as the operator logs it.
    pub fn step(&self) -> Option<&str> {
        match self {
            Self::Act(deed) => Some(&deed.step),
            Self::Nothing(_) | Self::LeftAlone(_) | Self::Wait(..) | Self::Unknown(_) => None,
        }
    }
}

/// Formats the step as text for people.
impl fmt::Display for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing(None) => write!(f, "nothing to do"),
            Self::Nothing(Some(until)) => write!(f, "nothing to do before {until}"),
            Self::LeftAlone(why) => write!(f, "nothing to do: {why}"),
            Self::Act(deed) => f.write_str(&deed.words),
            Self::Wait(why, None) => write!(f, "wait: {why}"),
            Self::Wait(why, Some(until)) => write!(f, "wait: {why}; looks again at {until}"),
            Self::Unknown(why) => write!(f, "can't tell: {why}"),
        }
    }
}

impl Line {
    /// Returns the line in JSON output.
    pub(super) fn json(&self) -> Value {
        let (namespace, name) = self.object.name();
        let mut line = json!({
            "kind": self.object.kind(),
            "name": name,
            "next": self.next.word(),
            "words": self.next.to_string(),
            "step": self.next.step(),
            "until": self.next.until().map(|until| until.to_string()),
            "doubt": self.doubt,
        });
        if let Some(namespace) = namespace {
            line["namespace"] = json!(namespace);
        }
        line
    }
}
