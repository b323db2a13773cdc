//! What runs in a simulator, without its sockets.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use kube::core::GroupVersionResource;
use kube_sim::Cluster;
use s3_sim::{BucketSnapshot, Dialect, Store};
use serde_json::Value;
use stowage_gateway::audit::Log;
use stowage_operator::Uptime;
use stowage_operator::api::{BucketClaim, Endpoint, GROUP, VERSION};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::clock::Clock;
use super::traffic::Traffic;
use super::view::{self, Beside, Bucket, View};
use super::{controllers, stores};
use crate::effects::{Actor, CallOutcome, Effects, Line, Plan};
use crate::gateway::{Gateway, Given};
use crate::world::{
    self, ADMIN_ACCESS_KEY, ADMIN_ACCOUNT, ADMIN_SECRET_KEY, Accounts, Circumstances, Clocks, ControllersRest,
    OPERATOR_NAMESPACE, Operator, Stores, ThirdParties, authority,
};

/// Least of the operator's last calls that are remembered; a call takes some 200 bytes.
const CALLS_KEPT: usize = 20_000;
/// How long a call without an answer isn't told of, in milliseconds.
const YOUNG_MS: u64 = 1000;
/// Requests of the gateway that a view shows.
const SHOWN: usize = 50;
/// Longest that the operator has for what is under way when it is told to end.
const LAST_CALLS: Duration = Duration::from_secs(5);

/// A cluster, stores, a gateway and the operator, on the machine's clock. Clones are the same.
#[derive(Clone)]
pub(super) struct Simulator(Arc<Shared>);

struct Shared {
    clock: Clock,
    cluster: Cluster,
    store: Store,
    stores: Stores,
    effects: Effects,
    gateway: Gateway,
    traffic: Traffic,
    rest: ControllersRest,
    circumstances: Circumstances,
    /// The operator at work, if it is.
    operator: Mutex<Option<AtWork>>,
}

/// An operator and the task that it lives in, which ends with this.
struct AtWork {
    operator: Operator,
    life: JoinSet<()>,
}

/// What a claim's consumer Secret holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Connection {
    /// There is no such claim.
    NoClaim,
    /// It isn't ready, and why, as far as that is told.
    NotReady(String),
    /// The Secret's keys and values.
    Ready(BTreeMap<String, String>),
}

impl Simulator {
    /// A simulator in which nothing works yet. Tenants reach its gateway at the first endpoint, and
    /// whoever administers the store reaches that at the second.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn new(gateway_endpoint: Endpoint, store_endpoint: &Endpoint) -> io::Result<Self> {
        let (clock, clocks) = (Clock::default(), Clocks::default());
        let of = |actor| clocks.of(actor, clock.clock());
        let cluster = Cluster::new(clock.clock(), fastrand::u64(..));
        for definition in world::definitions() {
            cluster.serve(definition).expect("the project's own CRDs are valid");
        }
        let store = Store::new(of(Actor::Store), Dialect::default());
        store.add_account(ADMIN_ACCOUNT, ADMIN_ACCESS_KEY, ADMIN_SECRET_KEY);
        let stores = Stores::new([(authority(store_endpoint.as_str()), store.clone())]);
        let client = cluster.client(OPERATOR_NAMESPACE);
        let traffic = Traffic::default();
        let gateway = Gateway::new(Given {
            number: 0,
            client,
            operator_namespace: OPERATOR_NAMESPACE,
            clock: of(Actor::Gateway),
            // However far time was moved, clients have the machine's.
            clock_of_clients: Arc::new(Timestamp::now),
            stores: stores.clone(),
            log: Some(Log::to(traffic.clone())?),
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
            config: world::config_for(gateway_endpoint),
            ends_after: None,
            elects: false,
            api: cluster.service(),
            stores: stores.clone(),
            effects: effects.clone(),
            clock: of(Actor::Operator),
            uptime: Uptime::new(move || began.elapsed()),
        };
        let operator = Mutex::new(None);
        let shared = Shared { clock, cluster, store, stores, effects, gateway, traffic, rest, circumstances, operator };
        Ok(Self(Arc::new(shared)))
    }

    /// The cluster.
    pub(super) fn cluster(&self) -> &Cluster {
        &self.0.cluster
    }

    /// The store that stands ready for backends, and that can be reached from outside.
    pub(super) fn store(&self) -> &Store {
        &self.0.store
    }

    /// The gateway.
    pub(super) fn gateway(&self) -> &Gateway {
        &self.0.gateway
    }

    /// The simulator's time.
    pub(super) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// What has to be done for as long as the simulator is there: gateway, controllers, stores.
    /// Pods are told to trust this authority, in PEM.
    pub(super) async fn run(&self, authority: &str) {
        let Shared { cluster, stores, clock, rest, gateway, .. } = &*self.0;
        tokio::join!(
            gateway.run(),
            controllers::run(cluster.clone(), rest.clone(), authority),
            stores::follow(cluster.clone(), stores.clone(), clock.clock()),
        );
    }

    /// Starts the operator, and waits until its caches are filled.
    pub(super) async fn start_operator(&self) {
        let mut at_work = self.0.operator.lock().await;
        *at_work = Some(self.start().await);
    }

    /// Stops the operator, if it is at work.
    pub(super) async fn stop_operator(&self) {
        if let Some(at_work) = self.0.operator.lock().await.take() {
            stop(at_work).await;
        }
    }

    async fn start(&self) -> AtWork {
        let operator = Operator::new(self.0.circumstances.clone());
        let mut life = JoinSet::new();
        life.spawn(operator.clone().live());
        operator.ready().await;
        AtWork { operator, life }
    }

    /// Moves time ahead; says how many seconds it is ahead of the machine's then. The operator is
    /// started again under the new time: what it waits for, it waits for by a clock that nobody
    /// moves.
    pub(super) async fn advance(&self, seconds: u32) -> i64 {
        let mut at_work = self.0.operator.lock().await;
        let was_at_work = match at_work.take() {
            Some(before) => {
                stop(before).await;
                true
            }
            None => false,
        };
        let ahead = self.0.clock.advance(seconds);
        if was_at_work {
            *at_work = Some(self.start().await);
        }
        ahead
    }

    /// The operator's calls after the one of this number, oldest first, so many at most. A call
    /// without an answer, and those after it, are told of a moment later: then most have one.
    pub(super) fn calls_after(&self, number: u64, most: usize) -> Vec<Line> {
        let mut calls = self.0.effects.calls_after(number, most);
        let now = self.0.effects.elapsed_ms();
        let is_young = |line: &Line| line.answer == CallOutcome::Pending && line.began_ms + YOUNG_MS > now;
        calls.truncate(calls.iter().position(is_young).unwrap_or(calls.len()));
        calls
    }

    /// Number of the operator's last call.
    pub(super) fn last_call(&self) -> u64 {
        self.0.effects.count()
    }

    /// Adds faults for calls to come.
    pub(super) fn arm(&self, plan: Plan) {
        self.0.effects.arm(plan);
    }

    /// Faults that have met no call yet.
    pub(super) fn armed(&self) -> Plan {
        self.0.effects.unfired()
    }

    /// From now on nothing goes wrong. Clocks that were set wrong stay as they are.
    pub(super) fn calm(&self) {
        self.0.effects.calm();
    }

    /// How all stands, as the page shows it.
    pub(super) fn view(&self) -> View {
        let buckets = self.0.stores.all().into_iter().flat_map(|(store, behind)| {
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
        view::view(&self.0.cluster.objects(), beside)
    }

    /// What changes whenever the view does, but for the time.
    pub(super) fn version(&self) -> (u64, u64, String, i64) {
        let written = self.0.cluster.resource_version();
        (written, self.0.traffic.count(), self.armed().to_string(), self.0.clock.ahead())
    }

    /// How a claim's bucket is reached.
    pub(super) fn connection(&self, namespace: &str, name: &str) -> Connection {
        let claims = GroupVersionResource::gvr(GROUP, VERSION, "bucketclaims");
        let Ok(claim) = self.0.cluster.get(&claims, namespace, name) else { return Connection::NoClaim };
        let status = serde_json::from_value::<BucketClaim>(Value::clone(&claim)).ok().and_then(|claim| claim.status);
        let ready = status.iter().flat_map(|status| &status.conditions).find(|condition| condition.type_ == "Ready");
        if let Some(ready) = ready.filter(|ready| ready.status != "True") {
            return Connection::NotReady(format!("{}: {}", ready.reason, ready.message));
        }
        let secret = status.as_ref().and_then(|status| status.bound_secret_name.clone()).filter(|_| ready.is_some());
        let Some(secret) = secret else { return Connection::NotReady("the operator hasn't come to it yet".to_owned()) };
        let secrets = GroupVersionResource::gvr("", "v1", "secrets");
        match self.0.cluster.get(&secrets, namespace, &secret) {
            Ok(found) => Connection::Ready(texts(&found["data"])),
            Err(_) => Connection::NotReady(format!("its Secret {secret} is gone")),
        }
    }
}

async fn stop(AtWork { operator, mut life }: AtWork) {
    operator.stop();
    // Who doesn't come to an end is ended with its task.
    let _ = timeout(LAST_CALLS, life.join_next()).await;
}

/// The data of a Secret, as far as it is text.
fn texts(data: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| String::from_utf8(BASE64_STANDARD.decode(value.as_str()?).ok()?).ok();
    let fields = data.as_object().into_iter().flatten();
    fields.filter_map(|(key, value)| Some((key.clone(), text(value)?))).collect()
}
