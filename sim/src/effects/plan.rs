//! A plan: which fault at which effect. `seed + plan` replays a run exactly.
//!
//! As text, pairs of effect and fault joined by `; `:
//! `s3:CreateBucket@1 lost-answer; kube:patch bucketclaims/status@2 conflict; #17 crash(after-effect)`.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use super::call::{Call, CallKind, KubeVerb, S3Operation};
use super::fault::Fault;
use super::parse;

/// Faults to inject, in the order written. Where several entries meet one effect, the first that can apply to it does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The pairs of effect and fault.
    pub entries: Vec<Entry>,
}

/// One fault at one effect, or at each effect of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where.
    pub effect: EffectPattern,
    /// What.
    pub fault: Fault,
}

/// Which effect is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EffectPattern {
    /// `#17`: by its number in the run, counted from 1.
    Number(NonZeroU64),
    /// `kube:patch bucketclaims/status@2`: by what it is.
    Call {
        /// What the call has to be.
        call: CallPattern,
        /// Which one of them, counted from 1 over the whole run; every one if absent.
        occurrence: Option<NonZeroU64>,
    },
}

/// What a call has to be to be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallPattern {
    /// `kube:<verb> <resource>[/<subresource>]`, in any namespace and of any name.
    Kube {
        /// The verb.
        verb: KubeVerb,
        /// Plural of the resource.
        resource: String,
        /// The subresource; absent means the resource itself, not any of its subresources.
        subresource: Option<String>,
    },
    /// `s3:<Operation>`, on any bucket.
    S3(S3Operation),
}

impl CallPattern {
    /// Whether this call is meant.
    pub fn matches(&self, call: &Call) -> bool {
        match (self, call) {
            (Self::Kube { verb, resource, subresource }, Call::Kube(call)) => {
                *verb == call.verb && *resource == call.resource && *subresource == call.subresource
            }
            (Self::S3(operation), Call::S3(call)) => *operation == call.operation,
            (Self::Kube { .. }, Call::S3(_)) | (Self::S3(_), Call::Kube(_)) => false,
        }
    }

    /// The kind of all calls that are meant.
    pub fn kind(&self) -> CallKind {
        match self {
            Self::Kube { verb, .. } => CallKind::Kube(*verb),
            Self::S3(operation) => CallKind::S3(*operation),
        }
    }
}

impl Plan {
    /// A plan of one fault.
    pub fn single(effect: EffectPattern, fault: Fault) -> Self {
        Self { entries: vec![Entry { effect, fault }] }
    }

    /// Whether nothing is planned.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, entry) in self.entries.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            entry.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.effect, self.fault)
    }
}

impl fmt::Display for EffectPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "#{number}"),
            Self::Call { call, occurrence } => {
                call.fmt(f)?;
                match occurrence {
                    Some(k) => write!(f, "@{k}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl fmt::Display for CallPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kube { verb, resource, subresource } => {
                write!(f, "kube:{verb} {resource}")?;
                match subresource {
                    Some(subresource) => write!(f, "/{subresource}"),
                    None => Ok(()),
                }
            }
            Self::S3(operation) => write!(f, "s3:{operation}"),
        }
    }
}

impl FromStr for Plan {
    type Err = PlanError;

    /// Reads the text form. Empty text is the empty plan; spaces may be many; a last `;` is allowed.
    fn from_str(text: &str) -> Result<Self, PlanError> {
        parse::plan(text)
    }
}

/// Why a text is not a plan, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("plan, character {column}: {problem}; {allowed}")]
pub struct PlanError {
    /// Where the offending word begins, in characters counted from 1.
    pub column: usize,
    /// What is wrong, with the word in question.
    pub problem: String,
    /// What would be right there.
    pub allowed: String,
}
