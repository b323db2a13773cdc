//! The reconciliation of an access (spec §8): it asks for no store, and never makes, empties or
//! deletes a bucket. How far it opens is for the records of the buckets to say; here the key is
//! made, published, replaced and seen out, by the rules of a claim's.

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

/// No pass is longer.
const MOST_STEPS: usize = 400;
const MOST_READS_BY_NAME: usize = 4000;

/// Judgement of a pass over an access.
type Judgement = walk::Judgement<AccessStep, Stop>;

/// The next step of a pass, or its end.
fn next(view: &AccessView, now: Timestamp) -> ControlFlow<Rest, AccessStep> {
    match judge(view, now) {
        Judgement::Step(step) => ControlFlow::Continue(*step),
        Judgement::Rest(then) => ControlFlow::Break(Rest::silent(then)),
        Judgement::Conclude(stop, wake) => conclude(view, stop.as_deref(), wake, now),
    }
}

/// How an access stands, as a pass tells that ends on what is known now.
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
        // Not a word: what its status says is for the operator that serves it.
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

/// The same for an access whose note of another operator is overruled.
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

/// True where this operator took over what the access names, and not the access. The status of an
/// access that its own operator serves never says Ready then: that operator doesn't have the
/// buckets. What that one tells of the note is left as it is.
fn is_left_behind(view: &AccessView) -> bool {
    let ready = view.access.status.conditions.iter().find(|it| it.type_ == ConditionType::Ready.as_str());
    view.lead == Lead::Here && ready.is_none_or(|it| it.status == "True" || it.message.ends_with(LEFT_BEHIND))
}

/// End of the message about it.
const LEFT_BEHIND: &str = "to have the access taken over";

/// The message about it, which names no operator that the access doesn't: where several serve what
/// it names, all write the same.
fn left_behind(operator: &ServedBy) -> Stop {
    let why = format!(
        "annotation {SERVED_BY} names another operator ({operator}) than the one that serves what spec.buckets names; \
         set it to what those claims and S3Backends have, {LEFT_BEHIND}"
    );
    Stop::new(AccessReason::ServedByAnother, why)
}

/// Tells a refusal for good; retries all else, and tells of it where it lasts.
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

/// True where the status says that the API server failed this step: as of a claim.
fn is_told_of(view: &AccessView, step: &AccessStep) -> bool {
    let is_write = matches!(step, AccessStep::Act(act) if !matches!(act, AccessAct::WriteStatus(..)));
    is_write && (view.access.deleting || view.setbacks >= TOLD_AFTER)
}

/// The stop of a step that the API server refused or failed.
fn not_done(view: &AccessView, step: &AccessStep, why: &str) -> Stop {
    let key = match step {
        AccessStep::Act(AccessAct::Delete(secret)) => Some(&secret.name),
        // One that somebody's finalizer keeps.
        AccessStep::Act(AccessAct::Patch(patch)) if patch.change == Change::Retire => Some(&patch.target.name),
        AccessStep::Look(_) | AccessStep::Act(_) => None,
    };
    let works =
        if key.is_some_and(|name| view.is_revoked_key(name)) { "; the revoked key works until it is" } else { "" };
    Stop::new(AccessReason::ServerError, format!("can't {step}: {why}{works}"))
}

/// Ends a pass: writes the status if it should be another one, then rests.
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
