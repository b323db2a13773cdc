//! A world: cluster, store, gateway and operator combined.

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

/// Time limit of [`World::until`], in virtual time.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Interval at which [`World::until`] checks, in virtual time.
const GLANCE: Duration = Duration::from_millis(50);

/// A cluster, a store and a gateway. The operator has to be started.
pub struct World {
    /// The simulated Kubernetes API.
    pub cluster: Cluster,
    /// The simulated store behind the first backend. Without backends, a store that is not
    /// reachable.
    pub store: Store,
    /// Numbering and faults of the operator's calls.
    pub effects: Effects,
    /// Numbering and faults of the gateways' calls, with [`Options::gateway_plan`].
    pub gateway_effects: GatewayEffects,
    /// Requests that the stores received from the gateways, with [`Options::gateway_plan`].
    pub mailbox: Mailbox,
    /// True time of day. Clocks differ from it only by the offsets of faults.
    pub clock: VirtualClock,
    began: tokio::time::Instant,
    clocks: Clocks,
    stores: Stores,
    /// All gateways; at least one.
    gateways: Vec<Gateway>,
    config: Config,
    operator_ends_after: Option<Duration>,
    elects: bool,
    /// Reaches of the operators that are started from now on, in reverse order.
    reaches: Vec<Reach>,
    controllers_rest: ControllersRest,
    chronicle: Option<Chronicle>,
    /// Version of the last write that the cluster's own controllers have processed.
    controllers_saw: AtomicU64,
    /// All objects at the last query, and the version of the last write before it.
    seen: Mutex<(u64, Arc<Objects>)>,
    tasks: JoinSet<()>,
}

impl World {
    /// Creates a world with the CRDs installed, the namespaces that every cluster has, and the
    /// gateway running. Must be called in the runtime in which the world is used.
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

    /// Applies manifests that are known to be valid.
    ///
    /// # Panics
    /// Panics if a manifest is invalid or refused.
    pub async fn apply(&self, client: &kube::Client, yaml: &str) {
        manifests::apply_served(client, yaml, &self.operator()).await;
    }

    /// Returns the identity of this world's operator: its namespace and the UID of `kube-system`.
    pub fn operator(&self) -> ServedBy {
        ServedBy::operator(OPERATOR_NAMESPACE, &self.installation())
    }

    /// Returns the operator's default installation name: the UID of `kube-system`.
    pub fn installation(&self) -> String {
        let system = self.cluster.object("namespaces", "", "kube-system");
        let uid = system.as_ref().and_then(|system| system["metadata"]["uid"].as_str());
        uid.unwrap_or_default().to_owned()
    }

    /// Returns a monotonic clock, which operators use in an election.
    pub fn uptime(&self) -> Uptime {
        let began = self.began;
        Uptime::new(move || began.elapsed())
    }

    /// Returns a user's client for the cluster. Its calls are not numbered and have no faults.
    pub fn kube(&self) -> kube::Client {
        self.cluster.client("default")
    }

    /// Returns the store behind an endpoint.
    pub fn store_at(&self, endpoint: &Endpoint) -> Option<Store> {
        self.stores.get(&authority(endpoint.as_str()))
    }

    /// Returns the operator's configuration.
    pub fn config(&self) -> Config {
        self.config.clone()
    }

    /// Returns the configuration of an operator that serves only these namespaces. If it may not
    /// read `kube-system`, the configuration has the installation name.
    pub fn config_within(&self, reach: Reach) -> Config {
        let installation = (!reach.is_whole()).then(|| self.installation());
        Config { installation, reach, ..self.config() }
    }

    /// Starts the operator. After each crash it is restarted a second later, until the world ends
    /// or the operator is stopped.
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
    /// unless a fault pauses them.
    pub fn run_cluster_controllers(&self) {
        if self.controllers_rest.is_on() {
            return;
        }
        // They act only on stored objects, so without a write since their last round there is
        // nothing to do.
        let version = self.cluster.resource_version();
        if self.controllers_saw.swap(version, Ordering::Relaxed) == version {
            return;
        }
        self.cluster.collect_garbage();
        self.cluster.finalize_namespaces();
    }

    /// Waits for a write that the cluster's own controllers have not processed.
    pub async fn news_for_controllers(&self) {
        self.cluster.written_after(self.controllers_saw.load(Ordering::Relaxed)).await;
    }

    /// Waits in virtual time until `fact` returns true, while the cluster's own controllers run.
    ///
    /// # Errors
    /// Returns an error after an hour of virtual time.
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

    /// Spawns a task that runs until this world ends.
    pub fn spawn(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(work);
    }

    /// Returns true if the current operator, and each that would be started, serves all namespaces.
    pub fn serves_all(&self) -> bool {
        self.reaches.iter().all(|reach| *reach == Reach::Cluster)
    }

    /// Returns the chronicle in which events are recorded; `None` without [`Options::history`].
    pub fn chronicle(&self) -> Option<Chronicle> {
        self.chronicle.clone()
    }

    /// Records an event in the history.
    pub fn note(&self, what: What) {
        if let Some(chronicle) = &self.chronicle {
            chronicle.note(what);
        }
    }

    /// Returns the history so far. Without [`Options::history`], it has only the operator's calls.
    pub fn history(&self) -> History {
        let events = self.chronicle.as_ref().map(Chronicle::events).unwrap_or_default();
        History { events, trace: self.effects.trace() }
    }

    /// Returns the history of a world that is over, like [`World::history`], and removes it. Call
    /// it only once.
    pub fn take_history(&self) -> History {
        let events = self.chronicle.as_ref().map(Chronicle::take_events).unwrap_or_default();
        History { events, trace: self.effects.take_trace() }
    }

    /// Returns the current state.
    pub fn facts(&self) -> Facts {
        let buckets = self.stores.all().into_iter().flat_map(|(host, store)| {
            store.buckets().into_iter().map(move |(name, bucket)| ((host.clone(), name), bucket))
        });
        Facts { at: self.clock.now(), objects: self.objects(), buckets: buckets.collect() }
    }

    /// Returns every object. Cached, because most queries find nothing changed.
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

    /// Waits for this duration of virtual time.
    pub async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

/// Error: the condition was not met within an hour of virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it did not happen within an hour of virtual time")]
pub struct TookTooLong;
