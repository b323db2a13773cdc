//! The production gateway in a simulated world: the same code as in a cluster, between the
//! simulated API and the simulated stores.
//!
//! Only its parameters differ: a client of the simulated API, which can lag (`lag`), a connection
//! to the stores, and a clock.

mod lag;
mod late;
pub mod wire;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::header::HOST;
use http::{HeaderValue, Method, Request, Response};
use http_body::Body as _;
use http_body_util::BodyExt;
use kube::Client;
use kube::runtime::watcher;
use s3s::Body;
use stowage_gateway::audit::Log;
use stowage_gateway::decide::{Caller, Verdict, Wanted, decide};
use stowage_gateway::front::{Config, Gateway as Production, Gears, Peer, WallClock};
use stowage_gateway::head::{Level, Operation};
use stowage_gateway::metrics::Metrics;
use stowage_gateway::registry::{Live, Registry, Setting, Source};
use stowage_gateway::upstream::{Connect, ConnectError, Transport, Trust};
use stowage_gateway::uri::parse_query;
use stowage_operator::api::{BucketName, Unlabelled};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceExt, service_fn};

use self::lag::late_watches;

/// The gateway of a world. Clones are handles to the same gateway.
#[derive(Clone)]
pub struct Gateway {
    production: Production,
    registry: Registry,
    source: Source,
    clock: WallClock,
    /// Delay of the watches in milliseconds.
    lag: Arc<AtomicU64>,
}

/// Parameters of a gateway.
pub struct Given<S> {
    /// Number of the gateway among those of its world.
    pub number: u32,
    /// A client of the simulated API.
    pub client: Client,
    /// Namespace in which the operator keeps its Secrets.
    pub operator_namespace: &'static str,
    /// The gateway's own clock.
    pub clock: WallClock,
    /// Clock by which its clients date their signatures.
    pub clock_of_clients: WallClock,
    /// Connection to the stores, by the hosts of their endpoints.
    pub stores: S,
    /// Time after which a watch ends and is restarted; `None` = it never ends.
    pub watch: Option<Duration>,
    /// Destination of the access log, if any.
    pub log: Option<Log>,
}

impl Gateway {
    /// Creates a gateway with empty tables. [`Gateway::run`] has to be polled to fill them.
    pub fn new<S>(given: Given<S>) -> Self
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = BoxError, Future: Send>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        let Given { number, client, operator_namespace, clock, clock_of_clients, stores, watch, log } = given;
        let lag = Arc::new(AtomicU64::new(0));
        let read = lag.clone();
        // A GET by name is not delayed, even if a watch lags.
        let live = Live::new(client.clone(), operator_namespace);
        let client = late_watches(client, move || Duration::from_millis(read.load(Ordering::Relaxed)));
        let namespaces = [operator_namespace.to_owned()].into();
        let registry = Registry::new(Setting { namespaces, unlabelled: Unlabelled::Refused });
        let gears = Gears {
            registry: registry.clone(),
            live,
            connect: Box::new(ToStores(stores)),
            clock: clock.clone(),
            clock_of_clients,
            // A real process draws this number; replicas are distinguished by it.
            first_id: u64::from(number) << 32,
            log,
            metrics: Metrics::new(),
        };
        // Tables never count as stale here, because there are no signs of life to go by.
        let config = Config { max_staleness: Duration::MAX, ..Config::default() };
        // Connections within a process cannot die unnoticed, so watches are as long as the server
        // allows and have no bookmarks: over days of virtual time, bookmarks would be most of the
        // work. Therefore there are no signs of life either, unless watches have to end.
        let seconds = watch.map_or(0, |watch| u32::try_from(watch.as_secs()).unwrap_or(u32::MAX));
        let watch = watcher::Config::default().timeout(seconds).disable_bookmarks();
        let source = Source { client, namespace: operator_namespace.to_owned(), watch };
        Self { production: Production::new(gears, config), registry, source, clock, lag }
    }

    /// Returns the S3 protocol as a tower service.
    #[must_use]
    pub fn http(&self) -> GatewayService {
        GatewayService(self.production.clone())
    }

    /// Returns the production gateway itself, to serve it on a separate listener.
    #[must_use]
    pub fn production(&self) -> Production {
        self.production.clone()
    }

    /// Returns true if the gateway would forward a request that is signed with this pair of keys;
    /// `None` if it does not know the pair. `asked` is the method and the query of a request to a
    /// bucket.
    #[must_use]
    pub fn passes_on(&self, id: &str, secret: &str, asked: (&Method, &str), bucket: &str) -> Option<bool> {
        let key = self.registry.key(id).filter(|key| key.secret().expose() == secret)?;
        let query = parse_query(asked.1).ok()?;
        let Ok((operation, _)) = Operation::of(asked.0, Level::Bucket, &query, false) else { return Some(false) };
        let bucket = BucketName::parse(bucket).ok()?;
        let wanted = Wanted::of_bucket(operation, &bucket);
        let now = (self.clock)();
        let verdict = self.registry.ask(|tables| decide(Caller::Key(&key), &wanted, tables, now));
        Some(matches!(verdict, Ok(Verdict::Forward(_))))
    }

    /// Delays each change that the gateway observes from now on, to show the effect on tenants.
    pub fn fall_behind(&self, lag: Duration) {
        let millis = u64::try_from(lag.as_millis()).unwrap_or(u64::MAX);
        self.lag.store(millis, Ordering::Relaxed);
    }

    /// Returns true once the gateway has loaded a complete view.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.registry.is_ready()
    }

    /// Follows the cluster until the future is dropped.
    pub async fn run(&self) {
        tokio::select! {
            never = self.registry.follow(self.source.clone()) => match never {},
            never = self.production.keep_quotas(self.source.clone()) => match never {},
        }
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("registry", &self.registry).finish_non_exhaustive()
    }
}

/// The gateway's S3 protocol, see [`Gateway::http`]. Clones use the same gateway.
#[derive(Clone)]
pub struct GatewayService(Production);

impl Service<Request<Body>> for GatewayService {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let gateway = self.0.clone();
        // Sets the Host header like an HTTP/1.1 client.
        let authority = request.uri().authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok());
        if let Some(host) = authority {
            request.headers_mut().entry(HOST).or_insert(host);
        }
        let peer = Peer { address: ([127, 0, 0, 1], 0).into(), is_tls: false };
        Box::pin(async move {
            let request = request.map(|body| body.map_err(BoxError::from).boxed_unsync());
            Ok(gateway.serve(request, peer).await.map(Body::http_body_unsync))
        })
    }
}

/// Converts a body for the simulated stores, which need to know if it is empty.
fn body(body: stowage_gateway::body::Body) -> Body {
    if body.is_end_stream() { Body::empty() } else { Body::http_body_unsync(body) }
}

/// Connection to the stores of this process. Certificates are not checked.
struct ToStores<S>(S);

impl<S> Connect for ToStores<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = BoxError, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
{
    fn connect(&self, _: &Trust) -> Result<Transport, ConnectError> {
        let stores = self.0.clone();
        Ok(BoxCloneSyncService::new(service_fn(move |request: Request<stowage_gateway::body::Body>| {
            let answer = stores.clone().oneshot(request.map(body));
            async move { Ok(answer.await?.map(|body| body.map_err(BoxError::from).boxed_unsync())) }
        })))
    }
}
