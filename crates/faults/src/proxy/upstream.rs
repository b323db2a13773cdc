//! Servers behind the proxy.

use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, Request, Response, Uri, header};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::client::ConfigExt;
use kube::config::AuthInfo;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceExt};

use super::body::Body;
use crate::S3Call;

/// Hop-by-hop headers (RFC 9110 §7.6.1).
const OF_CONNECTION: [HeaderName; 6] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// A server to which requests are forwarded as their client sent them: with its credentials, and
/// none of the proxy's.
#[derive(Clone, Debug)]
pub struct Upstream {
    base: Base,
    /// Access key ids whose calls are not the controller's.
    past: Vec<String>,
    service: BoxCloneSyncService<Request<Body>, Response<Body>, BoxError>,
}

/// Server part of a URL.
#[derive(Clone, Debug)]
struct Base {
    scheme: Scheme,
    authority: Authority,
    /// Prefix of every path, without a trailing slash.
    prefix: String,
}

/// Reason why requests cannot be forwarded to a server.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The URL has no host, or a scheme that is not supported.
    #[error("{0} is no URL of a server that the proxy can reach: {1}")]
    Url(String, &'static str),
    /// The kubeconfig's certificates cannot be used.
    #[error("can't speak TLS to the API server: {0}")]
    Tls(String),
}

impl Upstream {
    /// Creates an upstream for the API server in a kubeconfig, with its CA. Credentials in the
    /// kubeconfig are not used: the client's own decide about permissions.
    ///
    /// # Errors
    /// Returns an error if the URL has no host, or if the CA cannot be read.
    pub fn kube(config: &kube::Config) -> Result<Self, UpstreamError> {
        let base = Base::read(&config.cluster_url)?;
        // A client certificate would make every client an administrator.
        let mut anonymous = config.clone();
        anonymous.auth_info = AuthInfo::default();
        let connector = anonymous.rustls_https_connector().map_err(|error| UpstreamError::Tls(error.to_string()))?;
        let service = client(connector).map_request(|mut request: Request<Body>| {
            // The host by which the client knows the proxy is not the API server's.
            request.headers_mut().remove(header::HOST);
            request
        });
        Ok(Self { base, past: Vec::new(), service: BoxCloneSyncService::new(service) })
    }

    /// Creates an upstream for an S3 store without TLS. Requests keep the host for which they were
    /// signed.
    ///
    /// # Errors
    /// Returns an error if the URL is not http, has no host, or has a path.
    pub fn s3(endpoint: &Uri) -> Result<Self, UpstreamError> {
        let base = Base::read(endpoint)?;
        if base.scheme != Scheme::HTTP || !base.prefix.is_empty() {
            return Err(UpstreamError::Url(endpoint.to_string(), "a store has to be http:// and a host"));
        }
        Ok(Self { base, past: Vec::new(), service: BoxCloneSyncService::new(client(HttpConnector::new())) })
    }

    /// Exempts calls with one of these access key ids: they have no number, meet no fault, and pass
    /// between two processes. For clients other than the controller that reach the store by the
    /// same URL.
    #[must_use]
    pub fn unnumbered(mut self, keys: impl IntoIterator<Item = String>) -> Self {
        self.past.extend(keys);
        self
    }

    /// Returns true if a call is not the controller's.
    pub(super) fn is_past<B>(&self, request: &Request<B>) -> bool {
        let signer = || S3Call::signer(request.uri(), request.headers());
        !self.past.is_empty() && signer().is_some_and(|id| self.past.iter().any(|past| past == id))
    }

    /// Rewrites a request to address this server.
    pub(super) fn addressed(&self, request: Request<Body>) -> Result<Request<Body>, BoxError> {
        let (mut head, body) = request.into_parts();
        remove_hops(&mut head.headers);
        let path = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let uri = Uri::builder().scheme(self.base.scheme.clone()).authority(self.base.authority.clone());
        head.uri = uri.path_and_query(path).build()?;
        Ok(Request::from_parts(head, body))
    }
}

impl Base {
    fn read(url: &Uri) -> Result<Self, UpstreamError> {
        let parts = url.clone().into_parts();
        let wrong = |why| UpstreamError::Url(url.to_string(), why);
        let scheme = parts.scheme.ok_or_else(|| wrong("it has no scheme"))?;
        if scheme != Scheme::HTTP && scheme != Scheme::HTTPS {
            return Err(wrong("its scheme is neither http nor https"));
        }
        let authority = parts.authority.ok_or_else(|| wrong("it has no host"))?;
        let prefix = url.path().trim_end_matches('/').to_owned();
        Ok(Self { scheme, authority, prefix })
    }
}

impl Service<Request<Body>> for Upstream {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.service.poll_ready(context)
    }

    /// Adds the prefix only here, because calls are parsed from the path without it.
    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if !self.base.prefix.is_empty() {
            let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
            let uri = Uri::builder().scheme(self.base.scheme.clone()).authority(self.base.authority.clone());
            match uri.path_and_query(format!("{}{path}", self.base.prefix)).build() {
                Ok(uri) => *request.uri_mut() = uri,
                Err(error) => return Box::pin(std::future::ready(Err(error.into()))),
            }
        }
        let answer = self.service.call(request);
        Box::pin(async move {
            let mut answer = answer.await?;
            remove_hops(answer.headers_mut());
            Ok(answer)
        })
    }
}

fn client<C>(
    connector: C,
) -> impl Service<Request<Body>, Response = Response<Body>, Error = BoxError, Future: Send> + Clone
where
    C: Connect + Clone + Send + Sync + 'static,
{
    let client: Client<C, Body> = Client::builder(TokioExecutor::new()).build(connector);
    client.map_response(|answer: Response<_>| answer.map(Body::new)).map_err(BoxError::from)
}

fn remove_hops(headers: &mut HeaderMap) {
    for name in OF_CONNECTION {
        headers.remove(name);
    }
}
