//! Runs the controllers: watches wake exactly the objects that depend on a change.

mod access;
mod access_feed;
mod announcer;
pub(crate) mod backend;
mod backoff;
mod claim;
mod clues;
mod completions;
mod config;
mod done;
pub(crate) mod drive;
mod feeds;
mod gauges;
mod jitter;
pub(crate) mod looks;
mod memory;
mod obc;
mod obc_feeds;
pub(crate) mod objects;
pub(crate) mod orphans;
mod pace;
mod reached;
mod reconcile;
mod secret_watches;
mod shared;
mod shown;
mod slots;
mod wakes;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{self, BoxFuture, Either, FutureExt, OptionFuture};
use k8s_openapi::api::core::v1::Namespace;
use kube::runtime::reflector;
use kube::{Api, Client};
use tokio::sync::mpsc::unbounded_channel;

use crate::cache::AccessCache;
use crate::election::{self, Surroundings};
use crate::kubernetes::{self, guarded};
use crate::mandate::Mandate;

pub use config::{Config, Parts};

use access::Accesses;
use backend::Backends;
use backoff::Backoff;
use claim::Claims;
use clues::Orphans;
use gauges::Gauges;
use obc::Obcs;
use reconcile::run_controller;
use shared::{Shared, Told};
use wakes::Wakes;

/// Time for running passes to finish after the signal to stop. After that, passes that wait for a
/// store are dropped, which is no worse than a crash (spec §5).
const LAST_PASSES: Duration = Duration::from_secs(8);

/// Maximum delay between two tries to read the installation's identity.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// A reason why the operator could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The installation's identity is neither configured nor readable.
    #[error("can't read namespace kube-system, whose UID identifies this installation: {0}; see --installation-id")]
    Installation(String),
    /// ObjectBuckets and storage classes are cluster-scoped, so `--obc` needs the whole cluster.
    #[error("--obc needs the whole cluster: ObjectBuckets are in no namespace, so --watch-namespace leaves none to it")]
    ObcInNamespaces,
}

/// Runs `work`, or returns `None` if the shutdown comes first. No pass has begun at that point.
async fn unless<T>(shutdown: &future::Shared<BoxFuture<'static, ()>>, work: impl Future<Output = T>) -> Option<T> {
    match future::select(shutdown.clone(), pin!(work)).await {
        Either::Left(_) => None,
        Either::Right((done, _)) => Some(done),
    }
}

/// Runs the operator until `shutdown` resolves. It then starts no new pass, and waits up to eight
/// seconds for the running ones.
///
/// Everything that it starts ends when the future is dropped.
///
/// # Errors
/// Returns an error if the installation's identity can't be read, or the configuration contradicts
/// itself.
pub async fn run(
    config: Config,
    parts: Parts,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), StartError> {
    if config.obc.is_some() && !config.reach.is_whole() {
        return Err(StartError::ObcInNamespaces);
    }
    let shutdown: BoxFuture<'static, ()> = shutdown.boxed();
    let shutdown = shutdown.shared();
    let Some(election) = config.election.clone() else {
        let mandate = if config.read_only { Mandate::ReadOnly } else { Mandate::Always };
        return work(config, parts, mandate, shutdown).await;
    };
    let surroundings = Surroundings {
        client: guarded(parts.client.clone(), Mandate::Always),
        namespace: config.operator_namespace.clone(),
        clock: parts.clock.clone(),
        uptime: parts.uptime.clone(),
        metrics: parts.metrics.clone(),
        ready: parts.ready.clone(),
    };
    let told = shutdown.clone();
    let life = move |tenure| work(config.clone(), parts.clone(), Mandate::Leading(tenure), shutdown.clone()).boxed();
    election::run(election, surroundings, life, told).await
}

/// Runs the controllers under a mandate. [`Mandate::ReadOnly`] runs them without any write.
async fn work(
    config: Config,
    mut parts: Parts,
    mandate: Mandate,
    shutdown: future::Shared<BoxFuture<'static, ()>>,
) -> Result<(), StartError> {
    parts.client = guarded(parts.client, mandate.clone());
    let installation = match config.installation.clone() {
        Some(installation) => installation,
        None => match unless(&shutdown, installation(&parts.client)).await {
            Some(installation) => installation?,
            None => return Ok(()),
        },
    };
    let (store, writer) = reflector::store();
    let (wakes, woken) = Wakes::new(store.clone());
    let accesses = Arc::new(AccessCache::default());
    let (orphans, clues) = Orphans::new(store.clone(), accesses.clone());
    let (recoveries, recovered) = unbounded_channel();
    let told = Told { wakes: Arc::new(wakes), orphans, recoveries, claims: store.clone(), accesses };
    let shared = Arc::new(Shared::new(config, &parts, mandate, installation, told));
    let (mut feeds, backends) = feeds::start(&shared, recovered);
    let accesses = access_feed::start(&shared, &mut feeds);
    if unless(&shutdown, feeds.ready()).await.is_none() {
        return Ok(());
    }
    // The caches that claims depend on are filled by now.
    feeds::feed_claims(&shared, &mut feeds, writer, store.clone());
    if unless(&shutdown, feeds.ready()).await.is_none() {
        return Ok(());
    }
    let obcs = shared.config.obc.clone().map(|provisioner| {
        let caches = obc_feeds::start(&shared, &mut feeds, &provisioner, (store.clone(), accesses.clone()));
        (caches, provisioner)
    });
    if let Some(ready) = &parts.ready {
        ready.send_replace(true);
    }
    parts.metrics.collect(Gauges {
        shared: Arc::downgrade(&shared),
        claims: store.clone(),
        accesses: accesses.clone(),
        obcs: obcs.clone(),
    });
    tracing::info!(installation = shared.observer.setting.installation, "caches are filled, work begins");
    let claims = run_controller(Claims { shared: shared.clone() }, store.clone(), woken.claims, shutdown.clone());
    let sweeps = orphans::run(shared.clone(), store.clone(), clues, shutdown.clone());
    let backends = run_controller(Backends::new(shared.clone(), store), backends, woken.backends, shutdown.clone());
    let kind = Accesses { shared: shared.clone() };
    let accesses = accesses.map(|store| run_controller(kind, store, woken.accesses, shutdown.clone()));
    let obcs = obcs.map(|(caches, provisioner)| {
        let store = caches.obcs.clone();
        run_controller(Obcs::new(shared.clone(), caches, provisioner), store, woken.obcs, shutdown.clone())
    });
    let (accesses, obcs) = (OptionFuture::from(accesses), OptionFuture::from(obcs));
    let patience = async {
        shutdown.await;
        tokio::time::sleep(LAST_PASSES).await;
    };
    let (passes, patience) = (pin!(future::join5(claims, backends, sweeps, accesses, obcs)), pin!(patience));
    let work = future::select(passes, patience);
    if let Either::Left((Either::Right(_), _)) = future::select(work, pin!(feeds.failed())).await {
        tracing::info!("passes that wait for a store are dropped; the next start takes them up");
    }
    Ok(())
}

/// Reads the UID of namespace `kube-system`, and retries while the API server is not available.
///
/// A process that exits is restarted with growing delays, and could stay down long after the API
/// server is back.
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
