//! A client layer that delays the answers of an API server.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyDataStream, StreamBody};
use kube::Client;
use kube::client::Body;
use tower::{BoxError, service_fn};

use super::late::late;

/// Wraps a client so that each chunk of a read is delayed by the current value of `lag`. Answers to
/// writes are not delayed.
pub(super) fn late_watches(client: Client, lag: impl Fn() -> Duration + Clone + Send + Sync + 'static) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = service_fn(move |request: Request<Body>| {
        let (client, lag) = (client.clone(), lag.clone());
        async move {
            let is_read = request.method() == Method::GET;
            let (head, body) = client.send(request).await?.into_parts();
            let pieces = BodyDataStream::new(body).map(|piece| piece.map(Frame::<Bytes>::data).map_err(BoxError::from));
            let lag = move || if is_read { lag() } else { Duration::ZERO };
            Ok::<_, BoxError>(Response::from_parts(head, StreamBody::new(late(pieces, lag))))
        }
    });
    Client::new(service, namespace)
}
