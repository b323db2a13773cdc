//! The S3 front that tenants talk to: checks virtual credentials and passes requests on.
//!
//! It reads the internal Secrets of the operator namespace through two watches (spec §2) and knows
//! nothing else of Kubernetes, nothing of the operator but the wire contract, and nothing of a
//! simulation: the backends are any implementation of [`S3`], or stores that are reached over HTTP
//! ([`Remote`]).
//!
//! # Rules
//! - A signed request needs a credential that counts ([`Credential`]) and whose `expires-at` has
//!   not come; else `InvalidAccessKeyId`, the same for an expired and a deleted one.
//! - It goes to the backend of the scope that names its bucket; a bucket outside of the scope is
//!   `AccessDenied`, whether it exists or not. The source of a copy has to be in scope as well.
//! - Only operations on the content of buckets pass ([`Operation::from_name`] is the list); all
//!   that makes, removes or configures buckets is `AccessDenied`, as are headers that set ACLs or
//!   locks on objects. ListBuckets shows the scope.
//! - An unsigned request may get, head and list the present content of a bucket that has an
//!   [`AnonymousBinding`].
//! - Until both watches have delivered their first list everything is `ServiceUnavailable`.
//!
//! # What is left out
//! Quotas and the rate limit of anonymous access are read or ignored, not enforced.

mod decide;
mod front;
mod late;
mod record;
mod registry;
mod remote;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{Stream, StreamExt as _};
use http::{Request, Response};
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use parking_lot::{Mutex, MutexGuard};
use s3s::config::{S3Config, StaticConfigProvider};
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, S3};
use tower::BoxError;

pub use self::decide::{Caller, Operation, Refusal, Verdict, decide};
use self::front::Front;
use self::late::late;
pub use self::record::{
    AnonymousBinding, BINDING_ROLE, CREDENTIAL_ROLE, Credential, EXPIRES_AT, Malformed, ROLE_LABEL, Scope,
};
use self::registry::Registry;
pub use self::remote::{NoStore, Remote};

/// Where a gateway reads the time from.
pub type WallClock = Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>;

/// The store of a backend of this process, by its name, as it is at the time of a request.
pub type Backends = Arc<dyn Fn(&str) -> Option<Arc<dyn S3>> + Send + Sync>;

/// Where requests go to.
enum Behind {
    /// Backends of this process.
    Here(Backends),
    /// Stores that are reached over HTTP, by the names of their backends.
    Remote(BTreeMap<String, Remote>),
}

/// A gateway. Clones are handles to the same one.
#[derive(Clone)]
pub struct Gateway {
    secrets: Api<Secret>,
    shared: Arc<Shared>,
}

struct Shared {
    clock: WallClock,
    behind: Behind,
    registry: Mutex<Registry>,
    /// Milliseconds by which what the watches tell is late.
    lag: AtomicU64,
}

impl Shared {
    /// What is known now; every change of it is one assignment, so a panic leaves it whole.
    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock()
    }
}

/// How far the time of a signature may be from the wall clock, in seconds, as Amazon S3 has it.
const SIGNATURE_TOLERANCE: u32 = 900;

impl Gateway {
    /// A gateway that knows no credential yet: [`Gateway::run`] has to be driven.
    ///
    /// `clock` is what `expires-at` is compared with.
    #[must_use]
    pub fn new(client: Client, operator_namespace: &str, clock: WallClock, backends: Backends) -> Self {
        Self::before(client, operator_namespace, clock, Behind::Here(backends))
    }

    /// A gateway before stores that are reached over HTTP; apart from that as [`Gateway::new`]
    /// makes it.
    #[must_use]
    pub fn before_stores(
        client: Client,
        operator_namespace: &str,
        clock: WallClock,
        stores: BTreeMap<String, Remote>,
    ) -> Self {
        Self::before(client, operator_namespace, clock, Behind::Remote(stores))
    }

    fn before(client: Client, operator_namespace: &str, clock: WallClock, behind: Behind) -> Self {
        let shared = Shared { clock, behind, registry: Mutex::default(), lag: AtomicU64::new(0) };
        Self { secrets: Api::namespaced(client, operator_namespace), shared: Arc::new(shared) }
    }

    /// The S3 protocol as a tower service.
    #[must_use]
    pub fn http(&self) -> GatewayService {
        let front = Front(Arc::clone(&self.shared));
        let mut config = S3Config::default();
        config.presigned_url_max_skew_time_secs = SIGNATURE_TOLERANCE;
        let mut builder = S3ServiceBuilder::new(front.clone());
        builder.set_auth(front.clone());
        if matches!(self.shared.behind, Behind::Remote(_)) {
            builder.set_route(front.clone());
        }
        builder.set_access(front);
        builder.set_config(Arc::new(StaticConfigProvider::new(Arc::new(config))));
        GatewayService(builder.build())
    }

    /// What would be done with a request signed by this pair of keys; `None` where nobody with such
    /// a pair is known.
    #[must_use]
    pub fn verdict(&self, id: &str, secret: &str, operation: Operation, bucket: &str) -> Option<Verdict> {
        let now = (self.shared.clock)();
        let registry = self.shared.registry();
        let credential =
            registry.credential(id).filter(|credential| credential.secret_access_key.expose() == secret)?;
        Some(decide(Caller::Signed(credential), operation, Some(bucket), now))
    }

    /// Has the gateway hear of each change this late from now on, to show what tenants meet then.
    pub fn fall_behind(&self, lag: Duration) {
        let millis = u64::try_from(lag.as_millis()).unwrap_or(u64::MAX);
        self.shared.lag.store(millis, Ordering::Relaxed);
    }

    /// Whether both watches have delivered their first list.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.shared.registry().is_ready()
    }

    /// Follows the Secrets until it is dropped. Errors of a watch are logged and retried with
    /// the backoff of kube; what was known stays known meanwhile.
    pub async fn run(&self) {
        let credentials = self.watch(CREDENTIAL_ROLE).map(|event| (CREDENTIAL_ROLE, event));
        let bindings = self.watch(BINDING_ROLE).map(|event| (BINDING_ROLE, event));
        let lag = || Duration::from_millis(self.shared.lag.load(Ordering::Relaxed));
        let mut events = std::pin::pin!(late(futures::stream::select(credentials, bindings), lag));
        while let Some((role, event)) = events.next().await {
            match event {
                Ok(event) => self.apply(role, event),
                Err(error) => tracing::warn!(role, %error, "a watch of Secrets failed, going on"),
            }
        }
    }

    fn watch(&self, role: &str) -> impl Stream<Item = watcher::Result<watcher::Event<Secret>>> + use<> {
        let usual = watcher::Config::default().labels(&format!("{ROLE_LABEL}={role}"));
        let config = match self.shared.behind {
            // No connection can die unheard within a process: as long a watch as the server gives,
            // without bookmarks. In days of virtual time there is hardly anything else to do.
            Behind::Here(_) => usual.timeout(0).disable_bookmarks(),
            Behind::Remote(_) => usual,
        };
        watcher(self.secrets.clone(), config).default_backoff()
    }

    fn apply(&self, role: &str, event: watcher::Event<Secret>) {
        let mut registry = self.shared.registry();
        if role == CREDENTIAL_ROLE {
            registry.credentials.apply(event);
        } else {
            registry.bindings.apply(event);
        }
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remote: Option<Vec<&String>> = match &self.shared.behind {
            Behind::Here(_) => None,
            Behind::Remote(stores) => Some(stores.keys().collect()),
        };
        f.debug_struct("Gateway").field("remote", &remote).finish_non_exhaustive()
    }
}

/// The gateway's S3 protocol, see [`Gateway::http`]. Clones serve the same gateway.
#[derive(Clone)]
pub struct GatewayService(S3Service);

impl tower::Service<Request<Body>> for GatewayService {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let service = self.0.clone();
        Box::pin(async move { service.call(request).await.map_err(BoxError::from) })
    }
}
