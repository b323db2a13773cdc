//! One connection: TLS, HTTP/1.1, one request after another.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use http::header::CONNECTION;
use http::{HeaderValue, Request, Response, Version};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tower::BoxError;

use super::heads::Heads;
use super::proxy_protocol;
use super::stage::{Stage, ending};
use super::tls::Certificate;
use crate::body::Body;
use crate::body::pace::{Floor, Pace, Writer, paced};
use crate::front::{Gateway, Peer, Reading};
use crate::limits::{Counted, Source};

/// Time limit for the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Time limit for the head of a request, including the wait between two requests.
const HEAD: Duration = Duration::from_secs(10);
/// Maximum number of headers of a request.
const HEADERS: usize = 128;
/// Buffer size in bytes, in each direction. Larger buffers are slower, because the system's
/// allocator returns and allocates them again, and every stream has some: with 64 KiB, a large
/// object took half as much time again, and a slow client two thirds more memory.
const BUFFER: usize = 32 << 10;
/// Maximum lifetime of a connection, and maximum number of its requests, so that a connection-level
/// load balancer can balance.
const AGE: Duration = Duration::from_secs(60 * 60);
const REQUESTS: u32 = 10_000;

/// Serves a connection to its end. `announced` is true if a PROXY header comes first. `admit`
/// checks if the client may have one more connection. A failure concerns only this connection.
pub(super) async fn serve(
    mut stream: TcpStream,
    (peer, announced): (SocketAddr, bool),
    (admit, refused): (impl FnOnce(IpAddr) -> Option<Option<Counted<Source>>>, &AtomicU64),
    gateway: Gateway,
    certificate: Option<Certificate>,
    told: watch::Receiver<Stage>,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "the connection was over at once");
        return;
    }
    let peer = match announced_by(&mut stream, announced).await {
        Ok(client) => client.unwrap_or(peer),
        Err(error) => return tracing::debug!(%peer, %error, "a connection began without a PROXY header"),
    };
    let Some(_counted) = admit(peer.ip()) else {
        refused.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let reading = Arc::new(OfAnswer::default());
    let stream = Writer::above(Writer::new(stream, Pace::default()), reading.clone());
    match certificate {
        None => speak(stream, Peer { address: peer, is_tls: false }, gateway, (told, reading)).await,
        Some(certificate) => match timeout(HANDSHAKE, certificate.acceptor().accept(stream)).await {
            Ok(Ok(stream)) => speak(stream, Peer { address: peer, is_tls: true }, gateway, (told, reading)).await,
            Ok(Err(error)) => tracing::debug!(%peer, %error, "no TLS connection came about"),
            Err(_) => tracing::debug!(%peer, "the TLS handshake took too long"),
        },
    }
}

/// The minimum speed at which the client has to read the current response.
#[derive(Default)]
struct OfAnswer(Mutex<Option<Reading>>);

impl OfAnswer {
    /// Begins a new response. Only responses from stores set a speed.
    fn begin(&self, answer: &mut Response<Body>) {
        *self.0.lock() = answer.extensions_mut().remove();
    }
}

impl Floor for OfAnswer {
    fn bytes_per_second(&self) -> u64 {
        self.0.lock().as_ref().map_or(0, |Reading(floor)| floor.bytes_per_second())
    }
}

/// Reads the client's address from a PROXY header, if one is expected.
async fn announced_by(stream: &mut TcpStream, announced: bool) -> io::Result<Option<SocketAddr>> {
    if announced { proxy_protocol::read(stream).await } else { Ok(None) }
}

async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    gateway: Gateway,
    (mut told, reading): (watch::Receiver<Stage>, Arc<OfAnswer>),
) {
    let (began, answered) = (Instant::now(), AtomicU32::new(0));
    let stages = told.clone();
    let service = service_fn(|request: Request<Incoming>| {
        let (gateway, stages, reading) = (gateway.clone(), stages.clone(), reading.clone());
        let nth = answered.fetch_add(1, Ordering::Relaxed);
        let is_old = nth >= REQUESTS || began.elapsed() > AGE;
        async move {
            let request = request.map(|body| paced(body.map_err(BoxError::from).boxed_unsync(), Pace::default()));
            let version = request.version();
            let mut answer = gateway.serve(request, peer).await;
            reading.begin(&mut answer);
            if is_old || *stages.borrow() != Stage::Serving {
                close(&mut answer, version);
            }
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(BUFFER)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(Heads::new(stream)), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = ending(&mut told) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(peer = %peer.address, %error, "a connection broke");
    }
}

/// Closes the connection after this response.
fn close(answer: &mut Response<Body>, version: Version) {
    if version == Version::HTTP_11 {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
}
