//! The conversation of an access (spec §8): it asks for no store, and never makes, empties or
//! deletes a bucket. How far it opens is for the records of the buckets to say; here the key is
//! made, published, replaced and seen out, by the rules of a claim's.

mod consumer;
mod entries;
mod fingerprint;
mod generations;
mod keys;
mod outlook;
mod purpose;
mod removal;
mod status;
mod step;
mod view;
mod words;

use std::ops::ControlFlow;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use crate::api::wire::SERVED_BY;
use crate::api::{AccessReason, ConditionType, ServedBy};

use super::answer::{Failure, TOLD_AFTER};
use super::conversation::{Arrival, Bound, Conversation};
use super::note::Note;
use super::patch::Change;
use super::step::{Rest, Then};

pub use outlook::{EntryOutlook, Outlook};
pub use purpose::purpose;
pub use step::{GrantAct, GrantAnswer, GrantLook, GrantStep};
pub use view::{Grant, GrantCached};
pub use words::{BucketWord, ClaimWord, EntrySeen, Lead, Place};

use view::{Halt, Stop, Trouble, tolerate};

/// No pass is longer.
const MOST_STEPS: usize = 400;
const MOST_READS_BY_NAME: usize = 4000;

/// The next step of a pass, or its end.
fn next(grant: &Grant, now: Timestamp) -> ControlFlow<Rest, GrantStep> {
    match judge(grant, now) {
        Judgement::Step(step) => ControlFlow::Continue(*step),
        Judgement::Rest(then) => ControlFlow::Break(rest(then)),
        Judgement::Conclude(stop, wake) => conclude(grant, stop.as_ref(), wake, now),
    }
}

/// How an access stands, as a pass tells that ends on what is known now.
pub fn outlook(grant: &Grant, now: Timestamp) -> Outlook {
    match judge(grant, now) {
        Judgement::Conclude(stop, _) => Outlook::of(grant, stop.as_ref(), now),
        Judgement::Step(_) | Judgement::Rest(_) => Outlook::of_entries(grant, now),
    }
}

/// What a pass comes to on what is known.
enum Judgement {
    /// There is something to be done before it tells how the access is.
    Step(Box<GrantStep>),
    /// It ends without a word.
    Rest(Then),
    /// It tells that: what keeps the access from being Ready, and when time alone will make
    /// something due.
    Conclude(Option<Stop>, Option<Timestamp>),
}

fn judge(grant: &Grant, now: Timestamp) -> Judgement {
    let note = grant.note();
    let judged = match &grant.trouble {
        None => judge_by(grant, &note, now),
        Some(Trouble::Stale) => Judgement::Rest(retry("what was read is not what there is")),
        Some(Trouble::Failed(step, failure)) => match after_failure(grant, step, failure) {
            Ok(then) => Judgement::Rest(then),
            Err(stop) => Judgement::Conclude(Some(stop), None),
        },
    };
    match (note, judged, grant.held_off()) {
        (_, Judgement::Conclude(stop, wake), Some(time)) => {
            Judgement::Rest(then(stop.as_ref(), wake, now).held_off(time))
        }
        (Note::HandedOver, Judgement::Conclude(stop, wake), None) => Judgement::Rest(then(stop.as_ref(), wake, now)),
        (_, judged, _) => judged,
    }
}

fn judge_by(grant: &Grant, note: &Note, now: Timestamp) -> Judgement {
    let walk = match note {
        Note::Ours => walk(grant, now),
        Note::Overruled(operator) => walk_overruled(grant, operator, now),
        Note::HandedOver if grant.access.deleting => removal::end_taken_over(grant).map(|()| (None, None)),
        Note::HandedOver => keys::revoke(grant, now).map(|wake| (None, wake)),
        Note::Anothers(operator) if is_left_behind(grant) => Err(left_behind(operator).into()),
        // Not a word: what its status says is for the operator that serves it.
        Note::Anothers(_) => Err(Halt::LeaveAlone),
    };
    match walk {
        Ok((stop, wake)) => Judgement::Conclude(stop, wake),
        Err(Halt::Do(step)) => Judgement::Step(step),
        Err(Halt::Stop(stop)) => Judgement::Conclude(Some(stop), None),
        Err(Halt::Stale(why)) => Judgement::Rest(retry(why)),
        Err(Halt::LeaveAlone) => Judgement::Rest(Then::AwaitChange),
    }
}

/// Everything is as it should be, but for what is told; and when time alone makes something due.
type End = (Option<Stop>, Option<Timestamp>);

fn walk(grant: &Grant, now: Timestamp) -> Result<End, Halt> {
    if grant.access.deleting {
        return removal::walk(grant).map(|()| (None, None));
    }
    let next_revocation = keys::revoke(grant, now)?;
    if grant.setting.trusts(&grant.access.at.namespace) {
        let why = format!("namespace {} holds Secrets of the operator", grant.access.at.namespace);
        return Err(Stop::new(AccessReason::OperatorNamespace, why).into());
    }
    if grant.access.paused {
        return Err(
            Stop::new(AccessReason::Paused, "annotation broker.stowage.io/paused is \"true\"".to_owned()).into()
        );
    }
    let rotation =
        *grant.access.rotation.as_ref().map_err(|error| Stop::new(AccessReason::SpecInvalid, error.to_string()))?;
    if grant.held_off().is_some() {
        return keys::narrow(grant).map(|()| (None, next_revocation));
    }
    if !grant.access.has_finalizer() {
        if grant.lead == Lead::Elsewhere {
            return Err(Halt::LeaveAlone);
        }
        return Err(GrantAct::AddFinalizer(grant.access.id.clone()).into());
    }
    let held = keys::ensure_record(grant, now)?;
    let (credential, scopes) = keys::ensure_key(grant, &held)?;
    keys::keep(grant, &held.0)?;
    let conflict = tolerate(consumer::ensure(grant, &credential, &scopes))?;
    if conflict.is_none() {
        consumer::remove_renamed(grant)?;
    }
    let is_published = conflict.is_none() && !grant.is_consumer_written && consumer::is_published(grant, &credential);
    let (lower, kept) = keys::retire(grant, &held.0, rotation, is_published, now)?;
    let next = if conflict.is_none() { keys::rotate(grant, &held, &scopes, rotation, now)? } else { None };
    Ok((conflict.or(kept), [next_revocation, lower, next].into_iter().flatten().min()))
}

/// The same for an access whose note of another operator is overruled.
fn walk_overruled(grant: &Grant, operator: &ServedBy, now: Timestamp) -> Result<End, Halt> {
    let (stop, wake) = walk(grant, now)?;
    let told = || {
        let why = format!(
            "annotation {SERVED_BY} names another operator ({operator}), but this one has the access's keys and goes on \
             to serve it; remove the annotation"
        );
        Stop::new(AccessReason::ServedByAnother, why)
    };
    Ok((Some(stop.unwrap_or_else(told)), wake))
}

/// True where this operator took over what the access names, and not the access. The status of an
/// access that its own operator serves never says Ready then: that operator doesn't have the
/// buckets. What that one tells of the note is left as it is.
fn is_left_behind(grant: &Grant) -> bool {
    let ready = grant.access.status.conditions.iter().find(|it| it.type_ == ConditionType::Ready.as_str());
    grant.lead == Lead::Here && ready.is_none_or(|it| it.status == "True" || it.message.ends_with(LEFT_BEHIND))
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
fn after_failure(grant: &Grant, step: &GrantStep, failure: &Failure) -> Result<Then, Stop> {
    match failure {
        Failure::ReadOnly => Ok(Then::AwaitChange),
        Failure::Paced(wait) => Ok(Then::Wait(*wait)),
        Failure::NamespaceTerminating => Ok(Then::AwaitChange),
        Failure::Conflict => Ok(retry("what was read is old")),
        Failure::Refused(_) if matches!(step, GrantStep::Act(GrantAct::WriteStatus(..))) => Ok(Then::AwaitChange),
        Failure::Refused(why) => Err(not_done(grant, step, why)),
        Failure::Kubernetes(why) if is_told_of(grant, step) => {
            Err(Stop { then: retry(why), ..not_done(grant, step, why) })
        }
        Failure::Kubernetes(why) | Failure::Upstream(why) | Failure::NoUpstream(why) | Failure::UpstreamDenied(why) => {
            Ok(retry(why))
        }
        Failure::Unsupported => Ok(retry("that is not supported")),
    }
}

/// True where the status says that the API server failed this step: as of a claim.
fn is_told_of(grant: &Grant, step: &GrantStep) -> bool {
    let is_write = matches!(step, GrantStep::Act(act) if !matches!(act, GrantAct::WriteStatus(..)));
    is_write && (grant.access.deleting || grant.setbacks >= TOLD_AFTER)
}

/// The stop of a step that the API server refused or failed.
fn not_done(grant: &Grant, step: &GrantStep, why: &str) -> Stop {
    let is_revoked =
        |name: &str| grant.keys().iter().any(|(number, key)| key.name() == name && grant.is_revoked(*number));
    let key = match step {
        GrantStep::Act(GrantAct::Delete(secret)) => Some(&secret.name),
        // One that somebody's finalizer keeps.
        GrantStep::Act(GrantAct::Patch(patch)) if patch.change == Change::Retire => Some(&patch.target.name),
        GrantStep::Look(_) | GrantStep::Act(_) => None,
    };
    let works = if key.is_some_and(|name| is_revoked(name)) { "; the revoked key works until it is" } else { "" };
    Stop::new(AccessReason::ServerError, format!("can't {step}: {why}{works}"))
}

/// Ends a pass: writes the status if it should be another one, then rests.
fn conclude(
    grant: &Grant,
    stop: Option<&Stop>,
    wake: Option<Timestamp>,
    now: Timestamp,
) -> ControlFlow<Rest, GrantStep> {
    if grant.is_finalizer_removed || (grant.access.deleting && !grant.access.has_finalizer()) {
        return ControlFlow::Break(rest(Then::AwaitChange));
    }
    let status = status::derive(grant, stop, now);
    if status != grant.access.status {
        return ControlFlow::Continue(GrantAct::WriteStatus(grant.access.id.clone(), Box::new(status)).into());
    }
    let then = then(stop, wake, now);
    ControlFlow::Break(Rest { then, events: status::transitions(grant, &status), waits_for: None })
}

/// Schedules the next look at an access whose pass ends with this stop.
fn then(stop: Option<&Stop>, wake: Option<Timestamp>, now: Timestamp) -> Then {
    match (stop.map_or(Then::AwaitChange, |stop| stop.then.clone()), wake) {
        (Then::AwaitChange, Some(wake)) => {
            let until = Duration::try_from(wake.duration_since(now)).unwrap_or_default();
            Then::After(until.max(Duration::from_secs(1)))
        }
        (then, _) => then,
    }
}

fn rest(then: Then) -> Rest {
    Rest { then, events: Vec::new(), waits_for: None }
}

fn retry(why: &str) -> Then {
    Then::Retry(why.to_owned())
}

impl Conversation for Grant {
    type Step = GrantStep;
    type Answer = GrantAnswer;
    type End = Rest;

    fn most(bound: Bound) -> usize {
        match bound {
            Bound::Steps => MOST_STEPS,
            Bound::ReadsByName => MOST_READS_BY_NAME,
        }
    }

    fn bound(step: &GrantStep) -> Bound {
        if let GrantStep::Look(GrantLook::Internal(_)) = step { Bound::ReadsByName } else { Bound::Steps }
    }

    fn next(&self, now: Timestamp) -> ControlFlow<Rest, GrantStep> {
        next(self, now)
    }

    fn learn(&mut self, answer: GrantAnswer, arrival: Arrival) {
        match arrival {
            Arrival::Prompt => self.take(answer),
            Arrival::Slow => self.take_slow(answer),
            Arrival::Late => self.take_late(answer),
        }
    }

    fn cut_short(&self, _: Bound) -> Rest {
        rest(retry("the pass does not come to an end"))
    }
}
