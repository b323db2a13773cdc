//! The admin port: liveness, readiness and metrics of the process.
//!
//! Every pod of the cluster can connect to it, and the kubelet restarts a process that doesn't
//! answer its probes. So the number of connections is bounded, and so is the cost of each. Over the
//! bound, the oldest connection of the address with the most connections is closed. A flood comes
//! from few addresses, and its connections stay idle, so it displaces itself. A kubelet has its own
//! address and sends its request at once. The alternative, to refuse new connections, would leave
//! the port to the clients that connected first.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Mutex;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};

const TEXT: &str = "text/plain; charset=utf-8";
/// The format of the metrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Maximum number of open connections. Each takes a file descriptor; the usual limit is 1,024.
const MOST_CONNECTIONS: usize = 128;

/// Maximum number of connections that are aborted but not closed yet. To wait for each one would
/// slow down `accept`.
const MOST_CUT: usize = 128;

/// Minimum time that a connection gets for its request before it can be cut for a new one. This
/// also limits the rate of a flood: faster connections wait in the kernel's queue.
const GRACE: Duration = Duration::from_millis(10);

/// Length of the kernel's accept queue. The kernel drops connections beyond it, probes included. At
/// the rate that `GRACE` allows, a full queue is accepted in a third of a second.
const QUEUE: u32 = 4096;

/// Maximum duration of a connection, from accept to the last byte of its answer. A connection
/// serves one request, so none is ever idle.
const CONNECTION: Duration = Duration::from_secs(5);

/// Maximum size of a request's head, and so of the memory for a connection.
const HEAD_BYTES: usize = 16 * 1024;

/// Lifetime of encoded metrics. Encoding iterates over every claim.
const METRICS: Duration = Duration::from_secs(1);

/// Pause after an error of `accept`. The usual cause is a lack of file descriptors.
const AFTER_ERROR: Duration = Duration::from_millis(10);

/// Minimum time between two log messages about a flood.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// Binds the admin address.
///
/// # Errors
/// Returns a message if the address can't be bound.
pub fn listen(address: SocketAddr) -> Result<TcpListener, String> {
    let failed = |error| format!("can't serve the admin address {address}: {error}");
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(failed)?;
    // `TcpListener::bind` does the same: a restart need not wait for old connections to end.
    socket.set_reuseaddr(true).map_err(failed)?;
    socket.bind(address).map_err(failed)?;
    let listener = socket.listen(QUEUE).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    tracing::info!(%address, "serving /metrics, /healthz and /readyz");
    Ok(listener)
}

/// Serves `/healthz` (always 200), `/readyz` (200 once the process is ready) and `/metrics` until
/// the future is dropped.
pub async fn serve(listener: TcpListener, pages: Pages) -> Infallible {
    let pages = Arc::new(pages);
    let mut connections = Connections::default();
    let mut accepts = true;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                accepts = true;
                connections.make_room().await;
                connections.add(peer.ip(), converse(stream, pages.clone()));
            }
            Err(error) => {
                if std::mem::take(&mut accepts) {
                    tracing::warn!(%error, "can't accept connections to the admin address; trying again");
                }
                sleep(AFTER_ERROR).await;
            }
        }
    }
}

/// The open connections. Dropping this closes them.
#[derive(Default)]
struct Connections {
    tasks: JoinSet<()>,
    /// Sorted by age, oldest first.
    open: Vec<Open>,
    told: Option<Instant>,
}

struct Open {
    peer: IpAddr,
    since: Instant,
    task: AbortHandle,
}

impl Connections {
    /// Waits until there is room for one more connection. Cuts one if the limit is reached.
    async fn make_room(&mut self) {
        if self.open.len() >= MOST_CONNECTIONS {
            while self.tasks.try_join_next().is_some() {}
            self.open.retain(|connection| !connection.task.is_finished());
        }
        if self.open.len() >= MOST_CONNECTIONS {
            let connection = self.open.remove(self.first_to_go());
            sleep_until(connection.since + GRACE).await;
            connection.task.abort();
            self.tell(connection.peer);
        }
        while self.tasks.len() >= MOST_CONNECTIONS + MOST_CUT {
            // Any task that ends will do: its descriptor is free by then.
            let _ = self.tasks.join_next().await;
        }
    }

    /// Returns the index of the oldest connection of the address with the most connections.
    fn first_to_go(&self) -> usize {
        let mut held: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for connection in &self.open {
            *held.entry(connection.peer).or_default() += 1;
        }
        let most = held.values().max();
        self.open.iter().position(|connection| held.get(&connection.peer) == most).unwrap_or(0)
    }

    fn tell(&mut self, peer: IpAddr) {
        if self.told.is_none_or(|told| told.elapsed() >= TOLD_EVERY) {
            self.told = Some(Instant::now());
            tracing::warn!(
                %peer,
                most = MOST_CONNECTIONS,
                "too many connections to the admin address: the oldest of who holds the most are cut"
            );
        }
    }

    fn add(&mut self, peer: IpAddr, connection: impl Future<Output = ()> + Send + 'static) {
        let task = self.tasks.spawn(connection);
        self.open.push(Open { peer, since: Instant::now(), task });
    }
}

/// Serves one request on a connection, in bounded time.
async fn converse(stream: TcpStream, pages: Arc<Pages>) {
    let service = service_fn(|request| {
        let pages = pages.clone();
        async move { Ok::<_, Infallible>(pages.answer(&request).await) }
    });
    let mut http = http1::Builder::new();
    http.keep_alive(false).max_buf_size(HEAD_BYTES);
    match timeout(CONNECTION, http.serve_connection(TokioIo::new(stream), service)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection to the admin address broke"),
        Err(_) => tracing::debug!("a connection to the admin address took too long"),
    }
}

/// The pages of the admin port.
pub struct Pages {
    ready: Box<dyn Fn() -> Result<String, String> + Send + Sync>,
    metrics: Box<dyn Fn() -> String + Send + Sync>,
    /// The encoded metrics and the time they were encoded at.
    encoded: Mutex<Option<(Instant, Bytes)>>,
}

impl Pages {
    /// Creates the pages. `ready` returns a line of text, as `Ok` if the process is ready;
    /// `metrics` returns the metrics in the OpenMetrics text format.
    pub fn new(
        ready: impl Fn() -> Result<String, String> + Send + Sync + 'static,
        metrics: impl Fn() -> String + Send + Sync + 'static,
    ) -> Self {
        Self { ready: Box::new(ready), metrics: Box::new(metrics), encoded: Mutex::default() }
    }

    /// Answers a request. The body of the request is never read.
    async fn answer<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        let (status, format, page) = match request.uri().path() {
            "/healthz" | "/readyz" | "/metrics" if !matches!(*request.method(), Method::GET | Method::HEAD) => {
                (StatusCode::METHOD_NOT_ALLOWED, TEXT, Bytes::from_static(b"only GET and HEAD\n"))
            }
            "/healthz" => (StatusCode::OK, TEXT, Bytes::from_static(b"ok\n")),
            "/readyz" => match (self.ready)() {
                Ok(line) => (StatusCode::OK, TEXT, Bytes::from(line + "\n")),
                Err(line) => (StatusCode::SERVICE_UNAVAILABLE, TEXT, Bytes::from(line + "\n")),
            },
            "/metrics" => (StatusCode::OK, OPEN_METRICS, self.metrics().await),
            _ => (StatusCode::NOT_FOUND, TEXT, Bytes::from_static(b"there are /healthz, /readyz and /metrics\n")),
        };
        let mut response = Response::new(Full::new(page));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(format));
        if status == StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        response
    }

    /// Returns the metrics, at most a second old. Of concurrent requests one encodes them, and the
    /// others wait without blocking a thread.
    async fn metrics(&self) -> Bytes {
        let mut encoded = self.encoded.lock().await;
        if let Some((since, page)) = encoded.as_ref()
            && since.elapsed() < METRICS
        {
            return page.clone();
        }
        let page = Bytes::from((self.metrics)());
        *encoded = Some((Instant::now(), page.clone()));
        page
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn scrape(address: SocketAddr) -> String {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("it answers and closes");
        answer
    }

    // covers: 5.admin.metrics
    #[tokio::test]
    async fn metrics_are_encoded_once_a_second_however_many_ask() {
        let encodings = Arc::new(AtomicU64::new(0));
        let counted = encodings.clone();
        let encode = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            "# EOF\n".to_owned()
        };
        let listener = listen((std::net::Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let address = listener.local_addr().unwrap();
        let pages = Pages::new(|| Ok("ok".to_owned()), encode);
        let mut tasks = JoinSet::new();
        tasks.spawn(async { match serve(listener, pages).await {} });
        let began = Instant::now();
        for _ in 0..50 {
            let answers = futures::future::join_all((0..20).map(|_| scrape(address))).await;
            assert!(answers.iter().all(|answer| answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("# EOF\n")));
        }
        let (most, counted) = (began.elapsed().as_secs() + 1, encodings.load(Ordering::Relaxed));
        assert!((1..=most).contains(&counted), "encoded {counted} times in {:?}", began.elapsed());
        sleep(METRICS).await;
        scrape(address).await;
        assert_eq!(encodings.load(Ordering::Relaxed), counted + 1, "what is older than a second is not shown");
    }

    // covers: 5.admin.room
    #[tokio::test]
    async fn the_kernel_keeps_a_burst_until_it_is_accepted() {
        let listener = listen((std::net::Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let address = listener.local_addr().unwrap();
        let mut held = Vec::new();
        for connected in 0..600 {
            let stream = timeout(METRICS, TcpStream::connect(address)).await;
            held.push(stream.unwrap_or_else(|_| panic!("{connected} wait to be accepted, and one more is dropped")));
        }
    }

    // covers: 5.admin.room
    #[tokio::test(start_paused = true)]
    async fn the_oldest_of_who_holds_the_most_goes_first_and_the_bound_holds() {
        let mut connections = Connections::default();
        let address = |last| IpAddr::from([10, 0, 0, last]);
        let (kubelet, began) = (address(1), Instant::now());
        connections.add(kubelet, std::future::pending());
        for last in [2, 2].into_iter().chain(std::iter::repeat_n(3, 2 * MOST_CONNECTIONS)) {
            connections.make_room().await;
            connections.add(address(last), std::future::pending());
            assert!(connections.open.len() <= MOST_CONNECTIONS);
            assert!(connections.tasks.len() <= MOST_CONNECTIONS + MOST_CUT);
        }
        let held = |of| connections.open.iter().filter(|connection| connection.peer == of).count();
        assert_eq!((held(kubelet), held(address(2)), held(address(3))), (1, 2, MOST_CONNECTIONS - 3));
        assert!(began.elapsed() >= GRACE, "a connection was cut before it could say anything");
    }
}
