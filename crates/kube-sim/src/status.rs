//! Failures, with the structure and messages of a real API server.
//!
//! Every handler returns a boxed [`Status`]. Field errors are collected in a list and become one
//! `422 Invalid` with all of them. The messages follow `k8s.io/apimachinery` 0.34
//! (`pkg/api/errors`, `pkg/util/validation/field`), because users and tests read them.

use kube::core::Status;
use kube::core::response::{StatusCause, StatusDetails, reason};

use super::kind::{Family, Kind};
use super::store::Place;

pub use super::field_error::{FieldError, FieldErrorKind};

/// Error type of every handler: the `Status` object sent as the response body.
pub type Failure = Box<Status>;

/// Returns `422 Invalid` with every error as a cause. The message has the qualified kind, such as
/// `BucketClaim.broker.stowage.io`.
pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Failure {
    let mut texts: Vec<String> = Vec::new();
    let mut causes = Vec::new();
    for error in errors {
        let text = error.to_string();
        if texts.contains(&text) {
            continue;
        }
        texts.push(text);
        causes.push(StatusCause {
            reason: error.kind.reason().into(),
            message: error.body(),
            field: error.path.clone(),
        });
    }
    let summary = match texts.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    };
    let qualified = qualified_kind(group, kind);
    let details = StatusDetails { name: name.into(), group: group.into(), kind: kind.into(), ..no_details() };
    let details = StatusDetails { causes, ..details };
    Status::failure(&format!("{qualified} {name:?} is invalid: {summary}"), reason::INVALID)
        .with_code(422)
        .with_details(details)
        .boxed()
}

fn qualified_kind(group: &str, kind: &str) -> String {
    if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") }
}

/// Returns `422 Invalid` for an object of `kind`.
pub(crate) fn invalid_object(kind: &Kind, name: &str, errors: &[FieldError]) -> Failure {
    // Inside the server an Event is a core object, whichever group the request named.
    let group = if matches!(kind.family, Family::Event | Family::CoreEvent) { "" } else { &kind.group };
    invalid(group, &kind.kind, name, errors)
}

/// Returns empty details (the type has no `Default`).
pub fn no_details() -> StatusDetails {
    StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds: 0,
    }
}

fn about(kind: &Kind, name: &str) -> StatusDetails {
    StatusDetails { name: name.into(), group: kind.group.clone(), kind: kind.plural.clone(), ..no_details() }
}

/// Returns `404` for an object that does not exist.
pub fn not_found(kind: &Kind, name: &str) -> Failure {
    Status::failure(&format!("{} {name:?} not found", kind.qualified_resource()), reason::NOT_FOUND)
        .with_code(404)
        .with_details(about(kind, name))
        .boxed()
}

/// Returns `409 AlreadyExists` for a create on a taken name.
pub(crate) fn already_exists(kind: &Kind, name: &str) -> Failure {
    Status::failure(&format!("{} {name:?} already exists", kind.qualified_resource()), reason::ALREADY_EXISTS)
        .with_code(409)
        .with_details(about(kind, name))
        .boxed()
}

/// Returns `409 Conflict` with the given explanation.
pub(crate) fn conflict(kind: &Kind, name: &str, why: &str) -> Failure {
    let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", kind.qualified_resource());
    Status::failure(&message, reason::CONFLICT).with_code(409).with_details(about(kind, name)).boxed()
}

/// Returns `409 Conflict` for a resourceVersion that is not the current one.
pub fn stale(kind: &Kind, name: &str) -> Failure {
    let why = "the object has been modified; please apply your changes to the latest version and try again";
    conflict(kind, name, why)
}

/// Returns `409 Conflict` for an object that was replaced by another one of the same name. The
/// message is that of the server's storage, including the key.
pub(crate) fn wrong_uid(kind: &Kind, place: &Place, expected: &str, actual: &str) -> Failure {
    let group = if kind.is_custom() { format!("{}/", kind.group) } else { String::new() };
    let namespace = if kind.is_namespaced() { format!("{}/", place.namespace) } else { String::new() };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{group}{}/{namespace}{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {expected}, UID in object meta: {actual}",
        kind.plural, place.name,
    );
    conflict(kind, &place.name, &why)
}

/// Returns `409 Conflict` for a failed precondition of a DELETE. Other conflicts of a server name
/// the resource; this one names the kind.
pub(crate) fn precondition_failed(kind: &Kind, name: &str, why: &str) -> Failure {
    // The code that produces this message treats an Event as a core object.
    let group =
        if matches!(kind.family, Family::Event | Family::CoreEvent) { String::new() } else { kind.group.clone() };
    let qualified = qualified_kind(&group, &kind.kind);
    let details = StatusDetails { kind: kind.kind.clone(), group, ..about(kind, name) };
    Status::failure(&format!("Operation cannot be fulfilled on {qualified} {name:?}: {why}"), reason::CONFLICT)
        .with_code(409)
        .with_details(details)
        .boxed()
}

/// Returns `403 Forbidden` with the given explanation.
pub fn forbidden(kind: &Kind, name: &str, why: &str) -> Failure {
    let message = format!("{} {name:?} is forbidden: {why}", kind.qualified_resource());
    Status::failure(&message, reason::FORBIDDEN).with_code(403).with_details(about(kind, name)).boxed()
}

/// Returns `403 Forbidden` for a create in a terminating namespace.
pub(crate) fn namespace_terminating(kind: &Kind, name: &str, namespace: &str) -> Failure {
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut status = forbidden(kind, name, &why);
    if let Some(details) = &mut status.details {
        details.causes.push(StatusCause {
            reason: "NamespaceTerminating".into(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".into(),
        });
    }
    status
}

/// Returns `400 BadRequest`.
pub fn bad_request(message: impl AsRef<str>) -> Failure {
    Status::failure(message.as_ref(), reason::BAD_REQUEST).with_code(400).boxed()
}

/// Returns `413` for a body longer than `limit` bytes.
pub fn body_too_large(limit: usize) -> Failure {
    let text = format!("Request entity too large: limit is {limit}");
    Status::failure(&text, "RequestEntityTooLarge").with_code(413).with_details(no_details()).boxed()
}

/// Returns `500` without a reason, as a server does for errors without a class.
pub fn unclassified(message: &str) -> Failure {
    Status::failure(message, reason::UNKNOWN).with_code(500).boxed()
}

/// Returns `500` for an internal error of the server.
pub fn internal_error(why: &str) -> Failure {
    let cause = StatusCause { reason: String::new(), message: why.to_owned(), field: String::new() };
    Status::failure(&format!("Internal error occurred: {why}"), reason::INTERNAL_ERROR)
        .with_code(500)
        .with_details(StatusDetails { causes: vec![cause], ..no_details() })
        .boxed()
}

/// Returns `504 Timeout` for a write that took too long.
pub fn too_late() -> Failure {
    let text = "Timeout: request did not complete within requested timeout";
    Status::failure(text, reason::TIMEOUT).with_code(504).with_details(no_details()).boxed()
}

/// Returns `405` for a verb that the resource does not support.
pub fn method_not_allowed() -> Failure {
    let text = "the server does not allow this method on the requested resource";
    Status::failure(text, reason::METHOD_NOT_ALLOWED).with_code(405).with_details(no_details()).boxed()
}

/// Returns `404` for a path that is not a resource, such as a subresource that the kind does not
/// have.
pub fn no_such_resource() -> Failure {
    let text = "the server could not find the requested resource";
    Status::failure(text, reason::NOT_FOUND).with_code(404).with_details(no_details()).boxed()
}

/// Returns `415` for a patch format that the resource does not support.
pub(crate) fn unsupported_media_type(accepted: &str) -> Failure {
    let text = format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
    Status::failure(&text, reason::UNSUPPORTED_MEDIA_TYPE).with_code(415).boxed()
}

/// Returns `415` with the message used before a request reaches the resource's handler.
pub(crate) fn unsupported_by_route() -> Failure {
    let (text, details) = ("415: Unsupported Media Type", no_details());
    Status::failure(text, reason::UNSUPPORTED_MEDIA_TYPE).with_code(415).with_details(details).boxed()
}

/// Returns `410 Expired` for a version that is no longer in the history.
pub(crate) fn expired(asked: u64, oldest: u64) -> Failure {
    let text = format!("too old resource version: {asked} ({oldest})");
    Status::failure(&text, reason::EXPIRED).with_code(410).boxed()
}

/// Returns `504 Timeout` for a version in the future.
pub(crate) fn version_too_large(asked: u64, current: u64) -> Failure {
    let cause = StatusCause {
        reason: "ResourceVersionTooLarge".into(),
        message: "Too large resource version".into(),
        field: String::new(),
    };
    let details = StatusDetails { causes: vec![cause], retry_after_seconds: 1, ..no_details() };
    Status::failure(&format!("Timeout: Too large resource version: {asked}, current: {current}"), reason::TIMEOUT)
        .with_code(504)
        .with_details(details)
        .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_error_stands_bare_and_several_stand_in_brackets() {
        let one = invalid("g.io", "Thing", "x", &[FieldError::required("spec.a", "")]);
        assert_eq!(one.message, r#"Thing.g.io "x" is invalid: spec.a: Required value"#);
        assert_eq!(one.code, 422);
        let two = invalid("", "Secret", "x", &[FieldError::invalid("a", "v", "bad"), FieldError::too_many("b", 3, 1)]);
        assert_eq!(
            two.message,
            r#"Secret "x" is invalid: [a: Invalid value: "v": bad, b: Too many: 3: must have at most 1 item]"#
        );
        let causes = two.details.expect("an Invalid status has details").causes;
        assert_eq!(causes[1].reason, "FieldValueTooMany");
        assert_eq!(causes[1].field, "b");
    }

    #[test]
    fn a_repeated_error_is_told_once() {
        let error = FieldError::too_long("spec.a", 63);
        let status = invalid("", "Secret", "x", &[error.clone(), error]);
        assert_eq!(status.message, r#"Secret "x" is invalid: spec.a: Too long: may not be more than 63 bytes"#);
    }
}
