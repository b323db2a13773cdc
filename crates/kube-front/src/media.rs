//! Media types of request bodies.

use http::header;
use http::request::Parts;
use kube::core::Status;
use kube::core::response::reason;
use kube_sim::status::Failure;

/// Returns the media type of a request's body, without its parameters.
pub(super) fn media_type(head: &Parts) -> &str {
    let text = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim()
}

/// Returns `415`, after which clients try another format.
pub(super) fn unsupported(given: &str) -> Failure {
    let text = format!("the body of the request was in an unknown format - {given} is not accepted here: send JSON");
    Status::failure(&text, reason::UNSUPPORTED_MEDIA_TYPE).with_code(415).boxed()
}
