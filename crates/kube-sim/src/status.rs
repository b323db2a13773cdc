//! Failures, in the shape and the words of a real API server.
//!
//! Every handler returns a boxed [`Status`]; field errors are collected in a list and become one
//! `422 Invalid` that names them all. The texts follow `k8s.io/apimachinery` 0.34
//! (`pkg/api/errors`, `pkg/util/validation/field`), because people and tests read them.

use kube::core::Status;
use kube::core::response::{StatusCause, StatusDetails, reason};
use serde_json::Value;

use super::kind::{Family, Kind};
use super::store::Place;

/// What every handler fails with: the `Status` object that goes out as the response body.
pub(crate) type Failure = Box<Status>;

/// The class of a [`FieldError`]; decides its reason and how its text starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldErrorKind {
    Required,
    Invalid,
    TypeInvalid,
    NotSupported,
    NotFound,
    Duplicate,
    Forbidden,
    TooLong,
    TooMany,
}

impl FieldErrorKind {
    /// The machine-readable reason that a status cause carries.
    fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::NotFound => "FieldValueNotFound",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
        }
    }

    /// The words a person reads first.
    fn title(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::NotFound => "Not found",
            Self::Duplicate => "Duplicate value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        }
    }

    /// While one of these stands, a server doesn't run the CEL rules (`hasBlockingErr`).
    pub(crate) fn blocks_rules(self) -> bool {
        matches!(self, Self::Required | Self::TypeInvalid | Self::NotSupported | Self::TooLong | Self::TooMany)
    }
}

/// One field that breaks a rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldError {
    pub(crate) kind: FieldErrorKind,
    /// Path as the server prints it: `spec.names[0]`, `<nil>` for none.
    pub(crate) path: String,
    /// The offending value; not shown for the kinds that hide it.
    pub(crate) value: Value,
    pub(crate) detail: String,
}

impl FieldError {
    pub(crate) fn new(kind: FieldErrorKind, path: &str, value: Value, detail: impl Into<String>) -> Self {
        let path = if path.is_empty() { "<nil>".to_owned() } else { path.to_owned() };
        Self { kind, path, value, detail: detail.into() }
    }

    pub(crate) fn required(path: &str, detail: &str) -> Self {
        Self::new(FieldErrorKind::Required, path, Value::Null, detail)
    }

    pub(crate) fn invalid(path: &str, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Invalid, path, value.into(), detail)
    }

    pub(crate) fn forbidden(path: &str, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Forbidden, path, Value::Null, detail)
    }

    pub(crate) fn duplicate(path: &str, value: Value) -> Self {
        Self::new(FieldErrorKind::Duplicate, path, value, "")
    }

    pub(crate) fn not_found(path: &str, name: &str) -> Self {
        Self::new(FieldErrorKind::NotFound, path, name.into(), "")
    }

    /// A text that is none of those that are `supported`.
    pub(crate) fn not_supported(path: &str, text: &str, supported: &[&str]) -> Self {
        let list: Vec<String> = supported.iter().map(|one| format!("{one:?}")).collect();
        let detail = format!("supported values: {}", list.join(", "));
        Self::new(FieldErrorKind::NotSupported, path, text.into(), detail)
    }

    pub(crate) fn too_long(path: &str, limit: i64) -> Self {
        let unit = if limit == 1 { "byte" } else { "bytes" };
        Self::new(FieldErrorKind::TooLong, path, Value::Null, format!("may not be more than {limit} {unit}"))
    }

    pub(crate) fn too_many(path: &str, actual: usize, limit: i64) -> Self {
        let unit = if limit == 1 { "item" } else { "items" };
        Self::new(FieldErrorKind::TooMany, path, actual.into(), format!("must have at most {limit} {unit}"))
    }

    pub(crate) fn immutable(path: &str, value: Value) -> Self {
        Self::invalid(path, value, "field is immutable")
    }

    /// The text without the path.
    pub(crate) fn body(&self) -> String {
        use FieldErrorKind as K;
        let mut text = match self.kind {
            K::Required | K::Forbidden | K::TooLong => self.kind.title().to_owned(),
            _ => match &self.value {
                Value::String(text) => format!("{}: {text:?}", self.kind.title()),
                other => format!("{}: {other}", self.kind.title()),
            },
        };
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

/// `422 Invalid` with every error as a cause. `kind` is the qualified kind, such as
/// `BucketClaim.broker.stowage.io`.
pub(crate) fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Failure {
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

/// `422 Invalid` for an object of `kind`.
pub(crate) fn invalid_object(kind: &Kind, name: &str, errors: &[FieldError]) -> Failure {
    // An event is a core object inside the server, whichever door it came through.
    let group = if matches!(kind.family, Family::Event | Family::CoreEvent) { "" } else { &kind.group };
    invalid(group, &kind.kind, name, errors)
}

/// Details with nothing in them (the type has no `Default`).
pub(crate) fn no_details() -> StatusDetails {
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

/// `404` for an object that isn't there.
pub(crate) fn not_found(kind: &Kind, name: &str) -> Failure {
    Status::failure(&format!("{} {name:?} not found", kind.qualified_resource()), reason::NOT_FOUND)
        .with_code(404)
        .with_details(about(kind, name))
        .boxed()
}

/// `409 AlreadyExists`: a create on a taken name.
pub(crate) fn already_exists(kind: &Kind, name: &str) -> Failure {
    Status::failure(&format!("{} {name:?} already exists", kind.qualified_resource()), reason::ALREADY_EXISTS)
        .with_code(409)
        .with_details(about(kind, name))
        .boxed()
}

/// `409 Conflict` with the given explanation.
pub(crate) fn conflict(kind: &Kind, name: &str, why: &str) -> Failure {
    let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", kind.qualified_resource());
    Status::failure(&message, reason::CONFLICT).with_code(409).with_details(about(kind, name)).boxed()
}

/// `409 Conflict`: the resourceVersion that was sent is not the current one.
pub(crate) fn stale(kind: &Kind, name: &str) -> Failure {
    let why = "the object has been modified; please apply your changes to the latest version and try again";
    conflict(kind, name, why)
}

/// `409 Conflict`: another object of this name has taken the place of the one meant. The text is
/// what a server's storage says, its key included.
pub(crate) fn wrong_uid(kind: &Kind, place: &Place, expected: &str, actual: &str) -> Failure {
    let group = if kind.is_custom() { format!("{}/", kind.group) } else { String::new() };
    let namespace = if kind.is_namespaced() { format!("{}/", place.namespace) } else { String::new() };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{group}{}/{namespace}{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {expected}, UID in object meta: {actual}",
        kind.plural, place.name,
    );
    conflict(kind, &place.name, &why)
}

/// `409 Conflict`: a precondition of a DELETE doesn't hold. A server names the kind here where it
/// names the resource elsewhere.
pub(crate) fn precondition_failed(kind: &Kind, name: &str, why: &str) -> Failure {
    // An Event is one of the core group to those who write this.
    let group =
        if matches!(kind.family, Family::Event | Family::CoreEvent) { String::new() } else { kind.group.clone() };
    let qualified = qualified_kind(&group, &kind.kind);
    let details = StatusDetails { kind: kind.kind.clone(), group, ..about(kind, name) };
    Status::failure(&format!("Operation cannot be fulfilled on {qualified} {name:?}: {why}"), reason::CONFLICT)
        .with_code(409)
        .with_details(details)
        .boxed()
}

/// `403 Forbidden` with the given explanation.
pub(crate) fn forbidden(kind: &Kind, name: &str, why: &str) -> Failure {
    let message = format!("{} {name:?} is forbidden: {why}", kind.qualified_resource());
    Status::failure(&message, reason::FORBIDDEN).with_code(403).with_details(about(kind, name)).boxed()
}

/// `403 Forbidden`: nothing new may be made in a namespace that is going away.
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

/// `400 BadRequest`.
pub(crate) fn bad_request(message: impl AsRef<str>) -> Failure {
    Status::failure(message.as_ref(), reason::BAD_REQUEST).with_code(400).boxed()
}

/// `413`: the body is longer than so many bytes.
pub(crate) fn body_too_large(limit: usize) -> Failure {
    let text = format!("Request entity too large: limit is {limit}");
    Status::failure(&text, "RequestEntityTooLarge").with_code(413).with_details(no_details()).boxed()
}

/// `500` without a reason: what a server makes of an error that it has no class for.
pub(crate) fn unclassified(message: &str) -> Failure {
    Status::failure(message, reason::UNKNOWN).with_code(500).boxed()
}

/// `500` for what went wrong in the server's own business.
pub(crate) fn internal_error(why: &str) -> Failure {
    let cause = StatusCause { reason: String::new(), message: why.to_owned(), field: String::new() };
    Status::failure(&format!("Internal error occurred: {why}"), reason::INTERNAL_ERROR)
        .with_code(500)
        .with_details(StatusDetails { causes: vec![cause], ..no_details() })
        .boxed()
}

/// `504 Timeout`: a write took longer than writes may.
pub(crate) fn too_late() -> Failure {
    let text = "Timeout: request did not complete within requested timeout";
    Status::failure(text, reason::TIMEOUT).with_code(504).with_details(no_details()).boxed()
}

/// `405` for a verb that the resource doesn't have.
pub(crate) fn method_not_allowed() -> Failure {
    let text = "the server does not allow this method on the requested resource";
    Status::failure(text, reason::METHOD_NOT_ALLOWED).with_code(405).with_details(no_details()).boxed()
}

/// `404` for a path that names no resource, such as a subresource that the kind doesn't have.
pub(crate) fn no_such_resource() -> Failure {
    let text = "the server could not find the requested resource";
    Status::failure(text, reason::NOT_FOUND).with_code(404).with_details(no_details()).boxed()
}

/// `415` for a patch format that the resource doesn't take.
pub(crate) fn unsupported_media_type(accepted: &str) -> Failure {
    let text = format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
    Status::failure(&text, reason::UNSUPPORTED_MEDIA_TYPE).with_code(415).boxed()
}

/// `415` as it is said before a request comes to the resource's handler.
pub(crate) fn unsupported_by_route() -> Failure {
    let (text, details) = ("415: Unsupported Media Type", no_details());
    Status::failure(text, reason::UNSUPPORTED_MEDIA_TYPE).with_code(415).with_details(details).boxed()
}

/// `410 Expired`: the asked-for version is no longer remembered.
pub(crate) fn expired(asked: u64, oldest: u64) -> Failure {
    let text = format!("too old resource version: {asked} ({oldest})");
    Status::failure(&text, reason::EXPIRED).with_code(410).boxed()
}

/// `504 Timeout`: the asked-for version lies in the future.
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
