//! Admission webhooks (`admissionregistration.k8s.io/v1`): review writes through a front, as the
//! API server's plugins do (`k8s.io/apiserver/pkg/admission/plugin/webhook`).
//!
//! Nothing here opens a socket: the caller that sets up a front provides the implementation of
//! calls ([`Webhooks`]).
//!
//! A write runs under the cluster's lock, and no lock is held during a call. So a request is
//! attempted. When an attempt reaches a webhook without an answer yet, it changes nothing and
//! records the call in the [`Hearing`]. After the answer, the request is attempted again from the
//! beginning. An answer is valid only for exactly the review that it was given to. So if another
//! write came in between, the webhook is called again, as on a server when a write meets a
//! conflict.
//!
//! [`hook`] decodes configurations, [`check`] validates them, [`matching`] selects the webhooks of
//! a request, [`review`] encodes reviews and decodes answers, [`hearing`] keeps calls and answers.
//! The server's own writes, and writes through `Cluster`'s methods, are not reviewed.

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

/// Returns true if webhooks may change the object of a write.
pub(crate) fn may_mutate(state: &Tables, kind: &Kind) -> bool {
    !is_exempt(kind) && hook::are_any(state, Sort::Mutating)
}

/// Returns the object to be written after the mutating webhooks. Each sees the changes of those
/// before it. `asked` has the object as it was sent.
///
/// # Errors
/// Returns the refusal of the first webhook that denies the write, or 500 for one that can't be
/// called or whose patch doesn't apply. While a webhook has to be called first, returns an error
/// that is never shown.
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

/// Calls the mutating webhooks for a deletion.
///
/// # Errors
/// See [`mutate`]; also returns 500 for a webhook that wants to change the object.
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

/// Calls the validating webhooks for a write. All of them are called, the pending ones
/// concurrently.
///
/// # Errors
/// See [`mutate`]. Of several refusals the first by name is returned.
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

/// True for policies and webhook configurations: if they were reviewed, nobody could repair a
/// broken one.
fn is_exempt(kind: &Kind) -> bool {
    kind.group == GROUP
}

/// Returns a webhook's outcome and the version of the object that it sees. Returns `None` if the
/// webhook doesn't match, and no outcome if it has to be called first.
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

/// Turns a webhook's outcome into a patch, which may be empty, or a refusal.
fn decide(hook: &Hook, outcome: hearing::Outcome) -> Result<Vec<PatchOperation>, Failure> {
    match outcome {
        Ok(review::Verdict::Allowed(operations)) => Ok(operations),
        Ok(review::Verdict::Denied(status)) => Err(status),
        Err(_) if hook.on_failure == OnFailure::Ignore => Ok(Vec::new()),
        Err(why) => Err(status::internal_error(&format!("failed calling webhook {:?}: {why}", hook.name))),
    }
}

/// Applies a webhook's patch to an object and decodes the result again.
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
    // Only the server changes `managedFields`.
    meta::copy(object, &mut new, "managedFields");
    decode::after_admission(kind, meta::namespace(object), &mut new)?;
    Ok(new)
}
