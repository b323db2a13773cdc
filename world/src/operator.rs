//! The operator's lives.

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

/// How long a crashed operator is down. One that can't start is down twice as long each time, as
/// under a kubelet.
const DOWNTIME: Duration = Duration::from_secs(1);
/// Longest that it is down.
const MOST_DOWNTIME: Duration = Duration::from_secs(300);

/// Name of a life in an election, before its number.
const NAME: &str = "operator-";

/// Which life, counted from 1, has this name in an election.
pub fn operator_instance(name: &str) -> Option<u32> {
    name.strip_prefix(NAME)?.parse().ok()
}

/// What an operator lives in, the same in all of its lives.
#[derive(Clone)]
pub struct Circumstances {
    /// What it is told; its election apart.
    pub config: Config,
    /// After how long each life comes to an end of itself, if it does.
    pub ends_after: Option<Duration>,
    /// Whether it takes part in an election.
    pub elects: bool,
    /// The Kubernetes API.
    pub api: ApiService,
    /// The stores that it reaches.
    pub stores: Stores,
    /// Numbers and breaks its calls.
    pub effects: Effects,
    /// Its wall clock.
    pub clock: WallClock,
    /// Its steady clock.
    pub uptime: Uptime,
}

/// The production operator in its successive lives. Clones are the same operator.
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
    /// An operator that does not live yet.
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

    /// Lives until it is stopped, and comes back after each crash.
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

    /// A life that comes to its own end has given up, unless it was told to.
    fn note_end(&self) {
        self.gave_up.fetch_or(!*self.stop.borrow(), Ordering::Relaxed);
    }

    /// One life, which stands still where the plan says so.
    async fn one_life_with_stops(&self, instance: &Instance) -> LifeEnd<Result<(), StartError>> {
        let twin = async |instance: Instance| self.turn_of_twin(&instance).await;
        explore::lives::one_life(&self.circumstances.effects, instance, self.one_life(instance), twin).await
    }

    /// The life of a second operator of the same configuration.
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
                // The sender outlives the operator, so this can't fail.
                _ = stop.wait_for(|stop| *stop) => {}
                Some(()) = OptionFuture::from(ends_of_itself) => {}
            }
        };
        stowage_operator::run(self.config_of(instance), parts, stopped).await
    }

    /// What one life is told: each has another name in an election.
    fn config_of(&self, instance: &Instance) -> Config {
        let election = self.circumstances.elects.then(|| Election {
            id: format!("{NAME}{}", instance.id()),
            terms: Terms::for_calls_of(self.circumstances.config.limits.timeout),
        });
        Config { election, ..self.circumstances.config.clone() }
    }

    /// Tells it to finish what is under way and end, as SIGTERM does.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// What a scrape of this life's `/metrics` gives.
    pub fn metrics(&self) -> String {
        self.metrics.borrow().encode()
    }

    /// How often it crashed.
    pub fn crashes(&self) -> u32 {
        self.crashes.load(Ordering::Relaxed)
    }

    /// Whether a life of it ended that nobody stopped or crashed.
    pub fn gave_up(&self) -> bool {
        self.gave_up.load(Ordering::Relaxed)
    }

    /// How many bytes of objects, lists and watches the API server has sent it.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Waits until its caches are filled.
    pub async fn ready(&self) {
        // The sender lives in `self`, so this can't fail.
        let _ = self.ready.subscribe().wait_for(|ready| *ready).await;
    }
}
