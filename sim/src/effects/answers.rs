//! The answers of a server that refuses, byte for byte what real ones send where clients look.

use http::{Response, StatusCode, header};
use serde_json::{Value, json};

use super::call::{Call, KubeCall, KubeVerb, S3Call};
use super::fault::Fault;

/// What a fault says to a Kubernetes client.
struct KubeRefusal {
    code: u16,
    reason: &'static str,
    message: String,
    retry_after: Option<u32>,
    causes: Value,
}

impl KubeRefusal {
    fn new(code: u16, reason: &'static str, message: String) -> Self {
        Self { code, reason, message, retry_after: None, causes: Value::Null }
    }
}

/// The answer of a fault that answers; `None` for the others, and where fault and call don't belong together.
pub(super) fn refusal<B: From<Vec<u8>>>(fault: Fault, call: &Call) -> Option<Response<B>> {
    match call {
        Call::Kube(call) => kube_refusal(fault, call).map(|refusal| kube_answer(&refusal, call)),
        Call::S3(call) => s3_refusal(fault, call),
    }
}

fn kube_refusal(fault: Fault, call: &KubeCall) -> Option<KubeRefusal> {
    let object = format!("{} \"{}\"", call.qualified_resource(), call.name.as_deref().unwrap_or_default());
    let namespace = call.namespace.as_deref().unwrap_or_default();
    Some(match fault {
        Fault::Conflict => KubeRefusal::new(409, "Conflict", conflict_message(call, &object)),
        Fault::ServerError(_) => {
            KubeRefusal::new(500, "InternalError", "Internal error occurred: etcdserver: request timed out".to_owned())
        }
        Fault::Throttle { seconds } => KubeRefusal {
            retry_after: Some(seconds),
            ..KubeRefusal::new(
                429,
                "TooManyRequests",
                "The apiserver is currently overloaded, please try again later".to_owned(),
            )
        },
        Fault::Forbidden => KubeRefusal::new(403, "Forbidden", forbidden_message(call, &object)),
        Fault::Denied => KubeRefusal::new(
            400,
            "",
            "admission webhook \"policy.example.org\" denied the request: refused by policy".to_owned(),
        ),
        Fault::QuotaExceeded => KubeRefusal::new(
            403,
            "Forbidden",
            format!(
                "{object} is forbidden: exceeded quota: objects, requested: count/{0}=1, used: count/{0}=10, limited: count/{0}=10",
                call.qualified_resource()
            ),
        ),
        Fault::NamespaceTerminating => KubeRefusal {
            causes: json!([{
                "reason": "NamespaceTerminating",
                "message": format!("namespace {namespace} is being terminated"),
                "field": "metadata.namespace",
            }]),
            ..KubeRefusal::new(
                403,
                "Forbidden",
                format!(
                    "{object} is forbidden: unable to create new content in namespace {namespace} because it is being terminated"
                ),
            )
        },
        Fault::WebhookTimeout => KubeRefusal::new(
            500,
            "InternalError",
            "Internal error occurred: failed calling webhook \"policy.example.org\": failed to call webhook: Post \"https://policy.example.svc:443/validate?timeout=10s\": context deadline exceeded".to_owned(),
        ),
        Fault::ExpiredContinue => KubeRefusal::new(
            410,
            "Expired",
            "The provided continue parameter is too old to display a consistent list result. You must start a new list without the continue parameter.".to_owned(),
        ),
        _ => return None,
    })
}

/// A create has no version to conflict on; what does conflict there is the booking of its namespace's quota.
fn conflict_message(call: &KubeCall, object: &str) -> String {
    let object = match call.verb {
        KubeVerb::Create => "resourcequotas \"objects\"",
        _ => object,
    };
    format!(
        "Operation cannot be fulfilled on {object}: the object has been modified; please apply your changes to the latest version and try again"
    )
}

fn forbidden_message(call: &KubeCall, object: &str) -> String {
    let resource = match &call.subresource {
        Some(subresource) => format!("{}/{subresource}", call.resource),
        None => call.resource.clone(),
    };
    let scope = match &call.namespace {
        Some(namespace) => format!("in the namespace \"{namespace}\""),
        None => "at the cluster scope".to_owned(),
    };
    format!(
        "{object} is forbidden: User \"operator\" cannot {} resource \"{resource}\" in API group \"{}\" {scope}",
        call.verb, call.group
    )
}

fn kube_answer<B: From<Vec<u8>>>(refusal: &KubeRefusal, call: &KubeCall) -> Response<B> {
    let mut details = json!({ "kind": call.resource });
    if let Some(name) = &call.name {
        details["name"] = json!(name);
    }
    if !call.group.is_empty() {
        details["group"] = json!(call.group);
    }
    if !refusal.causes.is_null() {
        details["causes"] = refusal.causes.clone();
    }
    if let Some(seconds) = refusal.retry_after {
        details["retryAfterSeconds"] = json!(seconds);
    }
    let mut status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": refusal.message,
        "details": details,
        "code": refusal.code,
    });
    if !refusal.reason.is_empty() {
        status["reason"] = json!(refusal.reason);
    }
    let mut answer = with_body(refusal.code, "application/json", status.to_string());
    if let Some(seconds) = refusal.retry_after {
        answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    answer
}

fn s3_refusal<B: From<Vec<u8>>>(fault: Fault, call: &S3Call) -> Option<Response<B>> {
    let (code, name, message) = match fault {
        Fault::InternalError => (500, "InternalError", "We encountered an internal error. Please try again."),
        Fault::SlowDown => (503, "SlowDown", "Please reduce your request rate."),
        Fault::AccessDenied => (403, "AccessDenied", "Access Denied"),
        Fault::VerbDown(_) => (503, "ServiceUnavailable", "Service is unable to handle request."),
        Fault::AlreadyOwned => (
            409,
            "BucketAlreadyOwnedByYou",
            "Your previous request to create the named bucket succeeded and you already own it.",
        ),
        Fault::BucketExists => (
            409,
            "BucketAlreadyExists",
            "The requested bucket name is not available. The bucket namespace is shared by all users of the system. Please select a different name and try again.",
        ),
        Fault::CredentialsRevoked => {
            (403, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.")
        }
        Fault::ClockSkew => {
            (403, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large.")
        }
        Fault::ErrorIn200 => (200, "InternalError", "We encountered an internal error. Please try again."),
        Fault::NotImplemented(_) => {
            (501, "NotImplemented", "A header you provided implies functionality that is not implemented.")
        }
        Fault::Head(status) => return Some(without_body(status.code())),
        Fault::OkOnExisting => return Some(without_body(200)),
        _ => return None,
    };
    if call.operation.is_head() {
        return Some(without_body(code));
    }
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{name}</Code><Message>{message}</Message></Error>"
    );
    Some(with_body(code, "application/xml", body))
}

fn with_body<B: From<Vec<u8>>>(code: u16, content_type: &'static str, body: String) -> Response<B> {
    let mut answer = Response::new(B::from(body.into_bytes()));
    *answer.status_mut() = status(code);
    answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    answer
}

fn without_body<B: From<Vec<u8>>>(code: u16) -> Response<B> {
    let mut answer = Response::new(B::from(Vec::new()));
    *answer.status_mut() = status(code);
    answer
}

fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).expect("the codes of this file are all valid")
}
