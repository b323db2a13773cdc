//! Calls to the API server: their deadlines, the limits of their answers, and the meaning of their
//! errors.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use http_body::Frame;
use http_body_util::{BodyDataStream, BodyExt, Either, StreamBody};
use kube::api::{Patch, PatchParams};
use kube::client::Body;
use kube::core::{NamespaceResourceScope, Status};
use kube::{Api, Client, Error, Resource};
use serde_json::Value;
use tokio::time::{Instant, timeout};
use tower::{BoxError, service_fn};

use crate::api::shortened;
use crate::managed_fields::without_managed_fields;
use crate::mandate::{Mandate, NoMandate};
use crate::pages::{self, Size};
use crate::plan::{Failure, Part};

/// Name of this controller in Events and field managers.
pub(crate) const CONTROLLER: &str = "stowage-operator";

/// Maximum time for the body of an answer, however steadily it arrives. The server's own default
/// for a whole request is a minute.
const LONGEST: Duration = Duration::from_secs(120);

/// A watch that ends sooner counts as failed.
///
/// kube-runtime treats every end as the regular timeout and reconnects at once. If a server or a
/// proxy ends each watch at once, that would be a busy loop.
const SHORTEST_WATCH: Duration = Duration::from_secs(1);

/// Maximum time until the head of an answer, and between two pieces of its body. It doesn't apply
/// to the body of a watch, which kube-runtime bounds.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// Wraps a client so that every call has a deadline.
///
/// kube's client has none, so one lost answer would block its caller for ever. The wrapper also
/// makes answers readable whatever others have written into `managedFields`, and sends nothing but
/// GET without a mandate.
pub(crate) fn guarded(client: Client, mandate: Mandate) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = service_fn(move |request: http::Request<Body>| {
        let client = client.clone();
        let permit = (request.method() != http::Method::GET).then(|| mandate.permit()).transpose();
        async move {
            let permit = permit?;
            let answered = pages::ask(request, move |request, most| answer(client.clone(), request, most)).await;
            if let Some(permit) = permit {
                permit.over();
            }
            answered
        }
    });
    Client::new(service, namespace)
}

/// Returns the API of a kind, cluster-wide or in one namespace.
pub(crate) fn within<K>(client: &Client, part: &Part) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    match part {
        Part::All => Api::all(client.clone()),
        Part::Namespace(namespace) => Api::namespaced(client.clone(), namespace),
    }
}

/// Returns the reason if a request was not sent for lack of a mandate.
fn no_mandate(error: &Error) -> Option<NoMandate> {
    std::iter::successors(Some(error as &(dyn std::error::Error + 'static)), |error| error.source())
        .find_map(|cause| cause.downcast_ref().copied())
}

/// A deadline that the API server missed. The request may have taken effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Late {
    /// No head of an answer arrived.
    #[error("the API server did not begin its answer within {} s", DEADLINE.as_secs())]
    Head,
    /// The body stalled.
    #[error("the API server's answer stopped half way: nothing more came for {} s", DEADLINE.as_secs())]
    Piece,
    /// The body did not end.
    #[error("the API server's answer did not end within {} s", LONGEST.as_secs())]
    End,
}

/// A watch that ended at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the API server ended the watch within {} s", SHORTEST_WATCH.as_secs())]
struct Short;

/// Sends a request and reads the whole answer, because kube would wait for the rest of it for ever.
/// The body of a successful watch is passed on as a stream.
///
/// # Errors
/// If there is no answer, or it breaks off, or is [`Late`].
async fn answer(
    client: Client,
    request: http::Request<Body>,
    most: usize,
) -> Result<http::Response<impl http_body::Body<Data = Bytes, Error = BoxError> + Send>, BoxError> {
    let watch = is_watch(request.uri());
    let (head, body) = timeout(DEADLINE, client.send(request)).await.map_err(|_| Late::Head)??.into_parts();
    let body = without_managed_fields(body);
    let body = if watch && head.status.is_success() {
        Either::Left(no_shorter_than(SHORTEST_WATCH, body))
    } else {
        let pieces = timeout(LONGEST, pieces(body, most)).await.map_err(|_| Late::End)??;
        Either::Right(StreamBody::new(stream::iter(pieces.into_iter().map(Ok::<_, Infallible>))))
    };
    Ok(http::Response::from_parts(head, body))
}

/// Returns true if the request is a watch.
fn is_watch(uri: &http::Uri) -> bool {
    uri.query().unwrap_or_default().split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"))
}

/// Wraps a body so that it fails if it ends sooner than `time` from now.
fn no_shorter_than(
    time: Duration,
    body: impl http_body::Body<Data = Bytes, Error = Error> + Send,
) -> impl http_body::Body<Data = Bytes, Error = BoxError> + Send {
    let began = Instant::now();
    let pieces = BodyDataStream::new(body).map(|piece| piece.map(Frame::data).map_err(BoxError::from));
    let end = stream::once(async move { (began.elapsed() < time).then(|| Err(BoxError::from(Short))) });
    StreamBody::new(pieces.chain(end.filter_map(std::future::ready)))
}

/// Reads a whole body. A piece that is ready at once costs no timer.
///
/// # Errors
/// If the body breaks off, stalls for [`DEADLINE`], or has more than `most` bytes.
async fn pieces(
    mut body: impl http_body::Body<Data = Bytes, Error = Error> + Unpin,
    most: usize,
) -> Result<Vec<Frame<Bytes>>, BoxError> {
    let (mut pieces, mut size) = (Vec::new(), Size::of(most));
    while let Some(piece) = timeout(DEADLINE, body.frame()).await.map_err(|_| Late::Piece)? {
        let piece = piece?;
        size.take(piece.data_ref())?;
        pieces.push(piece);
    }
    Ok(pieces)
}

/// Patch parameters with the field manager, for `managedFields` and audit logs.
pub(crate) fn patch_params() -> PatchParams {
    PatchParams { field_manager: Some(CONTROLLER.to_owned()), ..PatchParams::default() }
}

/// Builds a JSON patch of these operations.
///
/// # Errors
/// If an operation is malformed.
pub(crate) fn json_patch(operations: Vec<Value>) -> Result<Patch<()>, String> {
    serde_json::from_value(Value::Array(operations)).map(Patch::Json).map_err(|error| error.to_string())
}

/// Maximum length of an API server's error message, in bytes: a webhook may return any text.
const LONGEST_WORD: usize = 1024;

/// Classifies an error for the planner.
pub(crate) fn failure(error: &Error) -> Failure {
    match no_mandate(error) {
        Some(NoMandate::ReadOnly) => return Failure::ReadOnly,
        // Another leader may have changed the object.
        Some(NoMandate::NotLeading) => return Failure::Conflict,
        None => {}
    }
    let Error::Api(status) = error else { return Failure::Kubernetes(describe(error)) };
    if is_namespace_terminating(status) || is_namespace_missing(status) {
        Failure::NamespaceTerminating
    } else if status.is_conflict() || status.is_not_found() || is_failed_test(status) {
        // The decision was made on an object that has changed.
        Failure::Conflict
    } else if status.is_forbidden() || status.is_invalid() || matches!(status.code, 400 | 405 | 413 | 415) {
        Failure::Refused(describe(error))
    } else {
        Failure::Kubernetes(describe(error))
    }
}

/// Returns true if the error says that no object of this name exists.
///
/// A 404 for any other reason doesn't say that: the whole kind may be unknown for a moment.
pub(crate) fn is_absence_of(error: &Error, name: &str) -> bool {
    let Error::Api(status) = error else { return false };
    status.code == 404 && status.details.as_ref().is_some_and(|details| details.name == name)
}

/// Describes an error in one line that is stable and has no secrets: the server's own message, or
/// that there was no answer.
pub(crate) fn describe(error: &Error) -> String {
    match error {
        Error::Api(status) if !status.message.is_empty() => shortened(&status.message, LONGEST_WORD).into_owned(),
        Error::Api(status) => format!("the API server answered {}", status.code),
        Error::SerdeError(_) => "the API server's answer can't be read".to_owned(),
        error => {
            no_mandate(error).map_or_else(|| "the API server gave no answer".to_owned(), |reason| reason.to_string())
        }
    }
}

/// True for a JSON patch whose `test` failed: 422 without causes. Its reason is not Conflict.
fn is_failed_test(status: &Status) -> bool {
    let causes = status.details.as_ref().map_or(0, |details| details.causes.len());
    status.code == 422 && causes == 0
}

/// Returns true if a creation was refused because the namespace is terminating (spec §3.4).
fn is_namespace_terminating(status: &Status) -> bool {
    let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
    status.is_forbidden() && causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
}

/// Returns true if a creation failed because the namespace doesn't exist.
fn is_namespace_missing(status: &Status) -> bool {
    status.is_not_found() && status.details.as_ref().is_some_and(|details| details.kind == "namespaces")
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;
    use std::future::pending;

    use futures::Stream;
    use k8s_openapi::api::core::v1::Secret;
    use kube::ResourceExt;
    use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
    use rstest::rstest;
    use serde_json::json;
    use tokio::time::sleep;

    use super::*;

    /// An event of a watch. For any other request it is an incomplete answer.
    const EVENT: &str =
        concat!(r#"{"type":"ADDED","object":{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}}"#, "\n");

    /// The Secrets API of a server whose every answer has this status and body.
    fn secrets<S>(status: u16, body: impl Fn() -> S + Send + 'static) -> Api<Secret>
    where
        S: Stream<Item = Bytes> + Send + 'static,
    {
        let service = service_fn(move |_: http::Request<Body>| {
            let frames = body().map(|piece| Ok::<_, Infallible>(Frame::data(piece)));
            let answer = http::Response::builder().status(status).body(StreamBody::new(frames));
            async move { answer }
        });
        Api::namespaced(guarded(Client::new(service, "team-a"), Mandate::Always), "team-a")
    }

    /// A body that begins and then stalls.
    fn half() -> impl Stream<Item = Bytes> + Send {
        stream::iter([Bytes::from_static(EVENT.as_bytes())]).chain(stream::pending())
    }

    // covers: 3.4.namespace
    #[tokio::test]
    async fn a_namespace_that_is_not_there_is_no_change_of_what_was_read() {
        let answer = |kind: &str| {
            let details = json!({"name": "team-a", "kind": kind});
            json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
                "message": "not found", "details": details})
        };
        for (kind, failed) in [("namespaces", Failure::NamespaceTerminating), ("secrets", Failure::Conflict)] {
            let body = answer(kind).to_string();
            let api = secrets(404, move || stream::iter([Bytes::from(body.clone())]));
            let error = api.create(&PostParams::default(), &Secret::default()).await.expect_err("it is refused");
            assert_eq!(failure(&error), failed);
        }
    }

    /// Returns the error of a call without an answer, and the time it took.
    async fn told<T: Debug>(call: impl Future<Output = Result<T, Error>>) -> (String, Duration) {
        let began = Instant::now();
        let error = call.await.expect_err("there is no whole answer");
        assert_eq!(failure(&error), Failure::Kubernetes("the API server gave no answer".to_owned()));
        (error.to_string(), began.elapsed())
    }

    fn late(late: Late, after: Duration) -> (String, Duration) {
        (format!("ServiceError: {late}"), after)
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_does_not_begin_is_given_up() {
        let silent = service_fn(|_: http::Request<Body>| pending::<Result<http::Response<Body>, Infallible>>());
        let secrets: Api<Secret> = Api::namespaced(guarded(Client::new(silent, "team-a"), Mandate::Always), "team-a");
        assert_eq!(told(secrets.get("x")).await, late(Late::Head, DEADLINE));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_stops_half_way_is_given_up() {
        let secrets = secrets(200, half);
        assert_eq!(told(secrets.get("x")).await, late(Late::Piece, DEADLINE));
        assert_eq!(told(secrets.list(&ListParams::default())).await, late(Late::Piece, DEADLINE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_that_stops_half_way_is_given_up_also_of_a_watch() {
        let secrets = secrets(410, half);
        let watch = async { secrets.watch(&WatchParams::default(), "0").await.map(drop) };
        assert_eq!(told(watch).await, late(Late::Piece, DEADLINE));
        assert_eq!(told(secrets.get("x")).await, late(Late::Piece, DEADLINE));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_only_drips_is_given_up() {
        let drip = || stream::repeat(Bytes::from_static(b" ")).then(after_a_while);
        assert_eq!(told(secrets(200, drip).get("x")).await, late(Late::End, LONGEST));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_may_take_longer_than_the_deadline_while_it_goes_on() {
        let slow = || {
            let pieces = r#"{"metadata":{"name":"x"}}"#.as_bytes().chunks(5);
            stream::iter(pieces.map(Bytes::from_static)).then(after_a_while)
        };
        let began = Instant::now();
        let secret = secrets(200, slow).get("x").await.expect("a whole answer");
        assert_eq!((secret.name_any().as_str(), began.elapsed()), ("x", DEADLINE / 2 * 5));
    }

    async fn after_a_while(piece: Bytes) -> Bytes {
        sleep(DEADLINE / 2).await;
        piece
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_may_be_silent_for_as_long_as_it_likes() {
        let events = secrets(200, half).watch(&WatchParams::default(), "0").await.expect("a watch");
        let mut events = StreamExt::boxed(events);
        assert!(matches!(events.next().await, Some(Ok(WatchEvent::Added(_)))));
        assert!(timeout(2 * LONGEST, events.next()).await.is_err(), "it neither ends nor fails");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_ends_at_once_has_failed() {
        let ends_after = async |time: Duration| {
            let body = move || {
                let event = stream::iter([Bytes::from_static(EVENT.as_bytes())]);
                event.chain(stream::once(async move { sleep(time).await }).map(|()| Bytes::new()))
            };
            let events = secrets(200, body).watch(&WatchParams::default(), "0").await.expect("a watch");
            StreamExt::boxed(events).map(|event| event.is_ok()).collect::<Vec<_>>().await
        };
        assert_eq!(ends_after(SHORTEST_WATCH / 2).await, [true, false]);
        assert_eq!(ends_after(SHORTEST_WATCH).await, [true]);
    }

    #[rstest]
    #[case("/api/v1/secrets?&watch=true&resourceVersion=3", true)]
    #[case("/api/v1/secrets?watch=1", true)]
    #[case("/api/v1/secrets?&limit=500&labelSelector=watch%3Dtrue", false)]
    #[case("/api/v1/namespaces/watch/secrets/watch", false)]
    fn only_what_asks_to_watch_is_a_watch(#[case] uri: &'static str, #[case] expected: bool) {
        assert_eq!(is_watch(&http::Uri::from_static(uri)), expected);
    }

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
