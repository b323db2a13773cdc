//! Connection between a gateway and the stores. It records requests, and breaks where a fault
//! requires it.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{StreamExt, stream};
use http::header::{AUTHORIZATION, CONTENT_LENGTH};
use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use parking_lot::Mutex;
use s3s::Body;
use tower::{BoxError, Service, ServiceExt};

use crate::effects::GatewayFault;
use crate::history::Received;

/// Requests that the stores received, in order. Clones share the same list.
#[derive(Clone, Debug, Default)]
pub struct Mailbox(Arc<Mutex<Vec<Received>>>);

impl Mailbox {
    /// Returns the requests since the last call.
    pub fn take(&self) -> Vec<Received> {
        std::mem::take(&mut self.0.lock())
    }
}

/// A connection to the stores that records requests, and breaks bodies that are marked with a
/// fault.
#[derive(Clone)]
pub struct Wire<S> {
    stores: S,
    mailbox: Mailbox,
}

impl<S> Wire<S> {
    /// Creates a connection to these stores.
    pub fn new(stores: S, mailbox: Mailbox) -> Self {
        Self { stores, mailbox }
    }
}

impl<S> Service<Request<Body>> for Wire<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = BoxError, Future: Send> + Clone + Send + 'static,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { stores, mailbox } = self.clone();
        Box::pin(carry(stores, mailbox, request))
    }
}

async fn carry<S>(stores: S, mailbox: Mailbox, request: Request<Body>) -> Result<Response<Body>, BoxError>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = BoxError, Future: Send> + Send,
{
    let fault = request.extensions().get::<GatewayFault>().copied();
    let (head, body) = request.into_parts();
    match fault {
        Some(GatewayFault::EarlySuccess) => {
            mailbox.0.lock().push(received(&head, None));
            return Ok(Response::new(Body::empty()));
        }
        Some(GatewayFault::CutRequest) => {
            mailbox.0.lock().push(received(&head, None));
            let _first = BodyExt::into_data_stream(body).next().await;
            return Err(reset());
        }
        Some(fault @ (GatewayFault::NamesUs | GatewayFault::QuotesUs)) => {
            mailbox.0.lock().push(received(&head, None));
            return Ok(speaks_of_us(fault, &head));
        }
        Some(GatewayFault::CutAnswer | GatewayFault::StallAnswer) | None => {}
    }
    let whole = whole(&head.headers, body).await;
    mailbox.0.lock().push(received(&head, whole.clone()));
    // A server that has not received the whole request does not carry it out.
    let body = whole.ok_or_else(reset)?;
    let answer = stores.oneshot(Request::from_parts(head, sent(body))).await?;
    match fault {
        Some(GatewayFault::CutAnswer) => halved(answer, true).await,
        Some(GatewayFault::StallAnswer) => halved(answer, false).await,
        _ => Ok(answer),
    }
}

/// Converts a body for the stores, which need to know if it is empty.
fn sent(body: Bytes) -> Body {
    if body.is_empty() { Body::empty() } else { Body::from(body) }
}

/// Returns a body if it was received completely, with the announced length.
async fn whole(headers: &HeaderMap, body: Body) -> Option<Bytes> {
    let bytes = BodyExt::collect(body).await.ok()?.to_bytes();
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    announced.is_none_or(|announced| announced == bytes.len()).then_some(bytes)
}

fn reset() -> BoxError {
    io::Error::from(io::ErrorKind::ConnectionReset).into()
}

fn received(head: &Parts, body: Option<Bytes>) -> Received {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers = head.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes())));
    Received {
        host: head.uri.authority().map(ToString::to_string).unwrap_or_default(),
        method: head.method.to_string(),
        target: head.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
        headers: headers.collect(),
        body,
    }
}

/// Returns half of an answer's body, followed by a broken connection or by nothing.
async fn halved(answer: Response<Body>, breaks: bool) -> Result<Response<Body>, BoxError> {
    let (head, body) = answer.into_parts();
    let bytes = BodyExt::collect(body).await?.to_bytes();
    let first = stream::iter([Ok(Frame::data(bytes.slice(..bytes.len() / 2)))]);
    let rest = match breaks {
        true => stream::iter([Err(io::Error::from(io::ErrorKind::ConnectionReset))]).left_stream(),
        false => stream::pending().right_stream(),
    };
    Ok(Response::from_parts(head, Body::http_body_unsync(StreamBody::new(first.chain(rest)))))
}

/// Returns a store's answer that contains the client's key and the store's address.
fn speaks_of_us(fault: GatewayFault, head: &Parts) -> Response<Body> {
    let authorization = head.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let key = authorization.split("Credential=").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
    let host = head.uri.authority().map(ToString::to_string).unwrap_or_default();
    let is_long = head.headers.contains_key("x-amz-copy-source")
        || (head.method == "POST" && head.uri.query().is_some_and(|query| query.contains("uploadId")));
    let (status, text) = match fault {
        GatewayFault::QuotesUs => (
            StatusCode::BAD_REQUEST,
            format!(
                "<Error><Code>InvalidRequest</Code><Message>{key} may not do that</Message><HostId>{host}</HostId></Error>"
            ),
        ),
        _ => (
            if is_long { StatusCode::OK } else { StatusCode::FORBIDDEN },
            format!(
                "<Error><Code>SignatureDoesNotMatch</Code><Message>No.</Message><AWSAccessKeyId>{key}</AWSAccessKeyId><StringToSign>host:{host}</StringToSign></Error>"
            ),
        ),
    };
    let is_head = head.method == "HEAD";
    let mut answer = Response::new(if is_head { Body::empty() } else { Body::from(Bytes::from(text)) });
    *answer.status_mut() = status;
    answer
}
