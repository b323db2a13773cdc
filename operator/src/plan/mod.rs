//! What to do next, as a pure function of what was observed and the time.
//!
//! A pass is a conversation: [`next`] looks at the [`View`] and names one [`Step`]; the step is carried out; the
//! view learns the answer; and so on until the step is to rest. So every decision is made on what is known at
//! that moment, a pass that was cut short anywhere is simply begun again, and the same function serves the
//! operator, `plan` output, tests and model checkers.
//!
//! # Guarantees
//! - No step waits, reads a clock or draws a random number; the secret key of a credential is made by whoever
//!   carries out [`Act::Mint`].
//! - Planning again right after resting gives rest again.
//! - A refusal is a verdict with a reason ([`Stop`]), not an error.

pub mod backend;
mod bind;
mod bucket;
mod credentials;
mod delete;
mod repair;
mod status;
mod step;
mod view;

use k8s_openapi::jiff::Timestamp;

use crate::api::Reason;

pub(crate) use repair::preconditions;
pub use repair::{Change, SecretPatch};
pub use step::{Act, Announcement, Concern, Look, Rest, SecretRef, Step, Stop, Target, Then};
pub use view::{Answer, BackendSeen, BucketSeen, CreateAnswer, Failure, Holder, Setting, Stored, View};

use step::Halt;

/// The next step of a pass.
pub fn next(view: &View, now: Timestamp) -> Step {
    if let Some((step, failure)) = &view.failure {
        return after_failure(view, step, failure, now);
    }
    if view.outdated {
        return stale("the claim changed meanwhile");
    }
    let walk = if view.claim.deleting { delete::walk(view) } else { bind::walk(view) };
    match walk {
        Ok(impaired) => status::conclude(view, impaired.as_ref(), now),
        Err(Halt::Do(step)) => *step,
        Err(Halt::Stop(stop)) => status::conclude(view, Some(&stop), now),
        Err(Halt::Stale(why)) => stale(why),
    }
}

/// Whether the bucket of a claim that was bound is missing, as far as this pass and those before it saw.
pub fn bucket_is_missing(view: &View) -> bool {
    view.record().is_some_and(|(record, _)| bucket::is_missing(view, &record))
}

/// What the API server did not do leaves no trace in the status, unless it refuses for good: the caches and the
/// next pass tell the truth. What the store did not do is told.
fn after_failure(view: &View, step: &Step, failure: &Failure, now: Timestamp) -> Step {
    let concerns = match step {
        Step::Act(Act::Mint(_) | Act::CreateConsumer(_)) => Concern::Credentials,
        Step::Look(Look::Bucket(_) | Look::Contents(_))
        | Step::Act(Act::CreateBucket(_) | Act::TagBucket(..) | Act::SetVersioning(..)) => Concern::Bucket,
        _ => Concern::Ready,
    };
    let stop = match failure {
        Failure::Conflict => return stale("what was read is old"),
        Failure::Kubernetes(why) => return retry(why),
        // Expected: the namespace's deletion reaches the claim next (spec §3.4).
        Failure::NamespaceTerminating => return rest(Then::AwaitChange),
        Failure::Refused(why) if matches!(step, Step::Act(Act::WriteStatus(..))) => return retry(why),
        Failure::Upstream(why) | Failure::NoUpstream(why) => Stop::failed(concerns, why),
        // Permanent: not tried again until something changes, or the slow resync (spec §3.5).
        Failure::Refused(why) => Stop::refused(Reason::BackendError, concerns, format!("can't {step}: {why}")),
        Failure::UpstreamDenied(why) => Stop::refused(Reason::BackendError, concerns, why),
        Failure::Unsupported => {
            let why = format!("can't {step}: the store does not implement it");
            Stop::refused(Reason::BackendError, concerns, why)
        }
    };
    status::conclude(view, Some(&stop), now)
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
