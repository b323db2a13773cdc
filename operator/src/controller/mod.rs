//! Wires watches to passes: what changed wakes exactly the objects that depend on it.

mod backend;
mod backoff;
mod claim;
mod converse;
mod feeds;
mod gauges;
mod looks;
mod memory;
mod objects;
mod orphans;
mod pace;
mod secret_watches;
mod slots;
mod wakes;

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{self, BoxFuture, Either, FutureExt};
use k8s_openapi::api::core::v1::Namespace;
use kube::runtime::events::{Recorder, Reporter};
use kube::runtime::reflector;
use kube::{Api, Client, ResourceExt};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::Clock;
use crate::act::Actor;
use crate::api::{BucketClaim, Gateway, S3Backend};
use crate::cache::{BackendCache, NamespaceCache, SecretCache, Written};
use crate::kubernetes::{self, CONTROLLER, guarded};
use crate::metrics::Metrics;
use crate::observe::Observer;
use crate::plan::Setting;
use crate::upstream::{Access, Connect, Limits, Upstreams};

use backoff::Backoff;
use gauges::Gauges;
use memory::Memory;
use objects::{Claim, claim_ref};
use orphans::Orphans;
use secret_watches::SecretWatches;
use wakes::Wakes;

/// What an operator is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// Namespace of the internal Secrets.
    pub operator_namespace: String,
    /// Namespaces besides it that may hold admin and CA Secrets.
    pub trusted_namespaces: BTreeSet<String>,
    /// The gateway, as tenants reach it.
    pub gateway: Gateway,
    /// What tells this cluster's buckets from another's; the UID of `kube-system` when absent.
    pub installation: Option<String>,
    /// Claims worked on at once.
    pub max_concurrent_reconciles: u16,
    /// Bounds on calls to each store.
    pub limits: Limits,
    /// Most objects that one pass deletes from a bucket.
    pub purge_slice: u32,
    /// Distance at which everything is looked at again, jittered.
    pub resync_interval: Duration,
}

/// How long passes under way may go on after the signal to stop: then those that wait for a store
/// are dropped, which is no more than a crash (spec §5).
const LAST_PASSES: Duration = Duration::from_secs(8);

/// What an operator works with.
pub struct Parts {
    /// The API server.
    pub client: Client,
    /// HTTP clients for the stores.
    pub connect: Arc<dyn Connect>,
    /// The time of day.
    pub clock: Clock,
    /// Where what happens is counted. Of one operator: not to be used twice.
    pub metrics: Metrics,
    /// Told when every cache is filled and work begins.
    pub ready: Option<tokio::sync::watch::Sender<bool>>,
}

/// Longest time between two tries to find out which installation it is.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Why an operator could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The installation's identity is neither given nor to be had.
    #[error("can't read namespace kube-system, whose UID identifies this installation: {0}; see --installation-id")]
    Installation(String),
}

/// What comes of this, unless the operator is told to stop before: nothing is under way yet then.
async fn unless<T>(shutdown: &future::Shared<BoxFuture<'static, ()>>, work: impl Future<Output = T>) -> Option<T> {
    match future::select(shutdown.clone(), pin!(work)).await {
        Either::Left(_) => None,
        Either::Right((done, _)) => Some(done),
    }
}

/// Runs the operator until `shutdown` resolves: takes no new work then, and finishes what is under
/// way, unless that takes too long.
///
/// Everything that it starts ends when the future is dropped.
///
/// # Errors
/// When it can't find out which installation it is.
pub async fn run(
    config: Config,
    mut parts: Parts,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), StartError> {
    let shutdown: BoxFuture<'static, ()> = shutdown.boxed();
    let shutdown = shutdown.shared();
    parts.client = guarded(parts.client);
    let installation = match config.installation.clone() {
        Some(installation) => installation,
        None => match unless(&shutdown, installation(&parts.client)).await {
            Some(installation) => installation?,
            None => return Ok(()),
        },
    };
    let (store, writer) = reflector::store();
    let (wakes, woken) = Wakes::new(store.clone());
    let (orphans, clues) = Orphans::new(store.clone());
    let (recoveries, recovered) = unbounded_channel();
    let shared = Arc::new(Shared::new(config, &parts, installation, Arc::new(wakes), orphans, recoveries));
    let (mut feeds, backends) = feeds::start(&shared, recovered);
    if unless(&shutdown, feeds.ready()).await.is_none() {
        return Ok(());
    }
    // What claims depend on is known by now.
    feeds::feed_claims(&shared, &mut feeds, writer, store.clone());
    if unless(&shutdown, feeds.ready()).await.is_none() {
        return Ok(());
    }
    if let Some(ready) = &parts.ready {
        ready.send_replace(true);
    }
    parts.metrics.collect(Gauges { shared: Arc::downgrade(&shared), claims: store.clone() });
    tracing::info!(installation = shared.observer.setting.installation, "caches are filled, work begins");
    let claims = claim::run(shared.clone(), store.clone(), woken.claims, shutdown.clone());
    let sweeps = orphans::run(shared.clone(), store.clone(), clues, shutdown.clone());
    let backends = backend::run(shared.clone(), backends, store, woken.backends, shutdown.clone());
    let patience = async {
        shutdown.await;
        tokio::time::sleep(LAST_PASSES).await;
    };
    let (passes, patience) = (pin!(future::join3(claims, backends, sweeps)), pin!(patience));
    let work = future::select(passes, patience);
    if let Either::Left((Either::Right(_), _)) = future::select(work, pin!(feeds.failed())).await {
        tracing::info!("passes that wait for a store are dropped; the next start takes them up");
    }
    Ok(())
}

/// Waits for an API server that gives no answer, or no good one: a process that ends for that is
/// started again by and by, ever more seldom, and by then it may be back for long.
async fn installation(client: &Client) -> Result<String, StartError> {
    let api: Api<Namespace> = Api::all(client.clone());
    let backoff = Backoff::default();
    loop {
        let error = match api.get("kube-system").await {
            Ok(it) => return it.metadata.uid.ok_or_else(|| StartError::Installation("it has no UID".to_owned())),
            Err(error) => error,
        };
        let why = kubernetes::describe(&error);
        if matches!(&error, kube::Error::Api(status) if matches!(status.code, 401 | 403 | 404)) {
            return Err(StartError::Installation(why));
        }
        let delay = backoff.failed("kube-system").min(LONGEST_WAIT);
        tracing::warn!(why, seconds = delay.as_secs_f32(), "can't read namespace kube-system yet, trying again");
        tokio::time::sleep(delay).await;
    }
}

/// What both controllers and all feeds share.
struct Shared {
    config: Config,
    client: Client,
    clock: Clock,
    observer: Arc<Observer>,
    actor: Actor,
    written: Arc<Written<BucketClaim>>,
    written_backends: Written<S3Backend>,
    upstreams: Arc<Upstreams>,
    recorder: Recorder,
    metrics: Metrics,
    wakes: Arc<Wakes>,
    orphans: Orphans,
    secret_watches: SecretWatches,
    memory: Memory,
}

impl Shared {
    fn new(
        config: Config,
        parts: &Parts,
        installation: String,
        wakes: Arc<Wakes>,
        orphans: Orphans,
        recoveries: UnboundedSender<String>,
    ) -> Self {
        let client = parts.client.clone();
        let mut namespaces: Vec<String> = config.trusted_namespaces.iter().cloned().collect();
        namespaces.push(config.operator_namespace.clone());
        let upstreams = Arc::new(Upstreams::new(Access {
            client: client.clone(),
            connect: parts.connect.clone(),
            limits: config.limits,
            namespaces,
            recoveries,
            metrics: parts.metrics.clone(),
        }));
        let observer = Arc::new(Observer {
            client: client.clone(),
            setting: Arc::new(Setting {
                operator_namespace: config.operator_namespace.clone(),
                trusted_namespaces: config.trusted_namespaces.clone(),
                gateway: config.gateway.clone(),
                installation,
                purge_slice: config.purge_slice,
            }),
            internal: Arc::new(SecretCache::default()),
            consumers: Arc::new(SecretCache::default()),
            backends: Arc::new(BackendCache::default()),
            namespaces: Arc::new(NamespaceCache::default()),
            upstreams: upstreams.clone(),
        });
        let written = Arc::new(Written::default());
        let actor = Actor { client: client.clone(), observer: observer.clone(), written: written.clone() };
        let recorder = Recorder::new(client.clone(), Reporter::from(CONTROLLER));
        Self {
            config,
            client,
            clock: parts.clock.clone(),
            observer,
            actor,
            written,
            written_backends: Written::default(),
            upstreams,
            recorder,
            metrics: parts.metrics.clone(),
            secret_watches: SecretWatches::new(parts.client.clone(), wakes.clone()),
            wakes,
            orphans,
            memory: Memory::default(),
        }
    }

    /// Nothing is kept of a claim that is gone.
    fn forget_claim(&self, claim: &Claim) {
        let name = claim_ref(claim);
        self.written.forget(&name.namespace, &name.name);
        self.wakes.forget_claim(&name);
        self.memory.forget(&claim.uid().unwrap_or_default(), &name);
    }

    /// Nothing is kept of a backend that is gone.
    fn forget_backend(&self, name: &str) {
        self.upstreams.forget(name);
        self.written_backends.forget("", name);
        self.metrics.forget_backend(name);
        self.secret_watches.set(name, &BTreeSet::new());
    }
}

/// `interval`, give or take a tenth: so that what was started together does not stay together.
fn jittered(interval: Duration) -> Duration {
    interval.mul_f64(0.9 + 0.2 * fastrand::f64())
}
