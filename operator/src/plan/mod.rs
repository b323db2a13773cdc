//! What to do next, as a pure function of what was observed and the time.
//!
//! A pass is a reconciliation: [`next`] looks at the [`View`] and names one [`Step`]; the step is
//! carried out; the view learns the answer; and so on until the step is to rest. So every decision
//! is made on what is known at that moment, a pass that was cut short anywhere is simply begun
//! again, and the same function serves the operator, tests and model checkers.
//!
//! # Guarantees
//! - No step waits, reads a clock or draws a random number; the secret key of a credential is made
//!   by whoever carries out [`Act::Mint`].
//! - Planning again right after resting gives rest again.
//! - A refusal is a reason to stop (`Stop`), not an error.

pub mod access;
mod announcements;
mod answer;
mod asking;
pub mod backend;
mod bind;
mod bucket;
mod cause;
mod consent;
mod consumer;
mod credentials;
mod delete;
mod halt;
mod held;
mod hold;
mod keys;
mod known;
mod message;
mod moves;
mod note;
pub mod obc;
mod obstacle;
pub mod orphans;
mod ownership;
mod patch;
mod place;
mod public;
mod purpose;
mod reach;
mod reconciliation;
mod remedy;
mod removal;
mod revocation;
mod secret;
mod setback;
mod spelling;
mod status;
mod step;
mod stop;
mod target;
#[cfg(test)]
mod tests;
mod usage;
mod view;
mod walk;

use std::ops::ControlFlow;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

pub(crate) use announcements::tells_of_revocation;
pub use answer::{
    Answer, BackendSeen, BucketSeen, Checked, CreateAnswer, DeleteAnswer, Failure, Holder, OwnerSeen, Posted, PurgeEnd,
    Purged, VersioningSeen,
};
pub use asking::{Asker, Asking, ConsentQuestion, ConsentSeen, Unasked};
pub use held::Held;
pub use obstacle::Obstacle;
pub(crate) use patch::preconditions;
pub use patch::{Change, SecretPatch, Trigger};
pub(crate) use place::is_incomplete;
pub use purpose::purpose;
pub use reach::{Part, Reach};
pub use reconciliation::{Arrival, Bound, Reconciliation};
pub(crate) use secret::opened_record;
pub use secret::{SecretRef, Stored};
pub use step::{Act, Announcement, Look, Rest, Step, Then};
pub use target::Target;
pub use view::{Cached, LetGo, Remembered, Setting, View};

use answer::TOLD_AFTER;
use cause::{Cause, ClaimCause, DeletionCause, StepCause};
use halt::{Halt, Outcome};
use note::Note;
use stop::{Concern, Stop, together};
use walk::after_failure;

/// No pass is longer. Reads of internal Secrets by name have a bound of their own: a deletion makes
/// one for each generation, and goes on in its next pass.
const MOST_STEPS: usize = 200;
const MOST_READS_BY_NAME: usize = 10_000;

/// Judgement of a pass over a claim.
type Judgement = walk::Judgement<Step, Stop>;

/// The next step of a pass.
pub fn next(view: &View, now: Timestamp) -> Step {
    match judge(view, now) {
        Judgement::Step(step) => *step,
        Judgement::Rest(then) => Step::Rest(Rest::silent(then)),
        Judgement::Conclude(stop, wake) => status::conclude(view, stop.as_deref(), wake, now),
    }
}

/// What keeps a claim from being Ready, as a pass tells that ends on what is known now. `None`
/// where nothing does, or where the pass has something else to do first.
pub fn obstacle(view: &View, now: Timestamp) -> Option<Obstacle> {
    match judge(view, now) {
        Judgement::Step(_) | Judgement::Rest(_) => None,
        Judgement::Conclude(stop, _) => stop.map(|stop| Obstacle::of(&stop)),
    }
}

fn judge(view: &View, now: Timestamp) -> Judgement {
    let look_again = |stop: &Stop| removal::look_again(view, stop, now);
    let note = match Note::of_claim(view) {
        // Not a word: what its status says is for the operator that serves it.
        Ok(Note::Anothers(_)) => return Judgement::Rest(Then::AwaitChange),
        Ok(note) => note,
        Err(halt) => return Judgement::of(Err(halt), look_again),
    };
    let judged = match view.trouble() {
        None => Judgement::of(walk_by(view, &note, now), look_again),
        Some(trouble) => Judgement::ended(trouble.end(|step, failure| told_of_failure(view, step, failure))),
    };
    judged.without_status(note == Note::HandedOver, view.held_off(), now)
}

/// Walks through the steps for a claim that this operator has to do with.
fn walk_by(view: &View, note: &Note, now: Timestamp) -> Result<Outcome, Halt> {
    let deleting = view.claim().deleting;
    let told = match note {
        Note::HandedOver if deleting => return delete::end_keys(view),
        Note::HandedOver => return bind::end_keys(view, now),
        Note::Overruled(operator) => Some(Stop::new(ClaimCause::ServedByAnother { operator: operator.clone() })),
        Note::Ours | Note::Anothers(_) => None,
    };
    let walk = if deleting { delete::walk(view) } else { bind::walk(view, now) };
    walk.map(|outcome| Outcome { impaired: together([outcome.impaired, told]), ..outcome })
}

impl Reconciliation for View {
    type Step = Step;
    type Answer = Answer;
    type End = Rest;

    fn most(bound: Bound) -> usize {
        match bound {
            Bound::Steps => MOST_STEPS,
            Bound::ReadsByName => MOST_READS_BY_NAME,
        }
    }

    fn bound(step: &Step) -> Bound {
        if let Step::Look(Look::Internal(_)) = step { Bound::ReadsByName } else { Bound::Steps }
    }

    fn next(&self, now: Timestamp) -> ControlFlow<Rest, Step> {
        match next(self, now) {
            Step::Rest(rest) => ControlFlow::Break(rest),
            step @ (Step::Look(_) | Step::Act(_)) => ControlFlow::Continue(step),
        }
    }

    fn learn(&mut self, answer: Answer, arrival: Arrival) {
        match arrival {
            Arrival::Prompt => self.learn(answer),
            Arrival::Slow => self.learn_slow(answer),
            Arrival::Late => self.learn_late(answer),
        }
    }

    fn cut_short(&self, bound: Bound) -> Rest {
        let then = match bound {
            Bound::ReadsByName if self.claim().deleting => Then::After(Duration::ZERO),
            Bound::Steps | Bound::ReadsByName => Then::cut_short(),
        };
        Rest::silent(then)
    }
}

/// What the store did not do is told, and what the API server refuses for good. That the API server
/// failed is no news, as the next pass shows what is so; it is told where it lasts, and of a claim
/// that goes at once, so that nobody takes it for one that is left alone.
fn told_of_failure(view: &View, step: &Step, failure: &Failure) -> Result<Then, Box<Stop>> {
    let is_status_write = matches!(step, Step::Act(Act::WriteStatus(..)));
    after_failure(failure, is_status_write, || {
        Some(Stop::new(failure_cause(view, step, failure)?).about(concern(view, step)))
    })
}

/// The cause that a failed step is told as; `None` = it is not told.
fn failure_cause(view: &View, step: &Step, failure: &Failure) -> Option<Cause> {
    let deleting = view.claim().deleting;
    Some(match failure {
        Failure::ReadOnly | Failure::Paced(_) | Failure::Conflict => return None,
        Failure::Kubernetes(_) if !is_told_of(view, step) => return None,
        Failure::Kubernetes(why) => StepCause::ServerFailed { step: step.to_string(), why: why.clone() }.into(),
        Failure::NamespaceTerminating if !is_internal(view, step) => return None,
        Failure::NamespaceTerminating => {
            let namespace = view.setting().operator_namespace.clone();
            StepCause::NamespaceTerminating { step: step.to_string(), namespace }.into()
        }
        Failure::Upstream(why) | Failure::NoUpstream(why) if deleting => {
            DeletionCause::StoreFailed { why: why.clone() }.into()
        }
        Failure::Upstream(why) | Failure::NoUpstream(why) => StepCause::StoreFailed { why: why.clone() }.into(),
        // Permission and ability: no retry loop, looked at again when something changes (spec
        // §3.5).
        Failure::Refused(why) => StepCause::Refused { step: step.to_string(), why: why.clone() }.into(),
        // The store refuses for good: a deletion says how it can be got out of.
        Failure::UpstreamDenied(why) if deleting => DeletionCause::Denied { why: why.clone() }.into(),
        Failure::UpstreamDenied(why) => StepCause::StoreDenied { why: why.clone() }.into(),
        Failure::Unsupported if deleting => {
            DeletionCause::Denied { why: StepCause::unsupported(step).to_string() }.into()
        }
        Failure::Unsupported => StepCause::unsupported(step).into(),
    })
}

/// Whether the status tells that the API server failed this step. Where it does not answer reads
/// either, or has failed that very write, there is no use in one more.
fn is_told_of(view: &View, step: &Step) -> bool {
    let is_write = matches!(step, Step::Act(act) if !matches!(act, Act::WriteStatus(..)));
    let lasts = view.claim().deleting || view.setbacks() >= TOLD_AFTER;
    is_write && lasts && view.first_recheck().is_none()
}

/// The condition that a step is about, if it fails.
fn concern(view: &View, step: &Step) -> Concern {
    // The bucket that is to go says nothing about itself any more.
    if view.claim().deleting {
        return Concern::Ready;
    }
    match step {
        Step::Act(Act::Mint(_) | Act::CreateConsumer(_)) => Concern::Credentials,
        // The bucket that the claim is bound to is there, whatever becomes of the one that it is to
        // move to.
        Step::Look(_) | Step::Act(_) | Step::Rest(_) if view.was_bound() => Concern::Ready,
        Step::Look(Look::Bucket(_) | Look::Owner(_) | Look::Contents(_))
        | Step::Act(Act::CreateBucket(_) | Act::TagBucket(..) | Act::SetVersioning(..)) => Concern::Bucket,
        Step::Look(_) | Step::Act(_) | Step::Rest(_) => Concern::Ready,
    }
}

/// Whether a step writes to the operator's own namespace, and not to the claim's.
fn is_internal(view: &View, step: &Step) -> bool {
    match step {
        Step::Act(Act::CreateRecord(_) | Act::Mint(_) | Act::CreateBinding(_)) => true,
        Step::Act(Act::Patch(patch)) => patch.target.namespace == view.setting().operator_namespace,
        Step::Look(_) | Step::Act(_) | Step::Rest(_) => false,
    }
}
