//! Results of a walk through the steps of a reconciliation, for every kind of object.
//!
//! A walk checks one condition after another against what is known. `Ok` means that the condition
//! is met and the walk continues; `Err` halts it. Most halts are not failures: [`Halt::Step`] names
//! the next step, and the walk starts over once that step is done.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use super::answer::Failure;
use super::step::Then;

/// End of a complete walk: the object is as it should be, or nothing more can be done now.
pub(super) struct Outcome<Stop> {
    /// Reason that the object is not Ready even though the walk is complete.
    pub(super) impaired: Option<Stop>,
    /// Time at which something becomes due even if nothing changes.
    pub(super) wake: Option<Timestamp>,
}

impl<Stop> Default for Outcome<Stop> {
    fn default() -> Self {
        Self { impaired: None, wake: None }
    }
}

/// Reason that a walk halts.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Halt<Step, Stop> {
    /// A step must be carried out first. This is the success of a walk: it found the next step.
    Step(Box<Step>),
    /// The walk can't continue. The status says why.
    Stop(Box<Stop>),
    /// Nothing to do for this long. The status stays as it is.
    Wait(Duration),
    /// The pass has read outdated data. It ends without a status write and is retried after its
    /// backoff.
    Stale(&'static str),
    /// Another operator serves the object. Nothing is changed and nothing is reported.
    LeaveAlone,
}

impl<Step, Stop> Halt<Step, Stop> {
    /// Halts with the next step.
    pub(super) fn step(step: impl Into<Step>) -> Self {
        Self::Step(Box::new(step.into()))
    }

    /// Halts with a reason that the status reports.
    pub(super) fn stop(stop: impl Into<Stop>) -> Self {
        Self::Stop(Box::new(stop.into()))
    }
}

/// Continues after a stop: returns it as `Ok(Some(_))`, and any other halt as an error.
pub(super) fn tolerate<Step, Stop>(outcome: Result<(), Halt<Step, Stop>>) -> Result<Option<Stop>, Halt<Step, Stop>> {
    match outcome {
        Ok(()) => Ok(None),
        Err(Halt::Stop(stop)) => Ok(Some(*stop)),
        Err(halt) => Err(halt),
    }
}

/// Reason that a pass is over, except for its status write.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Trouble<Step> {
    /// The pass has used outdated data, or its answers contradict each other. Another pass starts.
    Stale,
    /// The last step failed.
    Failed(Box<Step>, Failure),
}

impl<Step> Trouble<Step> {
    /// Decides how the pass ends: without a status write, or with the stop that `after_failure`
    /// makes of a failed step.
    pub(super) fn end<Stop>(
        &self,
        after_failure: impl FnOnce(&Step, &Failure) -> Result<Then, Box<Stop>>,
    ) -> Result<Then, Box<Stop>> {
        match self {
            Self::Stale => Ok(Then::retry("what was read is not what there is")),
            Self::Failed(step, failure) => after_failure(step, failure),
        }
    }
}

/// Decides the end of a pass whose last step failed.
///
/// `tell` returns the stop that the status reports, if this kind of object reports the failure.
/// Without one, the result says when to retry.
pub(super) fn after_failure<Stop>(
    failure: &Failure,
    is_status_write: bool,
    tell: impl FnOnce() -> Option<Stop>,
) -> Result<Then, Box<Stop>> {
    let then = match failure {
        // The log already has the step that was not carried out.
        Failure::ReadOnly => return Ok(Then::AwaitChange),
        Failure::Paced(wait) => return Ok(Then::Wait(*wait)),
        Failure::Conflict => return Ok(Then::retry("what was read is old")),
        Failure::Refused(_) if is_status_write => return Ok(Then::AwaitChange),
        // Expected: the deletion of the namespace deletes the object next (spec §3.4).
        Failure::NamespaceTerminating => Then::AwaitChange,
        Failure::Kubernetes(why)
        | Failure::Refused(why)
        | Failure::Upstream(why)
        | Failure::NoUpstream(why)
        | Failure::UpstreamDenied(why) => Then::retry(why),
        Failure::Unsupported => Then::retry("that is not supported"),
    };
    tell().map_or(Ok(then), |stop| Err(Box::new(stop)))
}

/// Conclusion about a pass from what it knows.
pub(super) enum Judgement<Step, Stop> {
    /// A step must be carried out before the status can be reported.
    Step(Box<Step>),
    /// The pass ends without a status write.
    Rest(Then),
    /// The pass ends with a status: the reason that the object is not Ready, if there is one, and
    /// the time at which something becomes due.
    Conclude(Option<Box<Stop>>, Option<Timestamp>),
}

impl<Step, Stop> Judgement<Step, Stop> {
    /// Returns the judgement that follows from a walk. `look_again` returns the time at which an
    /// object with this stop is reconciled even if nothing changes.
    pub(super) fn of(
        walk: Result<Outcome<Stop>, Halt<Step, Stop>>,
        look_again: impl FnOnce(&Stop) -> Option<Timestamp>,
    ) -> Self {
        match walk {
            Ok(outcome) => Self::Conclude(outcome.impaired.map(Box::new), outcome.wake),
            Err(Halt::Step(step)) => Self::Step(step),
            Err(Halt::Stop(stop)) => {
                let wake = look_again(&stop);
                Self::Conclude(Some(stop), wake)
            }
            Err(Halt::Wait(time)) => Self::Rest(Then::Wait(time)),
            Err(Halt::Stale(why)) => Self::Rest(Then::retry(why)),
            Err(Halt::LeaveAlone) => Self::Rest(Then::AwaitChange),
        }
    }

    /// Returns the judgement about a pass that is over.
    pub(super) fn ended(end: Result<Then, Box<Stop>>) -> Self {
        match end {
            Ok(then) => Self::Rest(then),
            Err(stop) => Self::Conclude(Some(stop), None),
        }
    }
}

/// A stop that says when its object is reconciled again.
pub(super) trait Stops {
    /// Returns when to reconcile again.
    fn then(&self) -> &Then;
}

impl<Step, Stop: Stops> Judgement<Step, Stop> {
    /// Drops the status write if another operator writes the status, or while the object is over
    /// its write limit (`held_off`).
    pub(super) fn without_status(self, is_handed_over: bool, held_off: Option<Duration>, now: Timestamp) -> Self {
        match (self, held_off) {
            (Self::Conclude(stop, wake), Some(time)) => Self::Rest(then(stop.as_deref(), wake, now).held_off(time)),
            (Self::Conclude(stop, wake), None) if is_handed_over => Self::Rest(then(stop.as_deref(), wake, now)),
            (judged, _) => judged,
        }
    }
}

/// Returns the time of the next pass over an object whose pass ended with this stop.
pub(super) fn then<Stop: Stops>(stop: Option<&Stop>, wake: Option<Timestamp>, now: Timestamp) -> Then {
    match (stop.map_or(Then::AwaitChange, |stop| stop.then().clone()), wake) {
        (Then::AwaitChange, Some(wake)) => Then::After(until(now, wake)),
        (then, _) => then,
    }
}

/// Returns the time until `wake`: at least a second, so that no object is reconciled in a busy
/// loop.
fn until(now: Timestamp, wake: Timestamp) -> Duration {
    Duration::try_from(wake.duration_since(now)).unwrap_or_default().max(Duration::from_secs(1))
}
