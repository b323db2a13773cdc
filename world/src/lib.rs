//! A whole world in one process: a cluster, an S3 store, a gateway, and the operator between them.
//!
//! Everything runs on tokio's clock, which in a paused runtime jumps to the next timer: minutes of
//! backoff take no time. The operator is the production crate, started through its public
//! [`stowage_operator::run`].

mod backends;
mod beginnings;
mod clocks;
#[cfg(test)]
mod clocks_tests;
pub mod deeds;
pub mod determinism;
pub mod effects;
pub mod fixtures;
mod foreign;
pub mod gateway;
mod gateways;
pub mod history;
mod installation;
mod manifests;
mod operator;
pub mod serve;
#[cfg(test)]
mod tests;
mod third_parties;
mod transport;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

pub use backends::BackendStore;
use beginnings::Beginning;
pub use clocks::Clocks;
pub use foreign::Foreign;
use gateways::Gateways;
use kube_sim::{Cluster, ReadDefinition};
pub use manifests::{Document, ManifestError, apply, apply_as, parse, read_once};
pub use operator::{Circumstances, Operator, operator_instance};
use parking_lot::Mutex;
use s3_sim::{Dialect, Store};
use seeded::VirtualClock;
use stowage_operator::api::{AddressingStyle, Endpoint, Gateway as GatewayAddress, Publishing, ServedBy, Unlabelled};
use stowage_operator::plan::Reach;
use stowage_operator::upstream::Limits;
use stowage_operator::{Config, Uptime, api};
pub use third_parties::{Accounts, ControllersRest, ThirdParties};
use tokio::task::JoinSet;
pub use transport::{Hosts, Stores};

use crate::effects::{Actor, Effects, GatewayEffects, GatewayPlan, Plan};
use crate::gateway::Gateway;
use crate::gateway::wire::Mailbox;
use crate::history::facts::Objects;
use crate::history::{Chronicle, Facts, History, What};
pub use installation::OPERATOR_NAMESPACE;

/// Account of the store that the operator's admin credentials belong to.
pub const ADMIN_ACCOUNT: &str = "stowage-admin";
/// Access key id of those credentials.
pub const ADMIN_ACCESS_KEY: &str = "STOWAGEADMIN";
/// Secret key of those credentials.
pub const ADMIN_SECRET_KEY: &str = "stowage-admin-secret-key-for-demonstration";
/// Where tenants reach the gateway.
pub const GATEWAY_ENDPOINT: &str = "http://gateway.example";
/// Where the operator reaches the store.
pub const STORE_ENDPOINT: &str = "http://s3.example:9000";

/// What storage classes call the operator of a world that serves ObjectBucketClaims.
pub const PROVISIONER: &str = "broker.stowage.io/bucket";

/// Longest that [`World::until`] waits, in virtual time.
const PATIENCE: Duration = Duration::from_secs(3600);

/// How often [`World::until`] looks, in virtual time.
const GLANCE: Duration = Duration::from_millis(50);

/// What a world is made with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed of everything that the cluster draws: UIDs, generated names.
    pub seed: u64,
    /// Faults of the operator's calls.
    pub plan: Plan,
    /// Most objects that the operator deletes from a bucket in one pass.
    pub purge_slice: u32,
    /// Most passes of the operator that run at once.
    pub max_concurrent_reconciles: u16,
    /// How often the operator looks at what is at rest.
    pub resync_interval: Duration,
    /// What may stand in consumer Secrets.
    pub publishing: Publishing,
    /// How many writes the cluster has seen before: resourceVersions go on from there.
    pub writes_before: u64,
    /// The reading of S3 that the stores follow, but for the region, which is that of the backend.
    pub dialect: Dialect,
    /// After how long each life of the operator comes to an end of itself, as by a bug; it doesn't
    /// if absent.
    pub operator_ends_after: Option<Duration>,
    /// Whether what happens is noted, for [`World::history`].
    pub history: bool,
    /// The backends that there are stores for, and that the gateway serves: those of one endpoint
    /// share a store.
    pub backends: Vec<BackendStore>,
    /// How many gateways there are, at least one.
    pub gateways: usize,
    /// Whether operators elect the one that works.
    pub elects: bool,
    /// How far operators reach, in the order in which they are started; the last holds for all that
    /// follow.
    pub reaches: Vec<Reach>,
    /// Whether there are accesses.
    pub accesses: Accesses,
    /// Whose definitions of ObjectBucketClaims there are; without any the operator serves none.
    pub foreign: Option<Foreign>,
    /// Faults of the gateways' calls; without a plan these are neither numbered nor noted.
    pub gateway_plan: Option<GatewayPlan>,
    /// After how long a watch of a gateway ends and is begun again, which is a sign of life.
    /// Without end unless given, which is least to do.
    pub gateway_watch: Option<Duration>,
}

/// Whether a world has accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accesses {
    /// Neither cluster nor operator know of them: each call is as it was before there were any.
    Absent,
    /// The operator would serve them, and the cluster doesn't know the kind.
    Unknown,
    /// There can be some.
    Served,
}

impl Default for Options {
    /// No faults, the operator's own defaults, and one backend: `main` at [`STORE_ENDPOINT`] with
    /// the keys of [`ADMIN_ACCOUNT`].
    fn default() -> Self {
        Self {
            seed: 0,
            plan: Plan::default(),
            purge_slice: 10_000,
            max_concurrent_reconciles: 16,
            resync_interval: Duration::from_secs(600),
            publishing: Publishing::default(),
            writes_before: 0,
            dialect: Dialect::default(),
            operator_ends_after: None,
            history: false,
            backends: vec![BackendStore::main()],
            gateways: 1,
            elects: false,
            reaches: vec![Reach::Cluster],
            accesses: Accesses::Absent,
            foreign: None,
            gateway_plan: None,
            gateway_watch: None,
        }
    }
}

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
        let config = config(&options);
        let kinds = (options.accesses == Accesses::Served, options.foreign);
        let Beginning { cluster, events } = beginnings::beginning(&clock, options.seed, options.writes_before, kinds);
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

/// What the operator is told in a world with these options.
fn config(options: &Options) -> Config {
    Config {
        max_concurrent_reconciles: options.max_concurrent_reconciles,
        purge_slice: options.purge_slice,
        accesses: options.accesses != Accesses::Absent,
        obc: options.foreign.map(|_| PROVISIONER.to_owned()),
        resync_interval: options.resync_interval,
        publishing: options.publishing.clone(),
        ..config_for(Endpoint::parse(GATEWAY_ENDPOINT).expect("it is a URL"))
    }
}

/// What the operator is told whose tenants reach the gateway at this endpoint; else its defaults.
pub fn config_for(gateway: Endpoint) -> Config {
    Config {
        operator_namespace: OPERATOR_NAMESPACE.to_owned(),
        usage_namespace: None,
        reach: Reach::Cluster,
        trusted_namespaces: std::collections::BTreeSet::new(),
        unlabelled_credentials: Unlabelled::Refused,
        gateway: GatewayAddress {
            endpoint: gateway,
            region: "us-east-1".to_owned(),
            addressing_style: AddressingStyle::Path,
            ca: None,
        },
        publishing: Publishing::default(),
        installation: None,
        read_only: false,
        election: None,
        max_concurrent_reconciles: 16,
        limits: Limits { calls: 32, timeout: Duration::from_secs(30) },
        purge_slice: 10_000,
        accesses: true,
        obc: None,
        resync_interval: Duration::from_secs(600),
    }
}

/// The operator's CRDs, read once in a process: that of accesses last.
pub fn definitions() -> &'static [ReadDefinition] {
    static DEFINITIONS: LazyLock<Vec<ReadDefinition>> = LazyLock::new(|| {
        let read = |crd| ReadDefinition::new(crd).expect("the project's own CRDs are valid");
        api::crds().iter().map(read).collect()
    });
    &DEFINITIONS
}

/// What was waited for did not come within an hour of virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it did not happen within an hour of virtual time")]
pub struct TookTooLong;

/// Host and port of a URL.
pub fn authority(url: &str) -> String {
    url.split("://").nth(1).unwrap_or(url).to_owned()
}
