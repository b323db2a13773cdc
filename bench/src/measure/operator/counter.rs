//! A proxy before a store that counts: requests by S3 operation, and connections. Small, because it
//! runs on the machine that is measured: bodies stream through, nothing is kept of a request.

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

/// Any free port, for this machine alone.
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Headers that are a matter between two ends of one connection (RFC 9110 §7.6.1).
const OF_CONNECTION: [HeaderName; 5] =
    [header::CONNECTION, HeaderName::from_static("keep-alive"), header::TE, header::TRANSFER_ENCODING, header::UPGRADE];

/// The proxy. When dropped it ends at once, with all of its connections.
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

/// What has passed up to some moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passed {
    pub(crate) requests: Counts,
    /// Connections that were opened.
    pub(crate) opened: u64,
    /// Most that were open at once, since the last time that somebody asked to count anew.
    pub(crate) most: u64,
}

impl Counter {
    /// Serves this store on a port of its own.
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

    /// From now on requests are taken and not answered; or are answered again, those that wait too.
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

    /// From now on the most connections that are open at once are counted anew.
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
                // Mostly a lack of file descriptors, of which others may give some back.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            },
        }
    }
}

/// Is counted as long as it is open.
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
    // Without it answers may be late by some milliseconds, and no more than that.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| pass(request, shared.clone(), hanging.clone()));
    let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // What breaks is told by whoever is at its other end.
    let _ = connection.await;
}

/// Passes a request on. An error breaks the connection, as the store's own end would.
async fn pass(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    mut hanging: watch::Receiver<bool>,
) -> Result<Response<Incoming>> {
    let (mut head, body) = request.into_parts();
    let call = S3Call::read(&head.method, &head.uri, &head.headers);
    shared.counts.lock().add(call.operation.name());
    // Nobody is left to wait for once the proxy is gone.
    let _ = hanging.wait_for(|hang| !hang).await;
    for name in &OF_CONNECTION {
        head.headers.remove(name);
    }
    let path = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    // The host stays as it was: it is signed.
    head.uri = Uri::builder().scheme(Scheme::HTTP).authority(shared.store.clone()).path_and_query(path).build()?;
    let mut answer = shared.client.request(Request::from_parts(head, body)).await?;
    // Whether the store keeps a connection is to be seen by its client.
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
