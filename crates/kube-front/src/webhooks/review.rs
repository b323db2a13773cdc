//! Encoding of reviews and decoding of webhooks' answers (`admission.k8s.io`).

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use json_patch::PatchOperation;
use kube::core::Status;
use kube::core::response::StatusSummary;
use kube_sim::kind::Kind;
use kube_sim::status::Failure;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::NoAnswer;
use super::hook::{ReviewVersion, Sort};
use crate::asked::{Asked, options_of};

/// Maximum number of characters of an answer's text that are shown.
const SHOWN: usize = 2048;

/// A webhook's decision.
#[derive(Clone, Debug)]
pub(super) enum Verdict {
    /// Allowed, with these changes.
    Allowed(Vec<PatchOperation>),
    /// Denied, with this status for the client.
    Denied(Failure),
}

/// A webhook's decision and its warnings for the client.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub(super) verdict: Verdict,
    pub(super) warnings: Vec<String>,
}

/// Returns the `request` of a review, without its UID.
pub(super) fn request(asked: &Asked<'_>, mut request: Value, version: &str) -> Value {
    let shown = |object: Option<&Value>| object.map_or(Value::Null, |object| at_version(asked.kind, object, version));
    request["object"] = shown(asked.object);
    request["oldObject"] = shown(asked.old);
    let mut options = asked.options.clone();
    options["kind"] = options_of(asked.operation).into();
    options["apiVersion"] = "meta.k8s.io/v1".into();
    request["options"] = options;
    for name in ["subResource", "requestSubResource", "name", "namespace"] {
        if request[name] == ""
            && let Some(fields) = request.as_object_mut()
        {
            fields.remove(name);
        }
    }
    request
}

/// Returns an object at a version of its kind.
pub(super) fn at_version(kind: &Kind, object: &Value, version: &str) -> Value {
    let mut object = object.clone();
    if kind.is_custom() && object.is_object() {
        object["apiVersion"] = format!("{}/{version}", kind.group).into();
    }
    object
}

/// Returns a complete review.
pub(super) fn review(version: ReviewVersion, uid: &str, request: &Value) -> Value {
    let mut request = request.clone();
    request["uid"] = uid.into();
    json!({"kind": "AdmissionReview", "apiVersion": api_version(version), "request": request})
}

fn api_version(version: ReviewVersion) -> &'static str {
    match version {
        ReviewVersion::V1 => "admission.k8s.io/v1",
        ReviewVersion::V1Beta1 => "admission.k8s.io/v1beta1",
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    response: Option<Response>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    allowed: bool,
    status: Option<Value>,
    patch: Option<String>,
    patch_type: Option<String>,
    warnings: Option<Vec<String>>,
}

/// Decodes the answer to a review (`VerifyAdmissionResponse`).
///
/// # Errors
/// Returns the API server's message for an invalid answer.
pub(super) fn read(sort: Sort, version: ReviewVersion, name: &str, uid: &str, answer: &[u8]) -> Result<Said, String> {
    let invalid = |why: String| format!("received invalid webhook response: {why}");
    let unreadable = |why: String| format!("failed to call webhook: {why}");
    let answer: Answer = serde_json::from_slice(answer).map_err(|error| unreadable(error.to_string()))?;
    let Some(response) = answer.response else { return Err(invalid("webhook response was absent".to_owned())) };
    let patch = response.patch.as_deref().unwrap_or_default();
    let patch = BASE64_STANDARD.decode(patch).map_err(|error| unreadable(format!("response.patch: {error}")))?;
    if version == ReviewVersion::V1 {
        if response.uid != uid {
            return Err(invalid(format!("expected response.uid={uid:?}, got {:?}", response.uid)));
        }
        check_type(&answer.api_version, &answer.kind).map_err(invalid)?;
        check_patch(sort, &patch, response.patch_type.as_deref()).map_err(invalid)?;
    }
    let warnings = response.warnings.unwrap_or_default();
    if !response.allowed {
        return Ok(Said { verdict: Verdict::Denied(denied(name, response.status)), warnings });
    }
    // The rest of an answer is only for mutating webhooks.
    if patch.is_empty() || sort == Sort::Validating {
        return Ok(Said { verdict: Verdict::Allowed(Vec::new()), warnings });
    }
    let operations: Vec<PatchOperation> = serde_json::from_slice(&patch)
        .map_err(|error| format!("received undecodable patch in webhook response: {error}"))?;
    match response.patch_type.as_deref() {
        Some(other) if other != "JSONPatch" && !operations.is_empty() => {
            Err(format!("unsupported patch type {other:?}"))
        }
        _ => Ok(Said { verdict: Verdict::Allowed(operations), warnings }),
    }
}

fn check_type(api_version: &str, kind: &str) -> Result<(), String> {
    let expected = (api_version, kind) == (api_version_of_v1(), "AdmissionReview");
    let slash = if api_version.contains('/') { "" } else { "/" };
    let what = format!("{slash}{api_version}, Kind={kind}");
    if expected {
        return Ok(());
    }
    Err(format!("expected webhook response of {}, Kind=AdmissionReview, got {what}", api_version_of_v1()))
}

fn api_version_of_v1() -> &'static str {
    api_version(ReviewVersion::V1)
}

/// Checks that patch and patch type are present together, and only from a mutating webhook.
fn check_patch(sort: Sort, patch: &[u8], patch_type: Option<&str>) -> Result<(), String> {
    match (sort, patch.is_empty(), patch_type) {
        (Sort::Validating, false, _) => Err("validating webhook may not return response.patch".to_owned()),
        (Sort::Validating, true, Some(_)) => Err("validating webhook may not return response.patchType".to_owned()),
        (Sort::Mutating, false, None) => Err("webhook returned response.patch but not response.patchType".to_owned()),
        (Sort::Mutating, true, Some(_)) => Err("webhook returned response.patchType but not response.patch".to_owned()),
        (Sort::Mutating, false, Some("")) => Err("webhook returned invalid response.patchType of \"\"".to_owned()),
        (_, _, _) => Ok(()),
    }
}

/// Returns the status for the client of a denied request (`ToStatusErr`).
fn denied(name: &str, result: Option<Value>) -> Failure {
    let mut result = result.unwrap_or_default();
    let code = result["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    if let Some(fields) = result.as_object_mut() {
        fields.retain(|field, value| field != "code" && field != "status" && !value.is_null());
    }
    let mut status: Status = serde_json::from_value(result).unwrap_or_default();
    status.status = Some(StatusSummary::Failure);
    status.code = code.filter(|code| (400..=999).contains(code)).unwrap_or(400);
    let denied = format!("admission webhook {name:?} denied the request");
    status.message = match (status.message.as_str(), status.reason.as_str()) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    status.boxed()
}

/// Returns the message about a missing answer, in the words of the API server's client.
pub(super) fn no_answer(url: &str, why: NoAnswer) -> String {
    match why {
        NoAnswer::Unreached(why) => format!("failed to call webhook: Post {url:?}: {why}"),
        NoAnswer::Refused { code, text } => {
            let text = text.map(|text| text.trim().chars().take(SHOWN).collect::<String>());
            format!("failed to call webhook: {}", refused(code, &text.unwrap_or_else(|| "unknown".to_owned())))
        }
    }
}

/// `NewGenericServerResponse`.
fn refused(code: u16, text: &str) -> String {
    match code {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 | 415 => text.to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        409 => "the server reported a conflict".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
                .to_owned()
        }
        500.. => format!("an error on the server ({text:?}) has prevented the request from succeeding"),
        _ => format!("the server responded with the status code {code} but did not return more information"),
    }
}

/// Returns the message of the API server's library for an operation that doesn't apply.
pub(super) fn does_not_apply(operation: &PatchOperation) -> String {
    let missing = |what: &str| format!("{what}: missing value");
    match operation {
        PatchOperation::Add(it) => {
            missing(&format!("add operation does not apply: doc is missing path: \"{}\"", it.path))
        }
        PatchOperation::Remove(it) => {
            missing(&format!("remove operation does not apply: doc is missing path: \"{}\"", it.path))
        }
        PatchOperation::Replace(it) => {
            missing(&format!("replace operation does not apply: doc is missing path: {}", it.path))
        }
        PatchOperation::Move(it) => {
            missing(&format!("move operation does not apply: doc is missing from path: {}", it.from))
        }
        PatchOperation::Copy(it) => {
            missing(&format!("copy operation does not apply: doc is missing from path: {}", it.from))
        }
        PatchOperation::Test(it) => format!("testing value {} failed: test failed", it.path),
    }
}
