//! How a store is reached: a seam, as the Kubernetes client and the clock are.

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

/// What carries requests to stores and brings their answers.
pub type Transport = BoxCloneSyncService<Request<Body>, Response<Body>, BoxError>;

/// Makes transports. A parameter of the gateway: whoever embeds it may bring one of their own.
pub trait Connect: Send + Sync + 'static {
    /// A transport that believes what `trust` says.
    ///
    /// # Errors
    /// When the trust can't be established, as with a bundle that isn't PEM.
    fn connect(&self, trust: &Trust) -> Result<Transport, ConnectError>;
}

/// Whether no connection could be made. Another transport says so by `ConnectionRefused`; of its
/// other errors nothing is known.
pub fn is_unreached(error: &BoxError) -> bool {
    let of_others = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    error.downcast_ref::<Error>().is_some_and(Error::is_connect)
        || error.downcast_ref::<io::Error>().is_some_and(of_others)
}

/// How long the addresses of a store, those of one family, have between them to take a connection.
/// An address that is dead leaves time for the others.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a connection that nobody uses is kept. Stores and what stands before them close theirs
/// after a minute.
const IDLE: Duration = Duration::from_secs(30);
/// Bytes that are read or held at once, in each direction of a connection: as many as towards
/// clients, for the same reasons.
const BUFFER: usize = 32 << 10;

/// Most headers of an answer: more than a client may have an object keep.
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

/// Has a connection end in a reset, also where the process is killed.
///
/// A store may take an end in order for that of the body: versitygw 1.8.0 keeps 19,999 bytes of
/// 20,000. All connections are reset, those that are idle too, as hyper ends one whose caller gave
/// up as it ends an idle one.
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
