//! The end of a walk through the steps of a reconciliation, whichever kind of object it is about.
//!
//! A walk asks one thing after another of what is known. `Ok` = that is as it should be, go on;
//! `Err` = halt. Most halts are no failures: with [`Halt::Step`] the walk names the next step, and
//! is walked anew once that is done.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use super::answer::Failure;
use super::step::Then;

/// Everything is as it should be, or nothing more can be done about it now.
pub(super) struct Outcome<Stop> {
    /// What keeps the object from being Ready all the same.
    pub(super) impaired: Option<Stop>,
    /// When time alone will make something due.
    pub(super) wake: Option<Timestamp>,
}

impl<Stop> Default for Outcome<Stop> {
    fn default() -> Self {
        Self { impaired: None, wake: None }
    }
}

/// Why a walk through the steps halts.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Halt<Step, Stop> {
    /// There is something to do first: the success of a walk, which names the next step.
    Step(Box<Step>),
    /// It can't go on; the status says why.
    Stop(Box<Stop>),
    /// There is nothing to do for this long; the status stays as it is.
    Wait(Duration),
    /// What the pass reads is old: it ends without a word, and is tried again after its backoff.
    Stale(&'static str),
    /// The object is not this operator's to serve: nothing is done, and nothing is said.
    LeaveAlone,
}

impl<Step, Stop> Halt<Step, Stop> {
    /// The halt whose next step is this.
    pub(super) fn step(step: impl Into<Step>) -> Self {
        Self::Step(Box::new(step.into()))
    }

    /// The halt that the status tells of.
    pub(super) fn stop(stop: impl Into<Stop>) -> Self {
        Self::Stop(Box::new(stop.into()))
    }
}

/// What goes on although something stands in its way: `Ok` carries what that is.
pub(super) fn tolerate<Step, Stop>(outcome: Result<(), Halt<Step, Stop>>) -> Result<Option<Stop>, Halt<Step, Stop>> {
    match outcome {
        Ok(()) => Ok(None),
        Err(Halt::Stop(stop)) => Ok(Some(*stop)),
        Err(halt) => Err(halt),
    }
}

/// Why a pass is over but for what it tells.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Trouble<Step> {
    /// What the pass goes by is old, or its answers contradict each other: another begins.
    Stale,
    /// This step failed last.
    Failed(Box<Step>, Failure),
}

impl<Step> Trouble<Step> {
    /// How the pass ends: without a word, or with what `after_failure` tells of a failed step.
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

/// The end of a pass whose last step failed: where nothing is told of it, when it is tried again.
/// `tell` decides what is told of a failure that a reconciliation may have a word for.
pub(super) fn after_failure<Stop>(
    failure: &Failure,
    is_status_write: bool,
    tell: impl FnOnce() -> Option<Stop>,
) -> Result<Then, Box<Stop>> {
    let then = match failure {
        // What would be done stands in the log.
        Failure::ReadOnly => return Ok(Then::AwaitChange),
        Failure::Paced(wait) => return Ok(Then::Wait(*wait)),
        Failure::Conflict => return Ok(Then::retry("what was read is old")),
        Failure::Refused(_) if is_status_write => return Ok(Then::AwaitChange),
        // Expected: the namespace's deletion reaches the object next (spec §3.4).
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

/// What a pass comes to on what is known.
pub(super) enum Judgement<Step, Stop> {
    /// There is something to be done before it tells how the object is.
    Step(Box<Step>),
    /// It ends without a word.
    Rest(Then),
    /// It tells that: what keeps the object from being Ready, and when time alone will make
    /// something due.
    Conclude(Option<Box<Stop>>, Option<Timestamp>),
}

impl<Step, Stop> Judgement<Step, Stop> {
    /// The judgement that a walk leads to. `look_again` gives the time after which a stop is
    /// looked at again by itself.
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

    /// The judgement about a pass that is over.
    pub(super) fn ended(end: Result<Then, Box<Stop>>) -> Self {
        match end {
            Ok(then) => Self::Rest(then),
            Err(stop) => Self::Conclude(Some(stop), None),
        }
    }
}

/// A stop that says when its object is looked at again.
pub(super) trait Stops {
    /// When to look again.
    fn then(&self) -> &Then;
}

impl<Step, Stop: Stops> Judgement<Step, Stop> {
    /// The same where the status is not written: another operator writes it, or the object is over
    /// its pace for this long.
    pub(super) fn without_status(self, is_handed_over: bool, held_off: Option<Duration>, now: Timestamp) -> Self {
        match (self, held_off) {
            (Self::Conclude(stop, wake), Some(time)) => Self::Rest(then(stop.as_deref(), wake, now).held_off(time)),
            (Self::Conclude(stop, wake), None) if is_handed_over => Self::Rest(then(stop.as_deref(), wake, now)),
            (judged, _) => judged,
        }
    }
}

/// Schedules the next look at an object whose pass ends with this stop.
pub(super) fn then<Stop: Stops>(stop: Option<&Stop>, wake: Option<Timestamp>, now: Timestamp) -> Then {
    match (stop.map_or(Then::AwaitChange, |stop| stop.then().clone()), wake) {
        (Then::AwaitChange, Some(wake)) => Then::After(until(now, wake)),
        (then, _) => then,
    }
}

/// At least a second, so that nothing is looked at in a loop.
fn until(now: Timestamp, wake: Timestamp) -> Duration {
    Duration::try_from(wake.duration_since(now)).unwrap_or_default().max(Duration::from_secs(1))
}
