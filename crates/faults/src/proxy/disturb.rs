//! Faults of an answer that the layer leaves to the world. In a proxy, this module takes the place
//! of the world.

use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt, stream};
use http::{Request, Response, header, request::Parts};
use http_body::Frame;
use http_body_util::{BodyExt, Limited, StreamBody};
use serde_json::{Map, Value, json};
use tower::{BoxError, Service, ServiceExt};

use super::body::Body;
use super::upstream::Upstream;
use crate::{Application, Call, Fault, KubeFault, Nobody, Plan, Rival, S3Fault, Surroundings, Vocabulary};

/// Maximum size of a body that has to be buffered: an S3 document or a Kubernetes object. Real ones
/// are far smaller.
const MOST_GATHERED: usize = 16 << 20;

/// Change to one call on its way through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disturbance {
    /// A watch ends instead of sending its first event.
    Cut,
    /// The only event of a watch is 410.
    Gone,
    /// A watch sends no events and does not end.
    Silent,
    /// A watch sends each event twice.
    Duplicated,
    /// The second half of a document is missing.
    Truncated,
    /// Just before a create, an object with that name is created.
    Taken(Rival),
}

impl Disturbance {
    fn of<V: Vocabulary>(fault: Fault<V>) -> Option<Self> {
        Some(match fault {
            Fault::Kube(KubeFault::WatchCut) => Self::Cut,
            Fault::Kube(KubeFault::WatchGone) => Self::Gone,
            Fault::Kube(KubeFault::WatchSilent) => Self::Silent,
            Fault::Kube(KubeFault::WatchDuplicate) => Self::Duplicated,
            Fault::S3(S3Fault::Truncated) => Self::Truncated,
            Fault::Kube(KubeFault::AlreadyExists(rival)) => Self::Taken(rival),
            _ => return None,
        })
    }
}

/// Error for a plan with a fault that a proxy cannot inject: it needs earlier states of a server,
/// or changes to the cluster, the store or the controller's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} can't be made to happen between real servers, only in the simulator", .0.name())]
pub struct Unplayable<V: Vocabulary = Nobody>(pub Fault<V>);

/// Checks that a proxy can inject all faults of a plan.
///
/// # Errors
/// Returns the first fault that it cannot inject.
pub(super) fn check<V: Vocabulary>(plan: &Plan<V>) -> Result<(), Unplayable<V>> {
    let playable = |fault: Fault<V>| {
        let elsewhere = fault.applied().needs_world() || matches!(fault.applied(), Application::Standstill(_));
        Disturbance::of(fault).is_some() || !elsewhere
    };
    let unplayable = plan.entries.iter().map(|entry| entry.fault).find(|fault| !playable(*fault));
    unplayable.map_or(Ok(()), |fault| Err(Unplayable(fault)))
}

/// The world of a proxy. It only marks requests with the change to make.
#[derive(Debug)]
pub(super) struct OnTheWay;

impl<V: Vocabulary> Surroundings<V> for OnTheWay {
    fn expect(&self, _: &Plan<V>) {}

    fn befall(&self, fault: Fault<V>, _: &Call, request: &mut Parts) {
        if let Some(disturbance) = Disturbance::of(fault) {
            request.extensions.insert(disturbance);
        }
    }

    fn arrives(&self, _: u64, _: &Call, _: &mut Parts) {}

    fn carried_out(&self, _: u64, _: &Call, _: &str, _: u16) {}
}

/// A server whose calls are changed as marked.
#[derive(Clone, Debug)]
pub(super) struct Disturbed(pub(super) Upstream);

impl Service<Request<Body>> for Disturbed {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let upstream = self.0.clone();
        let disturbance = request.extensions().get::<Disturbance>().copied();
        Box::pin(async move {
            match disturbance {
                None => upstream.oneshot(request).await,
                Some(Disturbance::Taken(rival)) => {
                    let request = take_name(&upstream, rival, request).await?;
                    upstream.oneshot(request).await
                }
                Some(disturbance) => {
                    let answer = upstream.oneshot(request).await?;
                    if answer.status().is_success() { disturb(disturbance, answer).await } else { Ok(answer) }
                }
            }
        })
    }
}

async fn disturb(disturbance: Disturbance, answer: Response<Body>) -> Result<Response<Body>, BoxError> {
    let (mut head, body) = answer.into_parts();
    head.headers.remove(header::CONTENT_LENGTH);
    let body = match disturbance {
        Disturbance::Cut => up_to_first(body),
        Disturbance::Gone => Body::from(gone()),
        Disturbance::Silent => Body::new(StreamBody::new(stream::pending::<Result<Frame<Bytes>, BoxError>>())),
        Disturbance::Duplicated => twice(body),
        Disturbance::Truncated => {
            let whole = gather(body).await?;
            Body::from(whole[..whole.len() / 2].to_vec())
        }
        Disturbance::Taken(_) => body,
    };
    Ok(Response::from_parts(head, body))
}

async fn gather(body: Body) -> Result<Bytes, BoxError> {
    Ok(Limited::new(body, MOST_GATHERED).collect().await?.to_bytes())
}

/// Ends a body at its first data.
fn up_to_first(body: Body) -> Body {
    let end = body.into_data_stream().take_while(|told| std::future::ready(told.is_err()));
    Body::new(StreamBody::new(end.map_ok(Frame::data)))
}

/// Returns the only event of a watch whose resourceVersion is too old.
fn gone() -> Vec<u8> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "too old resource version", "reason": "Expired", "code": 410,
    });
    format!("{}\n", json!({"type": "ERROR", "object": status})).into_bytes()
}

/// Repeats each line of a body.
fn twice(body: Body) -> Body {
    let mut rest = BytesMut::new();
    let doubled = body.into_data_stream().map_ok(move |told| {
        rest.extend_from_slice(&told);
        let mut out = BytesMut::new();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line = rest.split_to(end + 1);
            out.extend_from_slice(&line);
            out.extend_from_slice(&line);
        }
        Frame::data(out.freeze())
    });
    Body::new(StreamBody::new(doubled))
}

/// Takes the name of a create by another create with the client's own credentials. Returns the
/// original request.
async fn take_name(upstream: &Upstream, rival: Rival, request: Request<Body>) -> Result<Request<Body>, BoxError> {
    let (head, body) = request.into_parts();
    let body = gather(body).await?;
    let taken = match rival {
        Rival::Own => body.to_vec(),
        Rival::Foreign => strangers(&body)?,
    };
    let mut rivals = Request::from_parts(head.clone(), Body::from(taken));
    rivals.headers_mut().remove(header::CONTENT_LENGTH);
    // The answer does not matter: the original create then meets the state that is there.
    drop(upstream.clone().oneshot(rivals).await?);
    Ok(Request::from_parts(head, Body::from(body.to_vec())))
}

/// Returns an unrelated object with the name of the object in this request.
fn strangers(body: &[u8]) -> Result<Vec<u8>, BoxError> {
    let mut object: Map<String, Value> = serde_json::from_slice(body)?;
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["labels", "annotations", "ownerReferences", "finalizers"] {
            metadata.remove(field);
        }
    }
    // Secrets and ConfigMaps have `data`; this value is valid base64 and valid text.
    if object.remove("stringData").is_some() || object.contains_key("data") {
        object.insert("data".to_owned(), json!({"stranger": "eA=="}));
    }
    Ok(serde_json::to_vec(&object)?)
}
