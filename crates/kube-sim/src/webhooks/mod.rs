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

mod asking;
mod check;
mod hearing;
mod hook;
mod matching;
mod review;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::request::Parts;
use json_patch::PatchOperation;
use serde_json::Value;

pub(crate) use self::asking::{Asking, RequestedVersion, delete_options, write_options};
pub(crate) use self::check::check;
pub(crate) use self::hearing::{Hearing, Next};
use self::hook::{Hook, OnFailure, Sort};
use super::decode::{self, FieldValidation, Origin};
use super::kind::Kind;
use super::meta;
use super::output::json_text;
use super::patch;
use super::policies::{self, Admission};
use super::status::{self, Failure};
use super::store::State;

const GROUP: &str = "admissionregistration.k8s.io";
const VERSION: &str = "v1";

/// Most bytes of a webhook's answer that are taken: 3 MiB, as of a request.
pub const ANSWER_LIMIT: usize = 3 * 1024 * 1024;

/// Calls admission webhooks, in the place of a network that this crate doesn't have.
pub trait Webhooks: Send + Sync {
    /// Sends a review to a webhook by POST, as JSON, and gives the body of its answer: one of at
    /// most [`ANSWER_LIMIT`] bytes. No redirect is followed. After [`Call::timeout`] nobody waits
    /// for it any more, and the future is dropped.
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Bytes, NoAnswer>>;
}

/// What a webhook is to be asked.
#[derive(Clone)]
pub struct Call {
    /// Where: `https://…`, with the seconds that there are in its query.
    pub url: String,
    /// What that names.
    pub place: Place,
    /// Whose certificates are believed, in PEM; empty for the system's authorities.
    pub ca_bundle: Vec<u8>,
    /// An `AdmissionReview`. It holds the whole object, which may be a Secret.
    pub review: Bytes,
    /// How long it has.
    pub timeout: Duration,
}

/// What a URL of a webhook names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A host (`clientConfig.url`).
    Host,
    /// A Service in the cluster (`clientConfig.service`).
    Service,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Call");
        out.field("url", &self.url).field("place", &self.place).field("timeout", &self.timeout);
        out.finish_non_exhaustive()
    }
}

/// Why a webhook has no say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// No answer came, and why.
    Unreached(String),
    /// It answered with another code than one of success, and with this text, if it was one.
    Refused {
        /// Of HTTP.
        code: u16,
        /// What is shown of it is cut off.
        text: Option<String>,
    },
}

/// Whether webhooks may change what is written.
pub(crate) fn may_mutate(state: &State, kind: &Kind, asking: Option<&Asking>) -> bool {
    asking.is_some_and(|asking| asking.hearing.is_some()) && !is_exempt(kind) && hook::are_any(state, Sort::Mutating)
}

/// What is to be written, as the mutating webhooks want it: each sees what those before it made.
/// `asked` has the object as it was.
///
/// # Errors
/// The refusal of the first that denies it, 500 for one that can't be asked or whose patch doesn't
/// apply; and while one has to be heard first, what nobody is told.
pub(crate) fn mutate(
    state: &State,
    asked: &Admission<'_>,
    asking: &Asking,
    mut object: Value,
) -> Result<Value, Failure> {
    if !may_mutate(state, asked.kind, Some(asking)) {
        return Ok(object);
    }
    for hook in hook::all(state, Sort::Mutating) {
        let asked = Admission { object: Some(&object), ..*asked };
        let Some((version, outcome)) = consult(state, &hook, &asked, asking)? else { continue };
        let outcome = outcome.ok_or_else(unheard)?;
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
pub(crate) fn before_deletion(state: &State, asked: &Admission<'_>, asking: &Asking) -> Result<(), Failure> {
    if !may_mutate(state, asked.kind, Some(asking)) {
        return Ok(());
    }
    for hook in hook::all(state, Sort::Mutating) {
        let Some((_, outcome)) = consult(state, &hook, asked, asking)? else { continue };
        if !decide(&hook, outcome.ok_or_else(unheard)?)?.is_empty() {
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
pub(crate) fn validate(state: &State, asked: &Admission<'_>, asking: &Asking) -> Result<(), Failure> {
    if asking.hearing.is_none() || is_exempt(asked.kind) {
        return Ok(());
    }
    let mut outcomes = Vec::new();
    for hook in hook::all(state, Sort::Validating) {
        if let Some((_, outcome)) = consult(state, &hook, asked, asking)? {
            outcomes.push((hook, outcome));
        }
    }
    if outcomes.iter().any(|(_, outcome)| outcome.is_none()) {
        return Err(unheard());
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
    state: &State,
    hook: &Hook,
    asked: &Admission<'_>,
    asking: &Asking,
) -> Result<Option<(String, Option<hearing::Outcome>)>, Failure> {
    let Some(hearing) = &asking.hearing else { return Ok(None) };
    let requested = asking.version.as_deref().unwrap_or(&asked.kind.version);
    let namespace = policies::namespace_of(state, asked);
    let Some(version) = matching::version(state, hook, asked, requested, namespace.as_ref()) else { return Ok(None) };
    let request = asked.request(&version, requested);
    match policies::conditions(asked, &request, namespace.as_ref(), &hook.conditions) {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(_) if hook.on_failure == OnFailure::Ignore => return Ok(None),
        Err(why) => return Err(status::forbidden(asked.kind, meta::name(asked.about()), &why)),
    }
    if asking.dry_run && !hook.is_harmless {
        return Err(status::bad_request(format!("admission webhook {:?} does not support dry run", hook.name)));
    }
    let request = review::request(asked, request, &version, &asking.options);
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
    decode::settle_envelope(kind, meta::namespace(object), &mut new)?;
    let shaped = decode::shape(kind, &mut new, FieldValidation::Ignore, Origin::Body);
    shaped.map_err(|failure| status::internal_error(&failure.message))?;
    Ok(new)
}

/// Ends a try that has to wait, though what it met was passed over.
///
/// # Errors
/// What nobody is told, while somebody has to be heard.
pub(crate) fn require_heard(asking: Option<&Asking>) -> Result<(), Failure> {
    let hearing = asking.and_then(|asking| asking.hearing.as_ref());
    if hearing.is_some_and(|hearing| hearing.is_open()) { Err(unheard()) } else { Ok(()) }
}

/// Whether a request is tried for the first time.
pub(crate) fn is_first_try(head: &Parts) -> bool {
    head.extensions.get::<Arc<Hearing>>().is_none_or(|hearing| hearing.is_first_try())
}

/// What a try ends with that has to wait. It is tried again before anybody is told.
fn unheard() -> Failure {
    status::unclassified("a webhook has to be heard first")
}
