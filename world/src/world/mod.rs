//! A cluster, a store, a gateway and the operator, put together.

mod tenants;

#[cfg(test)]
mod clocks_tests;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kube_sim::Cluster;
use parking_lot::Mutex;
use s3_sim::Store;
use seeded::VirtualClock;
use stowage_operator::api::{Endpoint, ServedBy};
use stowage_operator::plan::Reach;
use stowage_operator::{Config, Uptime};
use tokio::task::JoinSet;

use crate::beginnings::{Beginning, beginning};
use crate::clocks::Clocks;
use crate::effects::{Actor, Effects, GatewayEffects};
use crate::gateway::Gateway;
use crate::gateway::wire::Mailbox;
use crate::gateways::{self, Gateways};
use crate::history::facts::Objects;
use crate::history::{Chronicle, Facts, History, What};
use crate::installation::OPERATOR_NAMESPACE;
use crate::operator::{Circumstances, Operator};
use crate::options::{Accesses, Options};
use crate::third_parties::{Accounts, ControllersRest, ThirdParties};
use crate::transport::{Stores, authority};
use crate::{backends, config, manifests};

/// Longest that [`World::until`] waits, in virtual time.
const PATIENCE: Duration = Duration::from_secs(3600);

/// How often [`World::until`] looks, in virtual time.
const GLANCE: Duration = Duration::from_millis(50);

/// A cluster, a store, a gateway; and, once started, the operator.
pub struct World {
    /// The simulated Kubernetes API.
    pub cluster: Cluster,
    /// The simulated store behind the first backend; one that nobody reaches if there is no
    /// backend.
    pub store: Store,
    /// What the operator's calls are numbered and broken by.
    pub effects: Effects,
    /// What the gateways' calls are numbered and broken by, with [`Options::gateway_plan`].
    pub gateway_effects: GatewayEffects,
    /// What the stores are asked by the gateways, with [`Options::gateway_plan`].
    pub mailbox: Mailbox,
    /// True time of day: everybody's, but for whose clock is off.
    pub clock: VirtualClock,
    began: tokio::time::Instant,
    clocks: Clocks,
    stores: Stores,
    /// At least one.
    gateways: Vec<Gateway>,
    config: Config,
    operator_ends_after: Option<Duration>,
    elects: bool,
    /// How far the operators reach that are started from now on, the next last.
    reaches: Vec<Reach>,
    controllers_rest: ControllersRest,
    chronicle: Option<Chronicle>,
    /// Version of the last write that the cluster's own controllers have seen.
    controllers_saw: AtomicU64,
    /// All objects as they were when last asked for, and the version of the last write before.
    seen: Mutex<(u64, Arc<Objects>)>,
    tasks: JoinSet<()>,
}

impl World {
    /// A world with the CRDs installed, the namespaces that every cluster has, and the gateway
    /// running. To be called in the runtime that it will live in.
    pub fn new(options: Options) -> Self {
        let clock = VirtualClock::new();
        let config = config::of(&options);
        let kinds = (options.accesses == Accesses::Served, options.foreign);
        let Beginning { cluster, events } = beginning(&clock, options.seed, options.writes_before, kinds);
        let clocks = Clocks::default();
        let stores = backends::stores(&options.backends, &options.dialect, &clocks.of(Actor::Store, clock.clock()));
        let first = options.backends.first().and_then(|backend| stores.get(&backend.endpoint)).cloned();
        let store = first.unwrap_or_else(|| Store::new(clock.clock(), options.dialect.clone()));
        let stores = Stores::new(stores.into_iter().map(|(endpoint, store)| (authority(endpoint.as_str()), store)));
        let of_gateway = clocks.of(Actor::Gateway, clock.clock());
        let Gateways { all: gateways, effects: gateway_effects, mailbox } =
            gateways::gateways(&options, &cluster, &stores, &of_gateway);
        let mut tasks = JoinSet::new();
        for gateway in gateways.clone() {
            tasks.spawn(async move { gateway.run().await });
        }
        let controllers_rest = ControllersRest::default();
        let chronicle = options.history.then(|| Chronicle::beginning_with(events, clock.clone()));
        if let Some(chronicle) = &chronicle {
            cluster.observe(Arc::new(chronicle.clone()));
        }
        let others = ThirdParties {
            cluster: cluster.clone(),
            stores: stores.clone(),
            accounts: Accounts::Of(backends::accounts(&options.backends)),
            rest: controllers_rest.clone(),
            clocks: clocks.clone(),
            gateway: gateways[0].clone(),
            chronicle: chronicle.clone(),
        };
        let effects = Effects::within(options.plan, Arc::new(others));
        let controllers_saw = AtomicU64::new(0);
        let reaches = options.reaches.into_iter().rev().collect();
        Self {
            cluster,
            store,
            effects,
            gateway_effects,
            mailbox,
            clock,
            began: tokio::time::Instant::now(),
            clocks,
            stores,
            gateways,
            config,
            operator_ends_after: options.operator_ends_after,
            elects: options.elects,
            reaches,
            controllers_rest,
            chronicle,
            controllers_saw,
            seen: Mutex::default(),
            tasks,
        }
    }

    /// Applies manifests that are known to be good.
    ///
    /// # Panics
    /// When they aren't.
    pub async fn apply(&self, client: &kube::Client, yaml: &str) {
        manifests::apply_served(client, yaml, &self.operator()).await;
    }

    /// The operator of this world, as it notes itself: its namespace and the UID of `kube-system`.
    pub fn operator(&self) -> ServedBy {
        ServedBy::operator(OPERATOR_NAMESPACE, &self.installation())
    }

    /// What the operator takes itself for, unless it is told: the UID of `kube-system`.
    pub fn installation(&self) -> String {
        let system = self.cluster.object("namespaces", "", "kube-system");
        let uid = system.as_ref().and_then(|system| system["metadata"]["uid"].as_str());
        uid.unwrap_or_default().to_owned()
    }

    /// A clock that nobody sets, as operators go by in an election.
    pub fn uptime(&self) -> Uptime {
        let began = self.began;
        Uptime::new(move || began.elapsed())
    }

    /// A user's client for the cluster: neither numbered nor broken.
    pub fn kube(&self) -> kube::Client {
        self.cluster.client("default")
    }

    /// The store behind an endpoint.
    pub fn store_at(&self, endpoint: &Endpoint) -> Option<Store> {
        self.stores.get(&authority(endpoint.as_str()))
    }

    /// What the operator is told.
    pub fn config(&self) -> Config {
        self.config.clone()
    }

    /// What an operator is told that serves no more than this. One that may not read `kube-system`
    /// is told what it is.
    pub fn config_within(&self, reach: Reach) -> Config {
        let installation = (!reach.is_whole()).then(|| self.installation());
        Config { installation, reach, ..self.config() }
    }

    /// Starts the operator; it is started again a second after each crash, until the world ends or
    /// it is stopped.
    pub fn start_operator(&mut self) -> Operator {
        let reach = match self.reaches.as_slice() {
            [last] => last.clone(),
            _ => self.reaches.pop().unwrap_or_default(),
        };
        let operator = Operator::new(Circumstances {
            config: self.config_within(reach),
            ends_after: self.operator_ends_after,
            elects: self.elects,
            api: self.cluster.service(),
            stores: self.stores.clone(),
            effects: self.effects.clone(),
            clock: self.clocks.of(Actor::Operator, self.clock.clock()),
            uptime: self.uptime(),
        });
        self.tasks.spawn(operator.clone().live());
        operator
    }

    /// Lets the cluster's own controllers (garbage collector, namespace controller) do one round,
    /// unless a fault has them rest.
    pub fn run_cluster_controllers(&self) {
        if self.controllers_rest.is_on() {
            return;
        }
        // They act on what is stored: if nothing was written since their last round, they would
        // find nothing.
        let version = self.cluster.resource_version();
        if self.controllers_saw.swap(version, Ordering::Relaxed) == version {
            return;
        }
        self.cluster.collect_garbage();
        self.cluster.finalize_namespaces();
    }

    /// Waits until something is written that the cluster's own controllers have not seen.
    pub async fn news_for_controllers(&self) {
        self.cluster.written_after(self.controllers_saw.load(Ordering::Relaxed)).await;
    }

    /// Waits until `fact` holds, in virtual time, while the cluster's own controllers run.
    ///
    /// # Errors
    /// When it does not come to hold within an hour of virtual time.
    pub async fn until(&self, fact: impl Fn(&Self) -> bool) -> Result<(), TookTooLong> {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while !fact(self) {
            if tokio::time::Instant::now() > deadline {
                return Err(TookTooLong);
            }
            tokio::time::sleep(GLANCE).await;
            self.run_cluster_controllers();
        }
        Ok(())
    }

    /// Has somebody work in this world until it ends.
    pub fn spawn(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(work);
    }

    /// Whether the operator of now, and each that would be started, serves all namespaces.
    pub fn serves_all(&self) -> bool {
        self.reaches.iter().all(|reach| *reach == Reach::Cluster)
    }

    /// Where what happens is noted; `None` without [`Options::history`].
    pub fn chronicle(&self) -> Option<Chronicle> {
        self.chronicle.clone()
    }

    /// Notes in the history what somebody does.
    pub fn note(&self, what: What) {
        if let Some(chronicle) = &self.chronicle {
            chronicle.note(what);
        }
    }

    /// What has happened so far; without [`Options::history`], only the operator's calls.
    pub fn history(&self) -> History {
        let events = self.chronicle.as_ref().map(Chronicle::events).unwrap_or_default();
        History { events, trace: self.effects.trace() }
    }

    /// What has happened so far, as [`World::history`] tells it, of a world that is over: it is
    /// told but once.
    pub fn take_history(&self) -> History {
        let events = self.chronicle.as_ref().map(Chronicle::take_events).unwrap_or_default();
        History { events, trace: self.effects.take_trace() }
    }

    /// How everything stands.
    pub fn facts(&self) -> Facts {
        let buckets = self.stores.all().into_iter().flat_map(|(host, store)| {
            store.buckets().into_iter().map(move |(name, bucket)| ((host.clone(), name), bucket))
        });
        Facts { at: self.clock.now(), objects: self.objects(), buckets: buckets.collect() }
    }

    /// Every object. Most looks at it find nothing changed.
    fn objects(&self) -> Arc<Objects> {
        let mut seen = self.seen.lock();
        let version = self.cluster.resource_version();
        if seen.0 != version {
            let objects = self.cluster.objects().into_iter();
            let objects = objects.map(|stored| ((stored.plural, stored.namespace, stored.name), stored.object));
            *seen = (version, Arc::new(objects.collect()));
        }
        seen.1.clone()
    }

    /// Lets this much virtual time pass.
    pub async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

/// What was waited for did not come within an hour of virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it did not happen within an hour of virtual time")]
pub struct TookTooLong;
