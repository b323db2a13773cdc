//! What to do next, as a pure function of what was observed and the time.
//!
//! A pass is a conversation: [`next`] looks at the [`View`] and names one [`Step`]; the step is carried out; the
//! view learns the answer; and so on until the step is to rest. So every decision is made on what is known at
//! that moment, a pass that was cut short anywhere is simply begun again, and the same function serves the
//! operator, tests and model checkers.
//!
//! # Guarantees
//! - No step waits, reads a clock or draws a random number; the secret key of a credential is made by whoever
//!   carries out [`Act::Mint`].
//! - Planning again right after resting gives rest again.
//! - A refusal is a verdict with a reason ([`Stop`]), not an error.

mod answer;
pub mod backend;
mod bind;
mod bucket;
mod credentials;
mod delete;
mod learn;
mod moves;
pub mod orphans;
mod own;
mod records;
mod removal;
mod repair;
mod rotation;
mod status;
mod step;
#[cfg(test)]
mod tests;
mod view;

use k8s_openapi::jiff::Timestamp;

use crate::api::Reason;

pub use answer::{
    Answer, BackendSeen, BucketSeen, Checked, CreateAnswer, DeleteAnswer, Failure, Holder, PurgeEnd, Purged, Stored,
    VersioningSeen,
};
pub use own::Own;
pub use records::{bucket_of, missing_at};
pub(crate) use repair::preconditions;
pub use repair::{Change, SecretPatch, Trigger};
pub(crate) use status::tells_of_revocation;
pub use step::{Act, Announcement, Concern, Look, Rest, SecretRef, Step, Stop, Target, Then};
pub use view::{LetGo, Setting, View};

use step::Halt;

/// The next step of a pass.
pub fn next(view: &View, now: Timestamp) -> Step {
    if let Some((step, failure)) = &view.failure {
        return after_failure(view, step, failure, now);
    }
    if view.outdated {
        return stale("what was read is not what there is");
    }
    let walk = if view.claim.deleting { delete::walk(view) } else { bind::walk(view, now) };
    match walk {
        Ok(settled) => status::conclude(view, settled.impaired.as_ref(), settled.wake, now),
        Err(Halt::Do(step)) => *step,
        Err(Halt::Stop(stop)) => status::conclude(view, Some(&stop), None, now),
        Err(Halt::Wait(time)) => rest(Then::Wait(time)),
        Err(Halt::Stale(why)) => stale(why),
    }
}

/// What the API server did not do leaves no trace in the status, unless it refuses for good: the caches and the
/// next pass tell the truth. What the store did not do is told.
fn after_failure(view: &View, step: &Step, failure: &Failure, now: Timestamp) -> Step {
    let concerns = match step {
        // The bucket that is to go says nothing about itself any more.
        _ if view.claim.deleting => Concern::Ready,
        Step::Act(Act::Mint(_) | Act::CreateConsumer(_)) => Concern::Credentials,
        // The bucket that the claim is bound to is there, whatever becomes of the one that it is to move to.
        _ if view.was_bound() => Concern::Ready,
        Step::Look(Look::Bucket(_) | Look::Contents(_))
        | Step::Act(Act::CreateBucket(_) | Act::TagBucket(..) | Act::SetVersioning(..)) => Concern::Bucket,
        _ => Concern::Ready,
    };
    let stop = match failure {
        Failure::Conflict => return stale("what was read is old"),
        Failure::Kubernetes(why) => return retry(why),
        // Expected: the namespace's deletion reaches the claim next (spec §3.4).
        Failure::NamespaceTerminating if !is_internal(view, step) => return rest(Then::AwaitChange),
        Failure::NamespaceTerminating => {
            let namespace = &view.setting.operator_namespace;
            refused(concerns, format!("can't {step}: namespace {namespace} is being deleted, or gone"))
        }
        Failure::Refused(_) if matches!(step, Step::Act(Act::WriteStatus(..))) => return rest(Then::AwaitChange),
        Failure::Upstream(why) | Failure::NoUpstream(why) if view.claim.deleting => {
            Stop::failed(concerns, format!("{why}; {}", removal::WAY_OUT))
        }
        Failure::Upstream(why) | Failure::NoUpstream(why) => Stop::failed(concerns, why),
        // Permission and ability: no retry loop, looked at again when something changes (spec §3.5).
        Failure::Refused(why) => refused(concerns, format!("can't {step}: {why}")),
        Failure::UpstreamDenied(why) => denied(view, concerns, why.clone()),
        Failure::Unsupported => denied(view, concerns, format!("can't {step}: the store does not implement it")),
    };
    status::conclude(view, Some(&stop), None, now)
}

/// Whether a step writes to the operator's own namespace, and not to the claim's.
fn is_internal(view: &View, step: &Step) -> bool {
    match step {
        Step::Act(Act::CreateRecord(_) | Act::Mint(_) | Act::CreateBinding(_)) => true,
        Step::Act(Act::Patch(patch)) => patch.target.namespace == view.setting.operator_namespace,
        _ => false,
    }
}

/// The store refuses for good: a deletion says how it can be got out of.
fn denied(view: &View, concerns: Concern, why: String) -> Stop {
    if view.claim.deleting { removal::blocked(&why) } else { refused(concerns, why) }
}

fn refused(concerns: Concern, why: String) -> Stop {
    Stop::refused(Reason::BackendError, concerns, why)
}

fn stale(why: &str) -> Step {
    retry(why)
}

fn retry(why: &str) -> Step {
    rest(Then::Retry(why.to_owned()))
}

fn rest(then: Then) -> Step {
    Step::Rest(Rest { then, events: Vec::new(), waits_for: None })
}
