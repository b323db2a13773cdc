//! HTTP connector for the AWS SDK to a service in the same process, without sockets or
//! serialization of HTTP.

use std::fmt;
use std::io;
use std::time::Duration;

use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use http::header::{HOST, HeaderValue};
use http::{Request, Response};
use parking_lot::Mutex;
use s3s::Body;
use tower::{BoxError, ServiceExt as _};

use super::service::strip_body;

/// An HTTP client for the AWS SDK that calls a tower service.
///
/// It replaces the transport. Requests get a Host header, and responses to HEAD have no body. The
/// read timeout of the SDK's configuration applies until the response head. An error of the service
/// becomes a dispatch failure like that of a socket: an [`io::Error`] becomes an I/O or timeout
/// error by its kind, [`tokio::time::error::Elapsed`] a timeout, any other error "other".
///
/// The service can be any that accepts the requests of [`Store::http`](super::Store::http), so a
/// layer that injects faults can be inserted.
#[derive(Clone)]
pub struct InProcess<S>(S);

impl<S> InProcess<S> {
    /// Creates a client that calls this service.
    pub fn new(service: S) -> Self {
        Self(service)
    }
}

impl<S> InProcess<S>
where
    Self: HttpClient + 'static,
{
    /// Returns an SDK client that signs with these keys for this region. It uses path style and no
    /// retries, because the retry budget is shared by the whole process. All other settings are the
    /// SDK's defaults.
    pub fn client(self, access_key: &str, secret_key: &str, region: &str) -> aws_sdk_s3::Client {
        let credentials = Credentials::new(access_key, secret_key, None, None, "in-process");
        let config = aws_sdk_s3::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .credentials_provider(credentials)
            .endpoint_url("http://s3.simulation")
            .force_path_style(true)
            .http_client(self)
            .region(Region::new(region.to_owned()))
            .retry_config(RetryConfig::disabled())
            .build();
        aws_sdk_s3::Client::from_conf(config)
    }
}

impl<S> fmt::Debug for InProcess<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InProcess")
    }
}

impl<S> HttpClient for InProcess<S>
where
    S: tower::Service<Request<Body>, Response = Response<Body>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    fn http_connector(&self, settings: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        let service = Mutex::new(self.0.clone());
        SharedHttpConnector::new(Connector { service, read_timeout: settings.read_timeout() })
    }
}

/// A service with the settings of a client. The mutex only makes it `Sync`: it is locked while the
/// service is cloned.
struct Connector<S> {
    service: Mutex<S>,
    read_timeout: Option<Duration>,
}

impl<S> fmt::Debug for Connector<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("read_timeout", &self.read_timeout).finish_non_exhaustive()
    }
}

impl<S> HttpConnector for Connector<S>
where
    S: tower::Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let service = self.service.lock().clone();
        let answer = answer(service, request);
        let Some(limit) = self.read_timeout else { return HttpConnectorFuture::new(answer) };
        HttpConnectorFuture::new(async move {
            let elapsed = |elapsed| Err(ConnectorError::timeout(Box::new(elapsed)));
            tokio::time::timeout(limit, answer).await.unwrap_or_else(elapsed)
        })
    }
}

async fn answer<S>(service: S, request: HttpRequest) -> Result<HttpResponse, ConnectorError>
where
    S: tower::Service<Request<Body>, Response = Response<Body>>,
    S::Error: Into<BoxError>,
{
    let request = request.try_into_http1x().map_err(|error| ConnectorError::user(error.into()))?;
    let request = with_host(request)?;
    let method = request.method().clone();
    let answer = service.oneshot(request.map(to_service)).await;
    let mut response = answer.map_err(|error| connector_error(error.into()))?;
    strip_body(&method, &mut response);
    let response = response.map(SdkBody::from_body_1_x);
    HttpResponse::try_from(response).map_err(|error| ConnectorError::other(error.into(), None))
}

/// Adds the Host header, which is signed and normally written by the transport.
fn with_host<B>(mut request: Request<B>) -> Result<Request<B>, ConnectorError> {
    let authority = request.uri().authority().map_or("", |authority| authority.as_str());
    let host = HeaderValue::from_str(authority).map_err(|error| ConnectorError::user(error.into()))?;
    request.headers_mut().entry(HOST).or_insert(host);
    Ok(request)
}

fn to_service(body: SdkBody) -> Body {
    match body.bytes() {
        Some(bytes) => Body::from(Bytes::copy_from_slice(bytes)),
        None => Body::http_body(body),
    }
}

fn connector_error(error: BoxError) -> ConnectorError {
    if error.is::<tokio::time::error::Elapsed>() {
        return ConnectorError::timeout(error);
    }
    match error.downcast_ref::<io::Error>().map(io::Error::kind) {
        Some(io::ErrorKind::TimedOut) => ConnectorError::timeout(error),
        Some(_) => ConnectorError::io(error),
        None => ConnectorError::other(error, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_keep_their_kind() {
        let io = |kind: io::ErrorKind| connector_error(Box::new(io::Error::from(kind)));
        assert!(io(io::ErrorKind::ConnectionReset).is_io());
        assert!(io(io::ErrorKind::TimedOut).is_timeout());
        assert!(connector_error("strange".into()).is_other());
    }
}
