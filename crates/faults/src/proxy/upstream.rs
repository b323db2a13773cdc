//! The servers behind the proxy.

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

/// Headers that are a matter between two ends of one connection (RFC 9110 §7.6.1).
const OF_CONNECTION: [HeaderName; 6] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// A server that requests are passed on to as their client sent them: with its credentials, and
/// none of the proxy's.
#[derive(Clone, Debug)]
pub struct Upstream {
    base: Base,
    /// Access key ids whose calls are not the controller's.
    past: Vec<String>,
    service: BoxCloneSyncService<Request<Body>, Response<Body>, BoxError>,
}

/// What a URL says about a server.
#[derive(Clone, Debug)]
struct Base {
    scheme: Scheme,
    authority: Authority,
    /// What stands before every path, without the slash at its end.
    prefix: String,
}

/// Why a server can't be one that requests are passed on to.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The URL has no host, or no scheme that is spoken here.
    #[error("{0} is no URL of a server that the proxy can reach: {1}")]
    Url(String, &'static str),
    /// The kubeconfig's certificates can't be used.
    #[error("can't speak TLS to the API server: {0}")]
    Tls(String),
}

impl Upstream {
    /// The API server that a kubeconfig names, reached with the CA that stands there. Credentials
    /// in it are of no use: who may do what, the client's own decide.
    ///
    /// # Errors
    /// When the URL has no host, or the CA can't be read.
    pub fn kube(config: &kube::Config) -> Result<Self, UpstreamError> {
        let base = Base::read(&config.cluster_url)?;
        // A client certificate in it would make every client an administrator.
        let mut anonymous = config.clone();
        anonymous.auth_info = AuthInfo::default();
        let connector = anonymous.rustls_https_connector().map_err(|error| UpstreamError::Tls(error.to_string()))?;
        let service = client(connector).map_request(|mut request: Request<Body>| {
            // Whichever host the client knows the proxy by is not the API server's.
            request.headers_mut().remove(header::HOST);
            request
        });
        Ok(Self { base, past: Vec::new(), service: BoxCloneSyncService::new(service) })
    }

    /// An S3 store, reached without TLS. Requests keep the host that they were signed for.
    ///
    /// # Errors
    /// When it isn't an http URL with a host and without a path.
    pub fn s3(endpoint: &Uri) -> Result<Self, UpstreamError> {
        let base = Base::read(endpoint)?;
        if base.scheme != Scheme::HTTP || !base.prefix.is_empty() {
            return Err(UpstreamError::Url(endpoint.to_string(), "a store has to be http:// and a host"));
        }
        Ok(Self { base, past: Vec::new(), service: BoxCloneSyncService::new(client(HttpConnector::new())) })
    }

    /// Lets the calls pass that name one of these access key ids: they have no number, meet no
    /// fault and go on between two lives. For others than the controller who know the store by the
    /// same URL.
    #[must_use]
    pub fn unnumbered(mut self, keys: impl IntoIterator<Item = String>) -> Self {
        self.past.extend(keys);
        self
    }

    /// Whether a call is not the controller's.
    pub(super) fn is_past<B>(&self, request: &Request<B>) -> bool {
        let signer = || S3Call::signer(request.uri(), request.headers());
        !self.past.is_empty() && signer().is_some_and(|id| self.past.iter().any(|past| past == id))
    }

    /// A request as it goes to this server.
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

    /// Only here the prefix comes before the path: what a call is, is read from the path behind it.
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
