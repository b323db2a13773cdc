//! The parts of a simulator, without its sockets.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube_front::{Front, Issued};
use kube_sim::{Cluster, Kept};
use s3_sim::{BucketSnapshot, Dialect, Store};
use stowage_gateway::audit::Log;
use stowage_operator::api::{Endpoint, Publishing};
use stowage_operator::{Config, Uptime};
use stowage_world::deeds::{Began, Deed, Shift};
use stowage_world::effects::{Actor, CallOutcome, Effects, Line, Plan};
use stowage_world::gateway::{Gateway, Given};
use stowage_world::{
    self, ADMIN_ACCESS_KEY, ADMIN_ACCOUNT, ADMIN_SECRET_KEY, Accounts, Circumstances, Clocks, ControllersRest,
    OPERATOR_NAMESPACE, Operator, Stores, ThirdParties, authority,
};
use tokio::sync::{Mutex, Notify};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::clock::Clock;
use super::data::{All, Data, SERVED, Stored, StoredStore};
use super::kinds::Kinds;
use super::recorder::Recorder;
use super::stores::New;
use super::traffic::Traffic;
use super::view::{self, Beside, Bucket, Objects, View};
use super::{controllers, stores};

/// Interval between counts of the operator's calls.
const COUNTED: Duration = Duration::from_millis(500);
/// Minimum number of the operator's last calls that are kept; a call takes some 200 bytes.
const CALLS_KEPT: usize = 20_000;
/// Age in milliseconds up to which a call without an answer is not listed.
const YOUNG_MS: u64 = 1000;
/// Number of gateway requests in a view.
const SHOWN: usize = 50;
/// Time limit for the operator to finish its running calls after a stop.
const LAST_CALLS: Duration = Duration::from_secs(5);

/// A cluster, stores, a gateway and the operator, on the machine's clock. Clones share them.
#[derive(Clone)]
pub(super) struct Simulator(Arc<Shared>);

struct Shared {
    clock: Clock,
    cluster: Cluster,
    kinds: Kinds,
    store: Store,
    /// The hosts by which backends know the store.
    hosts: parking_lot::Mutex<BTreeSet<String>>,
    stores: Stores,
    new: New,
    /// The data directory, if the state outlives the process.
    data: Option<Data>,
    front: OnceLock<Front>,
    /// Notifies that the cluster's state was replaced.
    begun_again: Notify,
    effects: Effects,
    gateway: Gateway,
    traffic: Traffic,
    rest: ControllersRest,
    circumstances: Circumstances,
    /// The record of users' actions.
    recorder: Recorder,
    /// The operator, if it runs.
    operator: Mutex<Option<AtWork>>,
}

/// A running operator. Its task is aborted when this value is dropped.
struct AtWork {
    operator: Operator,
    life: JoinSet<()>,
}

/// State that an earlier process saved.
pub(super) struct Before {
    /// ServiceAccount tokens.
    pub(super) tokens: Vec<Issued>,
    /// True if the initial manifests were applied.
    pub(super) furnished: bool,
}

/// Number of changes of each kind that are kept for watches. A client that is farther behind has to
/// list again, as after five minutes on an API server. The limit keeps memory from growing with
/// deleted and changed objects.
const CHANGES: usize = 1000;
/// Number of objects that are kept as JSON trees, some 18 KB each; all others are kept as text.
const TREES: usize = 500;

/// Returns the saved cluster, or a new one.
fn cluster(clock: &Clock, stored: &Stored, data: Option<&Data>, kinds: Kinds) -> Result<Cluster, String> {
    let cluster = Cluster::new(clock.clock(), fastrand::u64(..));
    cluster.remember(CHANGES);
    cluster.keep_compact(TREES);
    let (objects, is_new) = (stored.objects.iter().cloned(), stored.objects.is_empty());
    let left_out = if is_new { Vec::new() } else { cluster.restore(objects, stored.version)? };
    warn_of(&left_out);
    if let Some(data) = data {
        data.keep_cluster(&cluster, is_new);
        data.leave_out(&left_out);
    }
    kinds.serve(&cluster);
    Ok(cluster)
}

/// Warns of objects whose kinds are not defined any more.
pub(super) fn warn_of(left_out: &[Kept]) {
    if !left_out.is_empty() {
        tracing::warn!(objects = left_out.len(), "objects of kinds that nothing defines any more are left out");
    }
}

impl Simulator {
    /// Creates a simulator, which runs nothing yet. Also returns the saved state that is not part
    /// of the simulator.
    ///
    /// Tenants reach the gateway at `gateway_endpoint`, and the store's administrator reaches the
    /// store at `store_endpoint`. State is read from `directory` and saved there; without it, the
    /// state ends with the process.
    ///
    /// # Errors
    /// Returns an error message: a directory that can't be used, or a thread that can't be started.
    pub(super) fn new(
        gateway_endpoint: Endpoint,
        store_endpoint: &Endpoint,
        directory: Option<&Path>,
        kinds: Kinds,
    ) -> Result<(Self, Before), String> {
        let (clock, clocks) = (Clock::default(), Clocks::default());
        let of = |actor| clocks.of(actor, clock.clock());
        let timed = of(Actor::Store);
        let make =
            move |region: &str| Store::new(timed.clone(), Dialect { region: region.to_owned(), ..Dialect::default() });
        let make: Arc<dyn Fn(&str) -> Store + Send + Sync> = Arc::new(make);
        let (data, stored) = match directory {
            Some(directory) => {
                Data::open(directory, |region| make(region)).map(|(data, stored)| (Some(data), stored))?
            }
            None => (None, Stored::default()),
        };
        let new = New::by(make, data.clone());
        clock.set(stored.ahead);
        let cluster = cluster(&clock, &stored, data.as_ref(), kinds)?;
        let others = stored.stores.iter().filter(|(name, _)| *name != SERVED);
        let stores = Stores::new(others.map(|(name, it)| (name.clone(), it.store.clone())));
        let served = stored.stores.get(SERVED).map(|it| it.store.clone());
        let store = served.unwrap_or_else(|| {
            let store = new.store(SERVED, &Dialect::default().region);
            new.keep(SERVED, &store);
            store
        });
        let mut hosts = stored.hosts.clone();
        if hosts.is_empty() {
            // Backends keep using this host, even if the store has another address later.
            let host = authority(store_endpoint.as_str());
            data.iter().for_each(|data| data.keep_host(&host));
            hosts.insert(host);
        }
        hosts.iter().for_each(|host| stores.add(host.clone(), store.clone()));
        let hosts = parking_lot::Mutex::new(hosts);
        store.add_account(ADMIN_ACCOUNT, ADMIN_ACCESS_KEY, ADMIN_SECRET_KEY);
        stores::bring(&cluster, &stores, &new);
        let client = cluster.client(OPERATOR_NAMESPACE);
        let traffic = Traffic::default();
        let gateway = Gateway::new(Given {
            number: 0,
            client,
            operator_namespace: OPERATOR_NAMESPACE,
            clock: of(Actor::Gateway),
            // Clients use the machine's time, however far the simulator's time was moved.
            clock_of_clients: Arc::new(Timestamp::now),
            stores: stores.clone(),
            watch: None,
            log: Some(Log::to(traffic.clone()).map_err(|error| format!("can't start a thread: {error}"))?),
        });
        let rest = ControllersRest::default();
        let others = ThirdParties {
            cluster: cluster.clone(),
            stores: stores.clone(),
            accounts: Accounts::Same(ADMIN_ACCOUNT.to_owned()),
            rest: rest.clone(),
            clocks: clocks.clone(),
            gateway: gateway.clone(),
            chronicle: None,
        };
        let effects = Effects::within(Plan::default(), Arc::new(others));
        effects.keep(CALLS_KEPT);
        let began = Instant::now();
        let circumstances = Circumstances {
            // An empty prefix allows all labels and annotations in Secret templates: users who try
            // out a template here also run the operator.
            config: Config {
                obc: kinds.provisioner(),
                publishing: Publishing { metadata_prefixes: vec![String::new()], ..Publishing::default() },
                ..stowage_world::config_for(gateway_endpoint)
            },
            ends_after: None,
            elects: false,
            api: cluster.service(),
            stores: stores.clone(),
            effects: effects.clone(),
            clock: of(Actor::Operator),
            uptime: Uptime::new(move || began.elapsed()),
        };
        let began = if stored.objects.is_empty() { Began::Empty } else { Began::WithData };
        let recorder = Recorder::new(began, kinds == Kinds::WithObjectBuckets);
        let operator = Mutex::new(None);
        let (front, before) = (OnceLock::new(), Before { tokens: stored.tokens, furnished: stored.furnished });
        let shared = Shared {
            clock,
            cluster,
            kinds,
            store,
            hosts,
            stores,
            new,
            data,
            front,
            begun_again: Notify::new(),
            effects,
            gateway,
            traffic,
            rest,
            circumstances,
            recorder,
            operator,
        };
        Ok((Self(Arc::new(shared)), before))
    }

    /// Returns the data directory, if the state outlives the process.
    pub(super) fn data(&self) -> Option<&Data> {
        self.0.data.as_ref()
    }

    /// Sets the front, which knows the tokens of clients.
    pub(super) fn hand_over(&self, front: Front) {
        let _ = self.0.front.set(front);
    }

    /// Returns all state that outlives the process.
    pub(super) fn all(&self) -> All<'_> {
        let _still = self.0.new.still();
        let hosts = self.0.hosts.lock().clone();
        let others = self.0.stores.all().into_iter().filter(|(name, _)| !hosts.contains(name));
        let named = |(name, store): (String, Store)| {
            let region = store.dialect().region.clone();
            (name, StoredStore { region, store })
        };
        let served = (SERVED.to_owned(), self.0.store.clone());
        All {
            cluster: &self.0.cluster,
            stores: others.chain([served]).map(named).collect(),
            tokens: self.0.front.get().map(Front::issued).unwrap_or_default(),
            ahead: self.0.clock.ahead(),
            hosts,
            furnished: true,
        }
    }

    /// Returns the cluster.
    pub(super) fn cluster(&self) -> &Cluster {
        &self.0.cluster
    }

    /// Returns the kinds that it serves besides those of every cluster.
    pub(super) fn kinds(&self) -> Kinds {
        self.0.kinds
    }

    /// Returns the store that is served on a socket, for the default backend.
    pub(super) fn store(&self) -> &Store {
        &self.0.store
    }

    /// Returns the gateway.
    pub(super) fn gateway(&self) -> &Gateway {
        &self.0.gateway
    }

    /// Returns the record of users' actions.
    pub(super) fn recorder(&self) -> &Recorder {
        &self.0.recorder
    }

    /// Counts the operator's calls in a loop, because only the last [`CALLS_KEPT`] are kept.
    async fn count_calls(&self) {
        loop {
            self.see_calls();
            tokio::time::sleep(COUNTED).await;
        }
    }

    /// Adds all calls so far to the counts of the record.
    pub(super) fn see_calls(&self) {
        self.0.recorder.see(|last| self.0.effects.calls_after(last, CALLS_KEPT));
    }

    /// Returns the simulator's clock.
    pub(super) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// Runs the gateway, the controllers and the stores forever. Pods get `authority`, a CA
    /// certificate in PEM. Workloads are marked as ready if `workloads_ready` is true.
    pub(super) async fn run(&self, authority: &str, workloads_ready: bool) {
        let Shared { cluster, stores, new, rest, clock, .. } = &*self.0;
        let ready = workloads_ready.then(|| clock.clock());
        tokio::join!(
            self.follow(),
            controllers::run(cluster.clone(), rest.clone(), authority, ready),
            stores::follow(cluster.clone(), stores.clone(), new.clone()),
            self.count_calls(),
        );
    }

    /// Runs the gateway's watches, and restarts them when the cluster's state was replaced.
    async fn follow(&self) {
        loop {
            tokio::select! {
                () = self.0.gateway.run() => {}
                () = self.0.begun_again.notified() => {}
            }
        }
    }

    /// Makes the gateway list the cluster again.
    pub(super) fn tell_anew(&self) {
        self.0.begun_again.notify_one();
    }

    /// Starts the operator, and waits until its caches are filled.
    pub(super) async fn start_operator(&self) {
        let mut at_work = self.0.operator.lock().await;
        *at_work = Some(self.start().await);
    }

    /// Stops the operator, if it runs.
    pub(super) async fn stop_operator(&self) {
        if let Some(at_work) = self.0.operator.lock().await.take() {
            self.stop(at_work).await;
        }
    }

    async fn stop(&self, AtWork { operator, mut life }: AtWork) {
        operator.stop();
        // A task that misses the deadline is aborted when `life` is dropped.
        let _ = timeout(LAST_CALLS, life.join_next()).await;
        self.0.recorder.note(Deed::Operator(Shift::Stops));
    }

    async fn start(&self) -> AtWork {
        self.0.recorder.note(Deed::Operator(Shift::Starts));
        let operator = Operator::new(self.0.circumstances.clone());
        let mut life = JoinSet::new();
        life.spawn(operator.clone().live());
        operator.ready().await;
        AtWork { operator, life }
    }

    /// Moves time forward. Returns the new offset from the machine's time in seconds. The operator
    /// is restarted, because its timers use a clock that doesn't move with the simulator's time.
    pub(super) async fn advance(&self, seconds: u32) -> i64 {
        self.without_operator(async {
            let ahead = self.0.clock.ahead().saturating_add(i64::from(seconds));
            self.set_clock(ahead);
            self.0.recorder.note(Deed::Advance(SignedDuration::from_secs(i64::from(seconds))));
            ahead
        })
        .await
    }

    /// Runs work while the operator is stopped, and starts it again if it was running.
    pub(super) async fn without_operator<T>(&self, work: impl Future<Output = T>) -> T {
        let mut at_work = self.0.operator.lock().await;
        let was_at_work = match at_work.take() {
            Some(before) => {
                self.stop(before).await;
                true
            }
            None => false,
        };
        let outcome = work.await;
        if was_at_work {
            *at_work = Some(self.start().await);
        }
        outcome
    }

    /// Sets the clock's offset from the machine's time, in seconds.
    pub(super) fn set_clock(&self, ahead: i64) {
        let _still = self.0.new.still();
        self.move_clock(ahead);
    }

    /// Like [`Self::set_clock`], for callers that already hold the lock.
    pub(super) fn move_clock(&self, ahead: i64) {
        // Saved first: writes under the new time have to be saved after it.
        if let Some(data) = &self.0.data {
            data.keep_clock(ahead);
        }
        self.0.clock.set(ahead);
    }

    /// Returns the stores of backends, by host.
    pub(super) fn stores(&self) -> &Stores {
        &self.0.stores
    }

    /// Returns the factory of stores.
    pub(super) fn new_stores(&self) -> &New {
        &self.0.new
    }

    /// Returns the front, once it is set.
    pub(super) fn front(&self) -> Option<&Front> {
        self.0.front.get()
    }

    /// Returns the hosts by which backends know the served store.
    pub(super) fn hosts(&self) -> BTreeSet<String> {
        self.0.hosts.lock().clone()
    }

    /// Adds a host by which backends know the served store.
    pub(super) fn serve_as(&self, host: &str) {
        if self.0.hosts.lock().insert(host.to_owned()) {
            self.0.data.iter().for_each(|data| data.keep_host(host));
            self.0.stores.add(host.to_owned(), self.0.store.clone());
        }
    }

    /// Returns the operator's calls after the one with this number, oldest first, at most `most`. A
    /// recent call without an answer is left out, and so are the calls after it: a moment later
    /// most have an answer.
    pub(super) fn calls_after(&self, number: u64, most: usize) -> Vec<Line> {
        let mut calls = self.0.effects.calls_after(number, most);
        let now = self.0.effects.elapsed_ms();
        let is_young = |line: &Line| line.answer == CallOutcome::Pending && line.began_ms + YOUNG_MS > now;
        calls.truncate(calls.iter().position(is_young).unwrap_or(calls.len()));
        calls
    }

    /// Returns the number of the operator's last call.
    pub(super) fn last_call(&self) -> u64 {
        self.0.effects.count()
    }

    /// Adds faults for future calls.
    pub(super) fn arm(&self, plan: Plan) {
        self.0.recorder.armed(&plan);
        self.0.effects.arm(plan);
    }

    /// Returns the faults that have not met a call yet.
    pub(super) fn armed(&self) -> Plan {
        self.0.effects.unfired()
    }

    /// Removes all faults. Clocks that were set wrong stay as they are.
    pub(super) fn calm(&self) {
        self.see_calls();
        self.0.effects.calm();
        self.0.recorder.calm(self.0.effects.elapsed_ms());
    }

    /// Returns the state that the page shows.
    pub(super) fn view(&self) -> View {
        let aliases: BTreeSet<String> = self.0.hosts.lock().iter().skip(1).cloned().collect();
        let stores = self.0.stores.all().into_iter().filter(|(host, _)| !aliases.contains(host));
        let buckets = stores.flat_map(|(store, behind)| {
            let bucket =
                move |(name, it): (String, BucketSnapshot)| Bucket { store: store.clone(), name, objects: it.objects };
            behind.buckets().into_iter().map(bucket)
        });
        let beside = Beside {
            now: self.0.clock.now(),
            ahead_seconds: self.0.clock.ahead(),
            armed: self.armed().to_string(),
            traffic: self.0.traffic.last(SHOWN),
            buckets: buckets.collect(),
        };
        view::view(&Objects::of(&self.0.cluster), beside)
    }

    /// Returns a value that changes with the view, except for the time.
    pub(super) fn version(&self) -> (u64, u64, String, i64) {
        let written = self.0.cluster.resource_version();
        (written, self.0.traffic.count(), self.armed().to_string(), self.0.clock.ahead())
    }
}
