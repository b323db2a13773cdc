//! A counting proxy in front of a store: it counts requests by S3 operation, and connections. It is
//! minimal, because it runs on the measured machine: bodies are streamed, and no request is stored.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderName, Request, Response, Uri, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use stowage_world::effects::S3Call;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::counts::Counts;

/// Any free port on the loopback address.
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Hop-by-hop headers (RFC 9110 §7.6.1).
const OF_CONNECTION: [HeaderName; 5] =
    [header::CONNECTION, HeaderName::from_static("keep-alive"), header::TE, header::TRANSFER_ENCODING, header::UPGRADE];

/// The proxy. Dropping it ends it at once, with all of its connections.
pub(crate) struct Counter {
    url: String,
    shared: Arc<Shared>,
    hang: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

struct Shared {
    client: Client<HttpConnector, Incoming>,
    store: Authority,
    counts: Mutex<Counts>,
    opened: AtomicU64,
    open: AtomicU64,
    most: AtomicU64,
}

/// Counts up to some moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passed {
    pub(crate) requests: Counts,
    /// Number of connections opened.
    pub(crate) opened: u64,
    /// Maximum number of connections open at once, since the last
    /// [`forget_most`](Counter::forget_most).
    pub(crate) most: u64,
}

impl Counter {
    /// Serves this store on a free port.
    pub(crate) async fn start(store: &str) -> Result<Self> {
        let uri: Uri = store.parse().with_context(|| store.to_owned())?;
        let store = uri.authority().cloned().with_context(|| format!("{store} has no host"))?;
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        let counts = Mutex::default();
        let (opened, open, most) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let shared = Arc::new(Shared { client, store, counts, opened, open, most });
        let listener = TcpListener::bind(LOOPBACK).await.context("can't serve before the store")?;
        let url = format!("http://{}", listener.local_addr().context("can't serve before the store")?);
        let (hang, hanging) = watch::channel(false);
        let serving = tokio::spawn(accept(listener, shared.clone(), hanging));
        Ok(Self { url, shared, hang, serving })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Starts or ends hanging: requests are accepted and not answered, until all of them are
    /// answered at the end.
    pub(crate) fn hang(&self, hang: bool) {
        self.hang.send_replace(hang);
    }

    pub(crate) fn passed(&self) -> Passed {
        Passed {
            requests: self.shared.counts.lock().clone(),
            opened: self.shared.opened.load(Ordering::Relaxed),
            most: self.shared.most.load(Ordering::Relaxed),
        }
    }

    /// Restarts the count of the maximum number of open connections.
    pub(crate) fn forget_most(&self) {
        self.shared.most.store(self.shared.open.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, hanging: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(converse(stream, shared.clone(), hanging.clone()));
                }
                // Usually a lack of file descriptors, which other connections may release.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            },
        }
    }
}

/// Counts a connection while it is open.
struct Open(Arc<Shared>);

impl Open {
    fn new(shared: Arc<Shared>) -> Self {
        shared.opened.fetch_add(1, Ordering::Relaxed);
        let open = shared.open.fetch_add(1, Ordering::Relaxed) + 1;
        shared.most.fetch_max(open, Ordering::Relaxed);
        Self(shared)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn converse(stream: TcpStream, shared: Arc<Shared>, hanging: watch::Receiver<bool>) {
    let _open = Open::new(shared.clone());
    // Without this option responses may be delayed by some milliseconds, which is harmless.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| pass(request, shared.clone(), hanging.clone()));
    let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // Errors are ignored: the client at the other end reports them.
    let _ = connection.await;
}

/// Forwards a request. An error breaks the connection, as an error of the store would.
async fn pass(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    mut hanging: watch::Receiver<bool>,
) -> Result<Response<Incoming>> {
    let (mut head, body) = request.into_parts();
    let call = S3Call::read(&head.method, &head.uri, &head.headers);
    shared.counts.lock().add(call.operation.name());
    // An error means that the proxy is being dropped.
    let _ = hanging.wait_for(|hang| !hang).await;
    for name in &OF_CONNECTION {
        head.headers.remove(name);
    }
    let path = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    // The host is part of the signature, so it stays unchanged.
    head.uri = Uri::builder().scheme(Scheme::HTTP).authority(shared.store.clone()).path_and_query(path).build()?;
    let mut answer = shared.client.request(Request::from_parts(head, body)).await?;
    // `Connection` is kept, because the client has to see if the store keeps the connection open.
    for name in OF_CONNECTION.iter().filter(|name| **name != header::CONNECTION) {
        answer.headers_mut().remove(name);
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use stowage_testbed::simulated::{REGION, Simulated};
    use stowage_testbed::store::Store;

    #[tokio::test]
    async fn what_passes_is_answered_as_by_the_store_and_counted_by_operation() {
        let simulated = Simulated::start().await.unwrap();
        let counter = Counter::start(&simulated.endpoint()).await.unwrap();
        let store = Store::new(counter.url(), REGION, &simulated.operator).unwrap();
        store.make("photos").await.unwrap();
        store.put("photos", 1).await.unwrap();
        assert_eq!(store.keys("photos").await.unwrap(), ["objects/00001"]);
        let passed = counter.passed();
        assert_eq!(passed.requests.sorted(), [("CreateBucket", 1), ("ListObjectsV2", 1), ("PutObject", 1)]);
        assert!(passed.opened >= 1 && passed.most >= 1 && passed.most <= passed.opened, "{passed:?}");
    }

    #[tokio::test]
    async fn a_store_that_hangs_answers_those_that_waited_once_it_goes_on() {
        let simulated = Simulated::start().await.unwrap();
        let counter = Counter::start(&simulated.endpoint()).await.unwrap();
        let store = Store::without_retries(counter.url(), REGION, &simulated.operator).unwrap();
        counter.hang(true);
        let mut asked = std::pin::pin!(store.make("photos"));
        let waited = tokio::time::timeout(Duration::from_millis(200), asked.as_mut()).await;
        assert!(waited.is_err(), "nobody answers");
        assert_eq!(counter.passed().requests.total(), 1, "it was taken");
        counter.hang(false);
        asked.await.unwrap();
    }
}
