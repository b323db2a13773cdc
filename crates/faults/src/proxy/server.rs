//! HTTP/1.1 server for any tower service.
//!
//! It uses hyper and not axum, because a service behind faults has to be able to fail: then the
//! connection breaks without an answer, as when a packet is lost.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tower::{BoxError, Service};

/// Maximum number of open connections. Further ones wait to be accepted.
const MOST_CONNECTIONS: usize = 4096;

/// Time limit for requests under way after a request to stop. Watches never end by themselves.
const LAST_REQUESTS: Duration = Duration::from_secs(2);

/// Pause after an error of accept, which is mostly a lack of file descriptors.
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// A server on a socket. Dropping it ends it at once, with all of its connections.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    accepting: JoinHandle<()>,
    /// Tasks that run as long as the server.
    work: JoinSet<()>,
}

impl Server {
    /// Serves at this address; port 0 selects a free one. An error of the service breaks the
    /// connection to its client.
    ///
    /// # Errors
    /// Returns an error if the address cannot be bound.
    pub async fn start<S, B>(address: SocketAddr, service: S) -> io::Result<Self>
    where
        S: Service<Request<Incoming>, Response = Response<B>, Error: Into<BoxError>, Future: Send>,
        S: Clone + Send + 'static,
        B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        Self::on(TcpListener::bind(address).await?, service)
    }

    /// Like [`Server::start`], on an existing listener.
    ///
    /// # Errors
    /// Returns an error if the listener has no address.
    pub fn on<S, B>(listener: TcpListener, service: S) -> io::Result<Self>
    where
        S: Service<Request<Incoming>, Response = Response<B>, Error: Into<BoxError>, Future: Send>,
        S: Clone + Send + 'static,
        B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let address = listener.local_addr()?;
        let (stop, stopped) = watch::channel(false);
        let accepting = tokio::spawn(accept(listener, service, stopped));
        Ok(Self { address, stop, accepting, work: JoinSet::new() })
    }

    /// Runs a task as long as the server.
    #[must_use]
    pub fn doing(mut self, work: impl Future<Output = ()> + Send + 'static) -> Self {
        self.work.spawn(work);
        self
    }

    /// Returns the address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns its URL. If it listens on every address, the URL is for clients on the same machine.
    pub fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
        }
        format!("http://{address}")
    }

    /// Stops accepting connections, and waits for requests under way for up to two seconds.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        // The task ends by itself, and a panic in it has been reported already.
        let _ = (&mut self.accepting).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Accepts connections until a stop is requested. Dropping it drops all connections.
async fn accept<S, B>(listener: TcpListener, service: S, mut stopped: watch::Receiver<bool>)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error: Into<BoxError>, Future: Send>,
    S: Clone + Send + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let next = async {
            // The semaphore is never closed, so a permit is returned.
            let permit = room.clone().acquire_owned().await;
            (permit, listener.accept().await)
        };
        tokio::select! {
            () = told(&mut stopped) => break,
            Some(_) = connections.join_next() => {}
            (permit, accepted) = next => match accepted {
                Ok((stream, _)) => {
                    let connection = converse(stream, service.clone(), stopped.clone());
                    connections.spawn(async move {
                        connection.await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "can't accept a connection");
                    tokio::time::sleep(AFTER_ERROR).await;
                }
            },
        }
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    // Connections that take longer are dropped with `connections`.
    let _ = tokio::time::timeout(LAST_REQUESTS, all).await;
}

/// Completes when the server has to stop.
async fn told(stopped: &mut watch::Receiver<bool>) {
    // An error means that the server is gone, which is also a reason to stop.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// Serves one connection until either side ends it.
async fn converse<S, B>(stream: TcpStream, service: S, mut stopped: watch::Receiver<bool>)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error: Into<BoxError>, Future: Send>,
    S: Clone + Send + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "answers may be late by some milliseconds");
    }
    let http = hyper::server::conn::http1::Builder::new();
    let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = told(&mut stopped) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body_util::Full;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tower::service_fn;

    use super::*;

    const ANYWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);
    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";

    async fn ask(address: SocketAddr) -> String {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        stream.write_all(REQUEST).await.expect("it reads");
        let mut answer = vec![0; 1024];
        let length = stream.read(&mut answer).await.unwrap_or(0);
        String::from_utf8_lossy(&answer[..length]).into_owned()
    }

    fn done() -> Response<Full<Bytes>> {
        Response::new(Full::from("done"))
    }

    #[tokio::test]
    async fn answers_go_over_the_wire() {
        let service = service_fn(|_| async { Ok::<_, Infallible>(done()) });
        let server = Server::start(ANYWHERE, service).await.unwrap();
        let answer = ask(server.address()).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("done"), "{answer}");
    }

    #[tokio::test]
    async fn a_service_that_fails_breaks_the_connection_without_an_answer() {
        let service = service_fn(|_| async { Err::<Response<Full<Bytes>>, BoxError>("no answer".into()) });
        let server = Server::start(ANYWHERE, service).await.unwrap();
        assert_eq!(ask(server.address()).await, "");
    }

    #[tokio::test]
    async fn a_request_under_way_is_answered_before_the_end() {
        let (arrived, mut arrives) = watch::channel(false);
        let (go, gone) = watch::channel(false);
        let service = service_fn(move |_| {
            arrived.send_replace(true);
            let mut gone = gone.clone();
            async move {
                gone.wait_for(|gone| *gone).await?;
                Ok::<_, BoxError>(done())
            }
        });
        let server = Server::start(ANYWHERE, service).await.unwrap();
        let address = server.address();
        let answer = tokio::spawn(ask(address));
        arrives.wait_for(|arrived| *arrived).await.unwrap();
        let end = tokio::spawn(server.stop());
        go.send_replace(true);
        assert!(answer.await.unwrap().ends_with("done"));
        end.await.unwrap();
        assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
    }
}
