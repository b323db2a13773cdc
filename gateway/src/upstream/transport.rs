//! Connections to stores, behind a trait, like the Kubernetes client and the clock.

use std::io;
use std::time::Duration;

use http::{Request, Response, Uri};
use http_body_util::BodyExt;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use store_tls::{ConnectError, Trust, tls_config};
use tokio::net::TcpStream;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt};

use super::heard::heard;
use crate::body::Body;

/// A service that sends requests to stores and returns their responses.
pub type Transport = BoxCloneSyncService<Request<Body>, Response<Body>, BoxError>;

/// A factory of transports. It is a parameter of the gateway, so an embedder can provide its own.
pub trait Connect: Send + Sync + 'static {
    /// Creates a transport that trusts the certificates of `trust`.
    ///
    /// # Errors
    /// Returns an error if the trust can't be set up, for example because a bundle isn't PEM.
    fn connect(&self, trust: &Trust) -> Result<Transport, ConnectError>;
}

/// Returns true if no connection could be made. Transports other than [`RustlsConnect`] report this
/// with `ConnectionRefused`; all their other errors count as false.
pub fn is_unreached(error: &BoxError) -> bool {
    let of_others = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    error.downcast_ref::<Error>().is_some_and(Error::is_connect)
        || error.downcast_ref::<io::Error>().is_some_and(of_others)
}

/// Time limit to connect, over all addresses of one family of a store. A dead address leaves time
/// for the others.
const CONNECT: Duration = Duration::from_secs(5);
/// Time after which an idle connection is closed. Stores and their proxies close theirs after a
/// minute.
const IDLE: Duration = Duration::from_secs(30);
/// Buffer size in bytes, in each direction of a connection: the same as towards clients, for the
/// same reasons.
const BUFFER: usize = 32 << 10;

/// Maximum number of headers of a response: more than a client may store with an object.
const HEADERS: usize = 256;

/// HTTP/1.1 over TCP and rustls.
#[derive(Clone, Copy, Debug, Default)]
pub struct RustlsConnect;

impl Connect for RustlsConnect {
    fn connect(&self, trust: &Trust) -> Result<Transport, ConnectError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT));
        tcp.set_keepalive(Some(Duration::from_secs(60)));
        let https = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls_config(trust)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(ServiceExt::<Uri>::map_result(tcp, reset_at_the_end));
        let client: Client<_, Body> = Client::builder(TokioExecutor::new())
            .http1_max_buf_size(BUFFER)
            .http1_max_headers(HEADERS)
            .pool_idle_timeout(IDLE)
            .pool_timer(TokioTimer::new())
            .build(heard(https));
        let answered = client.map_response(|answer: Response<hyper::body::Incoming>| {
            answer.map(|body| body.map_err(BoxError::from).boxed_unsync())
        });
        Ok(BoxCloneSyncService::new(answered.map_err(BoxError::from)))
    }
}

/// Makes a connection end in a reset, also if the process is killed.
///
/// A store may take an orderly end for that of the body: versitygw 1.8.0 keeps 19,999 bytes of
/// 20,000. All connections are reset, also idle ones, because hyper closes a connection whose
/// caller gave up in the same way as an idle one.
fn reset_at_the_end<E: Into<BoxError>>(
    connected: Result<TokioIo<TcpStream>, E>,
) -> Result<TokioIo<TcpStream>, BoxError> {
    let connection = connected.map_err(Into::into)?;
    connection.inner().set_zero_linger()?;
    Ok(connection)
}

#[cfg(test)]
#[path = "transport_tests.rs"]
mod tests;
