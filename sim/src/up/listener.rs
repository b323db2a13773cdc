//! A listener for the simulated Kubernetes API: TLS and HTTP/1.1 in front of any tower service.
//!
//! It exists besides [`faults::proxy::Server`], which doesn't support TLS: Kubernetes clients send
//! a token only over TLS.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower::{BoxError, Service};

/// Maximum number of open connections; further ones wait to be accepted.
const MOST_CONNECTIONS: usize = 4096;
/// Time limit for a client's part of the handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Time limit for the head of a request, including the idle time since the request before.
const HEAD: Duration = Duration::from_secs(120);
/// Pause after an error of `accept`. The usual cause is a lack of file descriptors.
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// Accepts connections forever, and serves each with this service.
pub(super) async fn serve<S, B>(listener: TcpListener, tls: Arc<ServerConfig>, service: S)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error: Into<BoxError>, Future: Send> + Clone + Send + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let acceptor = TlsAcceptor::from(tls);
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    // Dropping the set ends the connections.
    let mut connections = JoinSet::new();
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, peer)) => {
                let (acceptor, service) = (acceptor.clone(), service.clone());
                connections.spawn(async move {
                    if let Err(error) = connection(stream, acceptor, service).await {
                        tracing::debug!(%peer, error, "a connection ended");
                    }
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "no connection can be taken");
                sleep(AFTER_ERROR).await;
            }
        }
    }
}

async fn connection<S, B>(stream: TcpStream, acceptor: TlsAcceptor, service: S) -> Result<(), BoxError>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error: Into<BoxError>, Future: Send> + Clone + Send + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    stream.set_nodelay(true)?;
    let stream = timeout(HANDSHAKE, acceptor.accept(stream)).await??;
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    Ok(served.await?)
}

/// Binds an address.
///
/// # Errors
/// Returns an error message with the flag that sets another address.
pub(super) async fn take(address: SocketAddr, what: &str, flag: &str) -> Result<TcpListener, String> {
    let taken = |error: io::Error| {
        let port_zero = SocketAddr::new(address.ip(), 0);
        format!("can't serve {what} at {address}: {error}; {flag} {port_zero} takes any port that is free")
    };
    TcpListener::bind(address).await.map_err(taken)
}
