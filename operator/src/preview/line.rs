//! What comes next about one object.

use std::fmt;

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::{AccessRef, ClaimRef};
use crate::plan::Act;

/// What comes next about one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The object.
    pub object: Object,
    /// What comes next.
    pub next: Next,
    /// What could not be found out here, and may be otherwise for the operator: a store that gives
    /// this process no answer.
    pub doubt: Option<String>,
}

/// An object that something comes next about.
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
    /// What is left of a claim that is gone.
    Left(ClaimRef),
    /// What is left of an access that is gone.
    LeftAccess(AccessRef),
}

/// What comes next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Nothing, before this time if one is given: something becomes due then.
    Nothing(Option<Timestamp>),
    /// Nothing, and nothing is said of it: it is not this operator's, or can't be read. Says which.
    LeftAlone(String),
    /// The operator does something.
    Act(Box<Deed>),
    /// It waits, at most until this time: it looks again then.
    Wait(String, Option<Timestamp>),
    /// It can't be told. Says why.
    Unknown(String),
}

/// What the operator does.
#[derive(Clone, Debug, PartialEq)]
pub struct Deed {
    /// What for, and why now.
    pub words: String,
    /// The step, as the operator logs it.
    pub step: String,
    /// The effect, of a claim.
    pub act: Option<Act>,
}

impl Object {
    /// Namespace, if it has one, and name.
    pub fn name(&self) -> (Option<&str>, &str) {
        match self {
            Self::Backend(name) => (None, name),
            Self::Claim(claim) | Self::Obc(claim) | Self::Left(claim) => (Some(&claim.namespace), &claim.name),
            Self::Access(access) | Self::LeftAccess(access) => (Some(&access.namespace), &access.name),
        }
    }

    /// What its kind is called in the API.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Backend(_) => "S3Backend",
            Self::Claim(_) | Self::Left(_) => "BucketClaim",
            Self::Access(_) | Self::LeftAccess(_) => "BucketAccess",
            Self::Obc(_) => "ObjectBucketClaim",
        }
    }
}

/// As the command line takes it.
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
    /// The word for it in a document.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Nothing(_) | Self::LeftAlone(_) => "nothing",
            Self::Act(_) => "act",
            Self::Wait(..) => "wait",
            Self::Unknown(_) => "unknown",
        }
    }

    /// The time from which it may be otherwise by itself.
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Nothing(until) | Self::Wait(_, until) => *until,
            Self::LeftAlone(_) | Self::Act(_) | Self::Unknown(_) => None,
        }
    }

    /// The step, as the operator logs it.
    pub fn step(&self) -> Option<&str> {
        match self {
            Self::Act(deed) => Some(&deed.step),
            Self::Nothing(_) | Self::LeftAlone(_) | Self::Wait(..) | Self::Unknown(_) => None,
        }
    }
}

/// In words.
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
    /// Its place in a document.
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
