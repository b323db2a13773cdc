//! The admin port: whether the process lives, whether it works, and what it measures.
//!
//! Any pod of the cluster can reach it, and a kubelet that gets no answer ends the process. So what
//! one connection costs is bounded, and how many there are, and a flood displaces itself: over the
//! bound the oldest connection of the address that holds the most is cut. A flood has few
//! addresses, and its connections wait; a kubelet has one of its own, and sends what it has to say
//! at once. Closing the newest instead would leave the port to whoever came first.

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

/// Most connections that are kept. Each is a descriptor, of which 1,024 are customary.
const MOST_CONNECTIONS: usize = 128;

/// Most that are cut and not closed yet: to wait for each would make accepting slow.
const MOST_CUT: usize = 128;

/// How long a connection has for its request before it is cut for a new one. It is the pace of a
/// flood, too: what comes faster waits in the kernel's queue.
const GRACE: Duration = Duration::from_millis(10);

/// How many connections the kernel keeps until they are accepted; it drops those beyond, probes
/// as well. At the pace that `GRACE` allows they are gone through in a third of a second.
const QUEUE: u32 = 4096;

/// How long a connection lasts, from its first byte to the last of its answer. It has one answer,
/// so that none is ever idle.
const CONNECTION: Duration = Duration::from_secs(5);

/// Most bytes of a request's head, and so of what is kept of a connection.
const HEAD_BYTES: usize = 16 * 1024;

/// How long metrics are good for once they were encoded: that walks over every claim.
const METRICS: Duration = Duration::from_secs(1);

/// How long nothing is accepted after an error, which is mostly a lack of descriptors.
const AFTER_ERROR: Duration = Duration::from_millis(10);

/// How often a flood is told of at most.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// Binds the admin address.
///
/// # Errors
/// When it can't be had.
pub fn listen(address: SocketAddr) -> Result<TcpListener, String> {
    let failed = |error| format!("can't serve the admin address {address}: {error}");
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(failed)?;
    // As a bind of TcpListener does it: a restart needn't wait for connections of before to end.
    socket.set_reuseaddr(true).map_err(failed)?;
    socket.bind(address).map_err(failed)?;
    let listener = socket.listen(QUEUE).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    tracing::info!(%address, "serving /metrics, /healthz and /readyz");
    Ok(listener)
}

/// Serves `/healthz` (always 200), `/readyz` (200 once the process works) and `/metrics` until
/// dropped.
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

/// The connections that are open. Dropped, it takes them with it.
#[derive(Default)]
struct Connections {
    tasks: JoinSet<()>,
    /// The oldest first.
    open: Vec<Open>,
    told: Option<Instant>,
}

struct Open {
    peer: IpAddr,
    since: Instant,
    task: AbortHandle,
}

impl Connections {
    /// Waits until there is room for one more; where there is none, one is cut.
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
            // Whichever ends: its descriptor is free by then.
            let _ = self.tasks.join_next().await;
        }
    }

    /// The oldest of the address that holds the most.
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

/// One connection: a request and its answer, in bounded time.
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

/// What can be asked for.
pub struct Pages {
    ready: Box<dyn Fn() -> Result<String, String> + Send + Sync>,
    metrics: Box<dyn Fn() -> String + Send + Sync>,
    /// The metrics, and since when they are.
    encoded: Mutex<Option<(Instant, Bytes)>>,
}

impl Pages {
    /// `ready` tells whether the process works, and a line about it; `metrics` are in the
    /// OpenMetrics text format.
    pub fn new(
        ready: impl Fn() -> Result<String, String> + Send + Sync + 'static,
        metrics: impl Fn() -> String + Send + Sync + 'static,
    ) -> Self {
        Self { ready: Box::new(ready), metrics: Box::new(metrics), encoded: Mutex::default() }
    }

    /// The answer, whatever is in the body of the request: nobody reads that.
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

    /// The metrics, a second old at most. However many ask at once, one of them encodes, and the
    /// others wait without keeping a thread.
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
