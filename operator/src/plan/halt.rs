//! How a walk through the steps of a claim ends.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use super::cause::SecretCause;
use super::secret::Stored;
use super::step::{Act, Look, Rest, Step, Then};
use super::stop::Stop;

/// Everything is as it should be, or nothing more can be done about it now.
#[derive(Default)]
pub(super) struct Outcome {
    /// What keeps the claim from being Ready all the same.
    pub(super) impaired: Option<Stop>,
    /// When time alone will make something due.
    pub(super) wake: Option<Timestamp>,
}

/// Why the walk through the steps halts.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Halt {
    /// There is something to do first.
    Do(Box<Step>),
    /// It can't go on; the status says why.
    Stop(Box<Stop>),
    /// There is nothing to do for this long; the status stays as it is.
    Wait(Duration),
    /// What the pass reads is old: it ends without a word, and is tried again after its backoff.
    Stale(&'static str),
}

impl Halt {
    /// The claim is not this operator's to serve: nothing is done, and nothing is said.
    pub(super) fn leave_alone() -> Self {
        Self::Do(Box::new(Step::Rest(Rest { then: Then::AwaitChange, events: Vec::new(), waits_for: None })))
    }

    /// The step that deletes a Secret of ours, unless that was done and somebody's finalizer keeps
    /// it.
    pub(super) fn delete(secret: &Stored) -> Self {
        match secret.kept_by() {
            Some(finalizers) => kept(secret, finalizers).into(),
            None => Act::Delete(secret.reference()).into(),
        }
    }
}

/// A Secret that is deleted waits for these finalizers of others.
pub(super) fn kept(secret: &Stored, finalizers: String) -> Stop {
    Stop::new(SecretCause::Kept { secret: secret.name().to_owned(), finalizers })
}

/// What goes on although something stands in its way: `Ok` carries what that is.
pub(super) fn tolerate(outcome: Result<(), Halt>) -> Result<Option<Stop>, Halt> {
    match outcome {
        Ok(()) => Ok(None),
        Err(Halt::Stop(stop)) => Ok(Some(*stop)),
        Err(halt) => Err(halt),
    }
}

impl From<Look> for Halt {
    fn from(look: Look) -> Self {
        Self::Do(Box::new(Step::Look(look)))
    }
}

impl From<Act> for Halt {
    fn from(act: Act) -> Self {
        Self::Do(Box::new(Step::Act(act)))
    }
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Self {
        Self::Stop(Box::new(stop))
    }
}
