//! Admission webhooks (`admissionregistration.k8s.io/v1`): who writes through a front is judged by
//! them, as the plugins of the API server do (`k8s.io/apiserver/pkg/admission/plugin/webhook`).
//!
//! Nothing here opens a socket: whoever sets up a front brings what calls ([`Webhooks`]).
//!
//! A write is done under the cluster's lock, and no lock is held while somebody is waited for. So a
//! request is tried: where it comes to a webhook that wasn't heard yet, it changes nothing and
//! leaves its question with the [`Hearing`]; once that is answered, it is tried again from the
//! beginning. An answer counts for the very review that it was given to. So if another write came
//! in between, the webhook is asked anew, as it is on a server whose write meets a conflict.
//!
//! [`hook`] reads configurations, [`check`] is what they are refused for, [`matching`] tells which
//! requests a webhook is about, [`review`] is what goes out and comes back, [`hearing`] who was
//! asked what. The server's own writes, and those by hand, are not judged.

mod call;
mod check;
mod hearing;
mod hook;
mod matching;
mod review;

use json_patch::PatchOperation;
use kube_sim::admission::{AdmissionRequest, suspended};
use kube_sim::decode;
use kube_sim::json::json_text;
use kube_sim::kind::Kind;
use kube_sim::meta;
use kube_sim::patch;
use kube_sim::status::{self, Failure};
use kube_sim::store::Tables;
use serde_json::Value;

pub use self::call::{ANSWER_LIMIT, Call, NoAnswer, Place, Webhooks};
pub(crate) use self::check::check;
pub(crate) use self::hearing::{Hearing, Next};
use self::hook::{Hook, OnFailure, Sort};
use crate::asked::{Asked, GROUP};
use crate::policies;

/// Whether webhooks may change what is written.
pub(crate) fn may_mutate(state: &Tables, kind: &Kind) -> bool {
    !is_exempt(kind) && hook::are_any(state, Sort::Mutating)
}

/// What is to be written, as the mutating webhooks want it: each sees what those before it made.
/// `asked` has the object as it was.
///
/// # Errors
/// The refusal of the first that denies it, 500 for one that can't be asked or whose patch doesn't
/// apply; and while one has to be heard first, what nobody is told.
pub(crate) fn mutate(
    state: &Tables,
    asked: &Asked<'_>,
    hearing: &Hearing,
    mut object: Value,
) -> Result<Value, Failure> {
    if !may_mutate(state, asked.kind) {
        return Ok(object);
    }
    for hook in hook::all(state, Sort::Mutating) {
        let asked = Asked { write: AdmissionRequest { object: Some(&object), ..asked.write }, ..*asked };
        let Some((version, outcome)) = consult(state, &hook, &asked, hearing)? else { continue };
        let outcome = outcome.ok_or_else(suspended)?;
        let operations = decide(&hook, outcome)?;
        if !operations.is_empty() {
            object = patched(asked.kind, &object, &version, &operations)?;
        }
    }
    Ok(object)
}

/// Asks the mutating webhooks about what is to go.
///
/// # Errors
/// As of [`mutate`]; 500 for one that wants it changed.
pub(crate) fn before_deletion(state: &Tables, asked: &Asked<'_>, hearing: &Hearing) -> Result<(), Failure> {
    if !may_mutate(state, asked.kind) {
        return Ok(());
    }
    for hook in hook::all(state, Sort::Mutating) {
        let Some((_, outcome)) = consult(state, &hook, asked, hearing)? else { continue };
        if !decide(&hook, outcome.ok_or_else(suspended)?)?.is_empty() {
            let name = &hook.name;
            let why = format!(
                "admission webhook {name:?} attempted to modify the object, which is not supported for this operation"
            );
            return Err(status::internal_error(&why));
        }
    }
    Ok(())
}

/// Has the validating webhooks judge a write. All of them are asked, those that have to be heard
/// yet at once.
///
/// # Errors
/// As of [`mutate`]. Of several refusals the first counts, in order of names.
pub(crate) fn validate(state: &Tables, asked: &Asked<'_>, hearing: &Hearing) -> Result<(), Failure> {
    if is_exempt(asked.kind) {
        return Ok(());
    }
    let mut outcomes = Vec::new();
    for hook in hook::all(state, Sort::Validating) {
        if let Some((_, outcome)) = consult(state, &hook, asked, hearing)? {
            outcomes.push((hook, outcome));
        }
    }
    if outcomes.iter().any(|(_, outcome)| outcome.is_none()) {
        return Err(suspended());
    }
    outcomes.into_iter().filter_map(|(hook, outcome)| Some((hook, outcome?))).try_for_each(|(hook, outcome)| {
        decide(&hook, outcome)?;
        Ok(())
    })
}

/// What judges is not judged, or nobody could mend it.
fn is_exempt(kind: &Kind) -> bool {
    kind.group == GROUP
}

/// A webhook's say, and the version at which it sees the object; nothing where it isn't concerned,
/// and no say yet where it has to be heard first.
fn consult(
    state: &Tables,
    hook: &Hook,
    asked: &Asked<'_>,
    hearing: &Hearing,
) -> Result<Option<(String, Option<hearing::Outcome>)>, Failure> {
    let namespace = policies::namespace_of(state, asked);
    let Some(version) = matching::version(state, hook, asked, namespace.as_ref()) else { return Ok(None) };
    let request = asked.request(&version, asked.version);
    match policies::conditions(asked, &request, namespace.as_ref(), &hook.conditions) {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(_) if hook.on_failure == OnFailure::Ignore => return Ok(None),
        Err(why) => return Err(status::forbidden(asked.kind, meta::name(asked.about()), &why)),
    }
    if asked.dry_run && !hook.is_harmless {
        return Err(status::bad_request(format!("admission webhook {:?} does not support dry run", hook.name)));
    }
    let request = review::request(asked, request, &version);
    Ok(Some((version, hearing.ask(hook, &request))))
}

/// What a say comes to: a patch, if any.
fn decide(hook: &Hook, outcome: hearing::Outcome) -> Result<Vec<PatchOperation>, Failure> {
    match outcome {
        Ok(review::Verdict::Allowed(operations)) => Ok(operations),
        Ok(review::Verdict::Denied(status)) => Err(status),
        Err(_) if hook.on_failure == OnFailure::Ignore => Ok(Vec::new()),
        Err(why) => Err(status::internal_error(&format!("failed calling webhook {:?}: {why}", hook.name))),
    }
}

/// An object after a webhook's patch, decoded again.
fn patched(kind: &Kind, object: &Value, version: &str, operations: &[PatchOperation]) -> Result<Value, Failure> {
    let mut new = review::at_version(kind, object, version);
    let mut copied = 0;
    for operation in operations {
        if let PatchOperation::Copy(copy) = operation {
            copied += new.pointer(copy.from.as_str()).map_or(0, |value| json_text(value).len());
            if copied > ANSWER_LIMIT {
                let why = format!("the patch of a webhook copies more than {ANSWER_LIMIT} bytes");
                return Err(status::internal_error(&why));
            }
        }
        if !patch::apply_operation(&mut new, operation) {
            return Err(status::internal_error(&review::does_not_apply(operation)));
        }
    }
    if !new["metadata"].is_object() {
        return Err(status::internal_error("the patch of a webhook leaves no object with metadata"));
    }
    new["apiVersion"] = object["apiVersion"].clone();
    // Who owns what is the server's business.
    meta::copy(object, &mut new, "managedFields");
    decode::after_admission(kind, meta::namespace(object), &mut new)?;
    Ok(new)
}
