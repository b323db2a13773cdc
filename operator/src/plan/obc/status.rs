//! Phase of an ObjectBucketClaim and the Events about it (spec §9). The phase is the only status
//! field that every CRD in the field keeps, so the explanation is in Events.

use std::ops::ControlFlow;

use super::super::answer::Failure;
use super::super::step::{Announcement, Then};
use super::super::walk::after_failure;
use super::halt::{Phase, Stop};
use super::step::{ObcAct, ObcLook, ObcStep};
use super::view::ObcView;

/// The end of a pass over an ObjectBucketClaim.
#[derive(Clone, Debug, PartialEq)]
pub struct ObcRest {
    /// Time of the next pass.
    pub then: Then,
    /// Events to publish.
    pub events: Vec<Announcement>,
    /// Message that has been reported, to avoid reporting it again. `None` leaves the previous one.
    pub told: Option<String>,
}

/// Returns an end without Events.
fn nothing() -> ObcRest {
    ended(Then::AwaitChange)
}

/// Returns an end without Events, with the time of the next pass.
pub(super) fn ended(then: Then) -> ObcRest {
    ObcRest { then, events: Vec::new(), told: None }
}

/// Reports a permanent refusal. Any other failure is retried.
pub(super) fn told_of_failure(step: &ObcStep, failure: &Failure) -> Result<Then, Box<Stop>> {
    let is_status_write = matches!(step, ObcStep::Act(ObcAct::WritePhase(..)));
    after_failure(failure, is_status_write, || {
        let Failure::Refused(why) = failure else { return None };
        Some(Stop::new(Phase::Failed, "Refused", format!("can't {step}: {why}")))
    })
}

/// Ends a pass: writes the phase if it changed, then rests.
pub(super) fn conclude(view: &ObcView, stop: Option<&Stop>) -> ControlFlow<ObcRest, ObcStep> {
    if view.is_finalizer_removed || (view.obc.deleting && !view.obc.has_finalizer()) {
        return ControlFlow::Break(nothing());
    }
    let phase = match stop {
        _ if view.obc.deleting => "Released",
        Some(stop) => stop.phase.as_str(),
        None => Phase::Bound.as_str(),
    };
    if view.obc.phase.as_deref() != Some(phase) {
        let write = ObcAct::WritePhase(view.obc.id.clone(), phase).into();
        return ControlFlow::Continue(if view.is_live() { write } else { ObcLook::Obc.into() });
    }
    let word = match stop {
        None => Some(("Bound".to_owned(), "the bucket can be used".to_owned())),
        Some(stop) => stop.word.clone(),
    };
    let mut events = view.events.clone();
    let mut told = None;
    if let Some((reason, note)) = word {
        let whole = format!("{reason}: {note}");
        // After a start of the operator, a claim that is still Bound is not reported again.
        let is_known = view.told.as_ref() == Some(&whole)
            || (stop.is_none() && view.told.is_none() && view.before.as_deref() == Some(phase));
        if !is_known {
            events.push(Announcement { warning: stop.is_some(), reason, note });
        }
        told = Some(whole);
    }
    ControlFlow::Break(ObcRest { then: stop.map_or(Then::AwaitChange, |stop| stop.then.clone()), events, told })
}
