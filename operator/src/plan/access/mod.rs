//! Reconciliation of a BucketAccess (spec §8).
//!
//! It calls no store, and never creates, empties or deletes a bucket. The bucket records say how
//! far the buckets are open. This module creates, publishes, replaces and retires the key, by the
//! same rules as for a claim.

mod consumer;
mod entries;
mod fingerprint;
mod holder;
mod keys;
mod outlook;
mod purpose;
mod removal;
mod status;
mod step;
mod view;
mod words;

use std::ops::ControlFlow;

use k8s_openapi::jiff::Timestamp;

use crate::api::wire::SERVED_BY;
use crate::api::{AccessReason, ConditionType, ServedBy};

use super::answer::{Failure, TOLD_AFTER};
use super::note::Note;
use super::patch::Change;
use super::reconciliation::{Arrival, Bound, Reconciliation};
use super::step::{Rest, Then};
use super::walk::{self, after_failure, then};

pub use outlook::{EntryOutlook, Outlook};
pub use purpose::purpose;
pub use step::{AccessAct, AccessAnswer, AccessLook, AccessStep};
pub use view::{AccessCached, AccessView};
pub use words::{BucketWord, ClaimWord, EntrySeen, Lead, Place};

use view::{Halt, Outcome, Stop};

/// Maximum number of steps of a pass.
const MOST_STEPS: usize = 400;
const MOST_READS_BY_NAME: usize = 4000;

/// Result of judging a pass over an access.
type Judgement = walk::Judgement<AccessStep, Stop>;

/// Returns the next step of a pass, or its end.
fn next(view: &AccessView, now: Timestamp) -> ControlFlow<Rest, AccessStep> {
    match judge(view, now) {
        Judgement::Step(step) => ControlFlow::Continue(*step),
        Judgement::Rest(then) => ControlFlow::Break(Rest::silent(then)),
        Judgement::Conclude(stop, wake) => conclude(view, stop.as_deref(), wake, now),
    }
}

/// Returns the state of an access, for a pass that ends with what is known now.
pub fn outlook(view: &AccessView, now: Timestamp) -> Outlook {
    match judge(view, now) {
        Judgement::Conclude(stop, _) => Outlook::of(view, stop.as_deref(), now),
        Judgement::Step(_) | Judgement::Rest(_) => Outlook::of_entries(view, now),
    }
}

fn judge(view: &AccessView, now: Timestamp) -> Judgement {
    let note = view.note();
    let judged = match &view.trouble {
        None => Judgement::of(walk_by(view, &note, now), |_| None),
        Some(trouble) => Judgement::ended(trouble.end(|step, failure| told_of_failure(view, step, failure))),
    };
    judged.without_status(note == Note::HandedOver, view.held_off(), now)
}

fn walk_by(view: &AccessView, note: &Note, now: Timestamp) -> Result<Outcome, Halt> {
    match note {
        Note::Ours => walk_ours(view, now),
        Note::Overruled(operator) => walk_overruled(view, operator, now),
        Note::HandedOver if view.access.deleting => removal::end_taken_over(view).map(|()| Outcome::default()),
        Note::HandedOver => keys::revoke(view, now).map(|wake| Outcome { wake, ..Outcome::default() }),
        Note::Anothers(operator) if is_left_behind(view) => Err(left_behind(operator).into()),
        // Ends without a status write: the status belongs to the operator that serves the access.
        Note::Anothers(_) => Err(Halt::LeaveAlone),
    }
}

fn walk_ours(view: &AccessView, now: Timestamp) -> Result<Outcome, Halt> {
    if view.access.deleting {
        return removal::walk(view).map(|()| Outcome::default());
    }
    let next_revocation = keys::revoke(view, now)?;
    if view.setting.trusts(&view.access.at.namespace) {
        let why = format!("namespace {} holds Secrets of the operator", view.access.at.namespace);
        return Err(Stop::new(AccessReason::OperatorNamespace, why).into());
    }
    if view.access.paused {
        return Err(
            Stop::new(AccessReason::Paused, "annotation broker.stowage.io/paused is \"true\"".to_owned()).into()
        );
    }
    let rotation =
        *view.access.rotation.as_ref().map_err(|error| Stop::new(AccessReason::SpecInvalid, error.to_string()))?;
    if view.held_off().is_some() {
        return keys::narrow(view).map(|()| Outcome { wake: next_revocation, ..Outcome::default() });
    }
    if !view.access.has_finalizer() {
        if view.lead == Lead::Elsewhere {
            return Err(Halt::LeaveAlone);
        }
        return Err(AccessAct::AddFinalizer(view.access.id.clone()).into());
    }
    let outcome = keys::walk(view, rotation, now)?;
    Ok(Outcome { wake: next_revocation.into_iter().chain(outcome.wake).min(), ..outcome })
}

/// Walks through the steps of an access whose annotation of another operator is overruled.
fn walk_overruled(view: &AccessView, operator: &ServedBy, now: Timestamp) -> Result<Outcome, Halt> {
    let outcome = walk_ours(view, now)?;
    let told = || {
        let why = format!(
            "annotation {SERVED_BY} names another operator ({operator}), but this one has the access's keys and goes on \
             to serve it; remove the annotation"
        );
        Stop::new(AccessReason::ServedByAnother, why)
    };
    Ok(Outcome { impaired: Some(outcome.impaired.unwrap_or_else(told)), ..outcome })
}

/// Returns true if this operator took over the buckets and backends that the access names, but not
/// the access.
///
/// If another operator still serves the access, the status is not Ready, because that operator no
/// longer has the buckets. Such a status is left as it is.
fn is_left_behind(view: &AccessView) -> bool {
    let ready = view.access.status.conditions.iter().find(|it| it.type_ == ConditionType::Ready.as_str());
    view.lead == Lead::Here && ready.is_none_or(|it| it.status == "True" || it.message.ends_with(LEFT_BEHIND))
}

/// End of the message about an access that was left behind. Identifies the message in a stored
/// status.
const LEFT_BEHIND: &str = "to have the access taken over";

/// Returns the stop for an access that was left behind. Its message names only the operator from
/// the access's annotation, so that several operators that serve what the access names all write
/// the same message.
fn left_behind(operator: &ServedBy) -> Stop {
    let why = format!(
        "annotation {SERVED_BY} names another operator ({operator}) than the one that serves what spec.buckets names; \
         set it to what those claims and S3Backends have, {LEFT_BEHIND}"
    );
    Stop::new(AccessReason::ServedByAnother, why)
}

/// Reports a permanent refusal. Retries any other failure, and reports a failure of the API server
/// if it lasts.
fn told_of_failure(view: &AccessView, step: &AccessStep, failure: &Failure) -> Result<Then, Box<Stop>> {
    let is_status_write = matches!(step, AccessStep::Act(AccessAct::WriteStatus(..)));
    after_failure(failure, is_status_write, || match failure {
        Failure::Refused(why) => Some(not_done(view, step, why)),
        Failure::Kubernetes(why) if is_told_of(view, step) => {
            Some(Stop { then: Then::retry(why), ..not_done(view, step, why) })
        }
        Failure::ReadOnly
        | Failure::Paced(_)
        | Failure::NamespaceTerminating
        | Failure::Conflict
        | Failure::Kubernetes(_)
        | Failure::Upstream(_)
        | Failure::NoUpstream(_)
        | Failure::UpstreamDenied(_)
        | Failure::Unsupported => None,
    })
}

/// Returns true if the status reports that the API server failed this step. Follows the rules for a
/// claim.
fn is_told_of(view: &AccessView, step: &AccessStep) -> bool {
    let is_write = matches!(step, AccessStep::Act(act) if !matches!(act, AccessAct::WriteStatus(..)));
    is_write && (view.access.deleting || view.setbacks >= TOLD_AFTER)
}

/// Returns the stop for a step that the API server refused or failed.
fn not_done(view: &AccessView, step: &AccessStep, why: &str) -> Stop {
    let key = match step {
        AccessStep::Act(AccessAct::Delete(secret)) => Some(&secret.name),
        // A key that a finalizer keeps.
        AccessStep::Act(AccessAct::Patch(patch)) if patch.change == Change::Retire => Some(&patch.target.name),
        AccessStep::Look(_) | AccessStep::Act(_) => None,
    };
    let works =
        if key.is_some_and(|name| view.is_revoked_key(name)) { "; the revoked key works until it is" } else { "" };
    Stop::new(AccessReason::ServerError, format!("can't {step}: {why}{works}"))
}

/// Ends a pass: writes the status if it changed, then rests.
fn conclude(
    view: &AccessView,
    stop: Option<&Stop>,
    wake: Option<Timestamp>,
    now: Timestamp,
) -> ControlFlow<Rest, AccessStep> {
    if view.is_finalizer_removed || (view.access.deleting && !view.access.has_finalizer()) {
        return ControlFlow::Break(Rest::silent(Then::AwaitChange));
    }
    let status = status::derive(view, stop, now);
    if status != view.access.status {
        return ControlFlow::Continue(AccessAct::WriteStatus(view.access.id.clone(), Box::new(status)).into());
    }
    let then = then(stop, wake, now);
    ControlFlow::Break(Rest { then, events: status::transitions(view, &status), waits_for: None })
}

impl Reconciliation for AccessView {
    type Step = AccessStep;
    type Answer = AccessAnswer;
    type End = Rest;

    fn most(bound: Bound) -> usize {
        match bound {
            Bound::Steps => MOST_STEPS,
            Bound::ReadsByName => MOST_READS_BY_NAME,
        }
    }

    fn bound(step: &AccessStep) -> Bound {
        if let AccessStep::Look(AccessLook::Internal(_)) = step { Bound::ReadsByName } else { Bound::Steps }
    }

    fn next(&self, now: Timestamp) -> ControlFlow<Rest, AccessStep> {
        next(self, now)
    }

    fn learn(&mut self, answer: AccessAnswer, arrival: Arrival) {
        match arrival {
            Arrival::Prompt => self.take(answer),
            Arrival::Slow => self.take_slow(answer),
            Arrival::Late => self.take_late(answer),
        }
    }

    fn cut_short(&self, _: Bound) -> Rest {
        Rest::silent(Then::cut_short())
    }
}
