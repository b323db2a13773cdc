//! Processes of the operator, restarted after each crash.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use explore::ApiBody;
use futures::future::OptionFuture;
use kube_sim::ApiService;
use seeded::WallClock;
use stowage_operator::{Clock, Config, Election, Metrics, Parts, StartError, Terms, Uptime};
use tokio::sync::watch;
use tower::{Layer, ServiceExt};

use crate::effects::{Effects, Gate, Instance, LifeEnd};
use crate::installation::OPERATOR_NAMESPACE;
use crate::transport::{SimulatedConnect, Stores};

/// Time between a crash and the restart. If the operator fails to start, the time doubles each
/// time, as under a kubelet.
const DOWNTIME: Duration = Duration::from_secs(1);
/// Maximum time between a failed start and the next.
const MOST_DOWNTIME: Duration = Duration::from_secs(300);

/// Prefix of a process's name in an election; the suffix is its number.
const NAME: &str = "operator-";

/// Returns the number of the process, counted from 1, that has this name in an election.
pub fn operator_instance(name: &str) -> Option<u32> {
    name.strip_prefix(NAME)?.parse().ok()
}

/// Environment of an operator. It is the same for all its processes.
#[derive(Clone)]
pub struct Circumstances {
    /// Configuration of the operator, except the election.
    pub config: Config,
    /// Time after which each process ends by itself, if it does.
    pub ends_after: Option<Duration>,
    /// True if the operator takes part in an election.
    pub elects: bool,
    /// The Kubernetes API.
    pub api: ApiService,
    /// Stores that the operator can reach.
    pub stores: Stores,
    /// Numbering and faults of the operator's calls.
    pub effects: Effects,
    /// Wall clock of the operator.
    pub clock: WallClock,
    /// Monotonic clock of the operator.
    pub uptime: Uptime,
}

/// The production operator with its successive processes. Clones are handles to the same operator.
#[derive(Clone)]
pub struct Operator {
    circumstances: Circumstances,
    crashes: Arc<AtomicU32>,
    gave_up: Arc<AtomicBool>,
    received: Arc<AtomicU64>,
    stop: watch::Sender<bool>,
    ready: watch::Sender<bool>,
    metrics: watch::Sender<Metrics>,
}

impl Operator {
    /// Creates an operator without starting it.
    pub fn new(circumstances: Circumstances) -> Self {
        Self {
            circumstances,
            crashes: Arc::default(),
            gave_up: Arc::default(),
            received: Arc::default(),
            stop: watch::Sender::new(false),
            ready: watch::Sender::new(false),
            metrics: watch::Sender::new(Metrics::new()),
        }
    }

    /// Runs the operator until it is stopped, and restarts it after each crash.
    pub async fn live(self) {
        let mut downtime = DOWNTIME;
        while !*self.stop.borrow() {
            let instance = self.circumstances.effects.instance();
            match self.one_life_with_stops(&instance).await {
                LifeEnd::Finished(Ok(())) => return self.note_end(),
                LifeEnd::Finished(Err(_)) => downtime = (downtime * 2).min(MOST_DOWNTIME),
                LifeEnd::Crashed { .. } => {
                    self.crashes.fetch_add(1, Ordering::Relaxed);
                    downtime = DOWNTIME;
                }
            }
            self.ready.send_replace(false);
            tokio::time::sleep(downtime).await;
        }
    }

    /// Records that a process ended by itself, which counts as giving up unless it was stopped.
    fn note_end(&self) {
        self.gave_up.fetch_or(!*self.stop.borrow(), Ordering::Relaxed);
    }

    /// Runs one process, which is suspended where the plan has a standstill.
    async fn one_life_with_stops(&self, instance: &Instance) -> LifeEnd<Result<(), StartError>> {
        let twin = async |instance: Instance| self.turn_of_twin(&instance).await;
        explore::lives::one_life(&self.circumstances.effects, instance, self.one_life(instance), twin).await
    }

    /// Runs the process of a second operator with the same configuration.
    async fn turn_of_twin(&self, instance: &Instance) {
        let twin = Self {
            received: Arc::default(),
            stop: watch::Sender::new(false),
            ready: watch::Sender::new(false),
            metrics: watch::Sender::new(Metrics::new()),
            ..self.clone()
        };
        if twin.one_life(instance).await.is_ok() {
            twin.note_end();
        }
    }

    async fn one_life(&self, instance: &Instance) -> Result<(), StartError> {
        let (received, gate) = (self.received.clone(), Gate::before(instance));
        let counted = move |body| ApiBody::counted(body, received.clone(), gate.clone());
        let api = self.circumstances.api.clone().map_response(move |response| response.map(counted));
        let service = self.circumstances.effects.kube_layer(instance).layer(api);
        let layer = self.circumstances.effects.s3_layer(instance);
        let now = self.circumstances.clock.clone();
        let metrics = Metrics::new();
        self.metrics.send_replace(metrics.clone());
        let parts = Parts {
            client: kube::Client::new(service, OPERATOR_NAMESPACE),
            connect: Arc::new(SimulatedConnect { stores: self.circumstances.stores.clone(), layer }),
            clock: Clock::new(move || now()),
            uptime: self.circumstances.uptime.clone(),
            metrics,
            ready: Some(self.ready.clone()),
        };
        let mut stop = self.stop.subscribe();
        let ends_of_itself = self.circumstances.ends_after.map(tokio::time::sleep);
        let stopped = async move {
            tokio::select! {
                biased;
                // The sender lives as long as the operator, so this cannot fail.
                _ = stop.wait_for(|stop| *stop) => {}
                Some(()) = OptionFuture::from(ends_of_itself) => {}
            }
        };
        stowage_operator::run(self.config_of(instance), parts, stopped).await
    }

    /// Returns the configuration of one process. Each has another name in an election.
    fn config_of(&self, instance: &Instance) -> Config {
        let election = self.circumstances.elects.then(|| Election {
            id: format!("{NAME}{}", instance.id()),
            terms: Terms::for_calls_of(self.circumstances.config.limits.timeout),
        });
        Config { election, ..self.circumstances.config.clone() }
    }

    /// Requests a graceful shutdown, like SIGTERM.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Returns a scrape of the current process's `/metrics`.
    pub fn metrics(&self) -> String {
        self.metrics.borrow().encode()
    }

    /// Returns the number of crashes.
    pub fn crashes(&self) -> u32 {
        self.crashes.load(Ordering::Relaxed)
    }

    /// Returns true if a process ended that was neither stopped nor crashed.
    pub fn gave_up(&self) -> bool {
        self.gave_up.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes of objects, lists and watches received from the API server.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Waits until the operator's caches are filled.
    pub async fn ready(&self) {
        // The sender is in `self`, so this cannot fail.
        let _ = self.ready.subscribe().wait_for(|ready| *ready).await;
    }
}
