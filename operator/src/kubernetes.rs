//! Calls to the API server: how long they may take, what is read of their answers, and what it means when they fail.

use std::time::Duration;

use kube::client::Body;
use kube::core::Status;
use kube::{Client, Error};
use tower::{BoxError, service_fn};

use crate::managed_fields::without_managed_fields;
use crate::plan::Failure;

/// How long the API server may take to begin its answer. The body of a watch is no part of that: kube-runtime looks
/// after those.
const DEADLINE: Duration = Duration::from_secs(30);

/// A client whose every call ends, as kube's own has no deadline, so that one lost answer would hold its caller for ever; and
/// whose answers can be read whatever others have written into `managedFields`.
pub(crate) fn guarded(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = service_fn(move |request: http::Request<Body>| {
        let client = client.clone();
        async move {
            match tokio::time::timeout(DEADLINE, client.send(request)).await {
                Ok(answer) => answer.map(|answer| answer.map(without_managed_fields)).map_err(BoxError::from),
                Err(elapsed) => Err(elapsed.into()),
            }
        }
    });
    Client::new(service, namespace)
}

/// The failure that a plan goes on from.
pub(crate) fn failure(error: &Error) -> Failure {
    let Error::Api(status) = error else { return Failure::Kubernetes(describe(error)) };
    if status.is_conflict() || status.is_not_found() || is_failed_test(status) {
        // The object that the decision was made on is not the one that is there.
        Failure::Conflict
    } else if is_namespace_terminating(status) {
        Failure::NamespaceTerminating
    } else if status.is_forbidden() || status.is_invalid() || matches!(status.code, 400 | 405 | 413 | 415) {
        Failure::Refused(describe(error))
    } else {
        Failure::Kubernetes(describe(error))
    }
}

/// Whether an error is the server's word that there is no object of this name. A 404 for any other reason is not: the
/// whole kind may be unknown for a moment.
pub(crate) fn is_absence_of(error: &Error, name: &str) -> bool {
    let Error::Api(status) = error else { return false };
    status.code == 404 && status.details.as_ref().is_some_and(|details| details.name == name)
}

/// One line for people, stable and without secrets: the server's own message, or that there was no answer.
pub(crate) fn describe(error: &Error) -> String {
    match error {
        Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        Error::Api(status) => format!("the API server answered {}", status.code),
        Error::SerdeError(_) => "the API server's answer can't be read".to_owned(),
        _ => "the API server gave no answer".to_owned(),
    }
}

/// A JSON patch whose `test` failed: 422 without causes, no conflict by its reason.
fn is_failed_test(status: &Status) -> bool {
    let causes = status.details.as_ref().map_or(0, |details| details.causes.len());
    status.code == 422 && causes == 0
}

/// A namespace that is going away refuses creations (spec §3.4).
fn is_namespace_terminating(status: &Status) -> bool {
    let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
    status.is_forbidden() && causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[rstest]
    #[case(json!({"code": 404, "reason": "NotFound", "details": {"name": "photos", "kind": "bucketclaims"}}), true)]
    #[case(json!({"code": 404, "reason": "NotFound", "details": {"name": "other", "kind": "bucketclaims"}}), false)]
    #[case(json!({"code": 404, "reason": "NotFound", "message": "the server could not find the requested resource"}), false)]
    #[case(json!({"code": 404, "message": "404 page not found"}), false)]
    #[case(json!({"code": 403, "reason": "Forbidden", "details": {"name": "photos"}}), false)]
    #[case(json!({"code": 500, "reason": "InternalError", "details": {"name": "photos"}}), false)]
    #[case(json!({"code": 410, "reason": "Expired", "details": {"name": "photos"}}), false)]
    fn only_a_404_about_the_very_object_is_absence(#[case] status: Value, #[case] expected: bool) {
        let status: Status = serde_json::from_value(status).unwrap();
        assert_eq!(is_absence_of(&Error::Api(Box::new(status)), "photos"), expected);
    }
}
