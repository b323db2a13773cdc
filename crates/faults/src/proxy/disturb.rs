//! Faults of an answer that the layer leaves to the world: on the way through the proxy, the world
//! is this.

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

/// Most bytes of a body that has to be gathered: a document of S3, an object of Kubernetes. Real
/// ones are far smaller.
const MOST_GATHERED: usize = 16 << 20;

/// What is done to one call on its way through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disturbance {
    /// A watch ends where its first event would have come.
    Cut,
    /// The one event of a watch is 410.
    Gone,
    /// A watch tells nothing and doesn't end.
    Silent,
    /// A watch tells each event twice.
    Duplicated,
    /// The second half of a document is missing.
    Truncated,
    /// A moment before a create, there is another object of that name.
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

/// A plan has a fault that needs more than a proxy: a server's past, somebody's hands in cluster or
/// store, or on the controller's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} can't be made to happen between real servers, only in the simulator", .0.name())]
pub struct Unplayable<V: Vocabulary = Nobody>(pub Fault<V>);

/// Whether a proxy can let everything happen that a plan says.
///
/// # Errors
/// Names the first fault that it can't.
pub(super) fn check<V: Vocabulary>(plan: &Plan<V>) -> Result<(), Unplayable<V>> {
    let playable = |fault: Fault<V>| {
        let elsewhere = fault.applied().needs_world() || matches!(fault.applied(), Application::Standstill(_));
        Disturbance::of(fault).is_some() || !elsewhere
    };
    let unplayable = plan.entries.iter().map(|entry| entry.fault).find(|fault| !playable(*fault));
    unplayable.map_or(Ok(()), |fault| Err(Unplayable(fault)))
}

/// The world as a proxy has it: it can only mark requests with what is to be done to them.
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

/// A server whose calls are disturbed as they are marked.
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

/// A body that ends where there was something to tell.
fn up_to_first(body: Body) -> Body {
    let end = body.into_data_stream().take_while(|told| std::future::ready(told.is_err()));
    Body::new(StreamBody::new(end.map_ok(Frame::data)))
}

/// The event that a watch begins and ends with whose version is forgotten.
fn gone() -> Vec<u8> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "too old resource version", "reason": "Expired", "code": 410,
    });
    format!("{}\n", json!({"type": "ERROR", "object": status})).into_bytes()
}

/// A body with each of its lines twice.
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

/// Has the name taken that a create is about to ask for, with the client's own credentials; gives
/// the create back.
async fn take_name(upstream: &Upstream, rival: Rival, request: Request<Body>) -> Result<Request<Body>, BoxError> {
    let (head, body) = request.into_parts();
    let body = gather(body).await?;
    let taken = match rival {
        Rival::Own => body.to_vec(),
        Rival::Foreign => strangers(&body)?,
    };
    let mut rivals = Request::from_parts(head.clone(), Body::from(taken));
    rivals.headers_mut().remove(header::CONTENT_LENGTH);
    // Refused or not: what counts is what the create then comes upon.
    drop(upstream.clone().oneshot(rivals).await?);
    Ok(Request::from_parts(head, Body::from(body.to_vec())))
}

/// An object of the same name that has nothing to do with the one in this request.
fn strangers(body: &[u8]) -> Result<Vec<u8>, BoxError> {
    let mut object: Map<String, Value> = serde_json::from_slice(body)?;
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["labels", "annotations", "ownerReferences", "finalizers"] {
            metadata.remove(field);
        }
    }
    // Secrets have this, and ConfigMaps; what it says is base64 to one and text to the other.
    if object.remove("stringData").is_some() || object.contains_key("data") {
        object.insert("data".to_owned(), json!({"stranger": "eA=="}));
    }
    Ok(serde_json::to_vec(&object)?)
}
