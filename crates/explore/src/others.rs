//! The surroundings of a process besides its services: other actors, and faults before its calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use faults::{Call, ClockFault, Effects, Fault, Gate, Instance, KubeFault, Plan, Surroundings};
use http::request::Parts;
use jiff::SignedDuration;
use parking_lot::Mutex;
use seeded::WallClock;
use tokio::time::Instant;
use tower::{BoxError, Layer, ServiceExt};

use crate::body::ApiBody;
use crate::oracle::{Oracle, Seen};
use crate::services;
use crate::world::{OWNER, SimulatedWorld};

/// Time that the cluster's own controllers are stopped by `gc-late`.
const CONTROLLERS_REST: Duration = Duration::from_secs(60);
/// Time that a client waits for an answer: the default of `kube::Config`.
const READ_TIMEOUT: Duration = Duration::from_secs(295);
/// The account of buckets that belong to no one in particular.
const STRANGER: &str = "stranger";

/// An HTTP service that speaks S3, behind the faults of a run; `s3_sim::InProcess` takes it.
pub type StoreService = tower::util::BoxCloneSyncService<http::Request<s3s::Body>, http::Response<s3s::Body>, BoxError>;

/// The world around one process: cluster and store, the oracles, and the state of lasting faults.
pub(crate) struct Others {
    pub(crate) world: SimulatedWorld,
    pub(crate) oracles: Mutex<Vec<Box<dyn Oracle>>>,
    /// Seconds that the process's clock is ahead.
    ahead: AtomicI64,
    /// End of the time that the cluster's own controllers are stopped.
    controllers_rest: Mutex<Option<Instant>>,
}

impl std::fmt::Debug for Others {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Others").field("world", &self.world).finish_non_exhaustive()
    }
}

impl Others {
    pub(crate) fn new(world: SimulatedWorld, oracles: Vec<Box<dyn Oracle>>) -> Self {
        Self { world, oracles: Mutex::new(oracles), ahead: AtomicI64::new(0), controllers_rest: Mutex::new(None) }
    }

    /// Returns the process's clock.
    pub(crate) fn clock(self: &Arc<Self>) -> WallClock {
        let others = Arc::clone(self);
        Arc::new(move || {
            let now = others.world.clock.now();
            now.checked_add(SignedDuration::from_secs(others.ahead.load(Ordering::Relaxed))).unwrap_or(now)
        })
    }

    /// Runs the cluster's own controllers, unless a fault has stopped them.
    pub(crate) fn run_controllers(&self) {
        let rests = self.controllers_rest.lock();
        if rests.is_none_or(|until| Instant::now() >= until) {
            self.world.run_controllers();
        }
    }
}

impl Surroundings for Others {
    fn expect(&self, plan: &Plan) {
        if plan.entries.iter().any(|entry| entry.fault == Fault::S3(faults::S3Fault::StaleRead)) {
            self.world.store.remember_past();
        }
    }

    fn befall(&self, fault: Fault, call: &Call, request: &mut Parts) {
        services::mark(fault, request);
        match (fault, call) {
            (Fault::Clock(ClockFault::Step { seconds }), _) => {
                self.ahead.fetch_add(seconds.into(), Ordering::Relaxed);
            }
            (Fault::Kube(KubeFault::GcLate), _) => {
                let mut rests = self.controllers_rest.lock();
                *rests = Some(Instant::now() + CONTROLLERS_REST);
            }
            (Fault::S3(fault), Call::S3(call)) => {
                if let Some(bucket) = &call.bucket {
                    services::change_bucket(fault, &self.world.store, bucket, OWNER, STRANGER);
                }
            }
            _ => {}
        }
    }

    fn arrives(&self, _: u64, _: &Call, _: &mut Parts) {}

    fn carried_out(&self, number: u64, call: &Call, _: &str, status: u16) {
        let seen = Seen { number, call, status, world: &self.world };
        let mut oracles = self.oracles.lock();
        oracles.iter_mut().for_each(|oracle| oracle.see(&seen));
    }
}

/// Returns the Kubernetes client of one life.
pub(crate) fn client(effects: &Effects, instance: &Instance, world: &SimulatedWorld) -> kube::Client {
    let gate = Gate::before(instance);
    let held = move |body| ApiBody::counted(body, Arc::default(), gate.clone());
    let api = world.cluster.service().map_response(move |response| response.map(held));
    let api = effects.kube_layer(instance).layer(api).map_future(|answer| async {
        let late = |elapsed| Err(BoxError::from(elapsed));
        tokio::time::timeout(READ_TIMEOUT, answer).await.unwrap_or_else(late)
    });
    kube::Client::new(api, "default")
}

/// Returns the store as one life reaches it.
pub(crate) fn store(effects: &Effects, instance: &Instance, world: &SimulatedWorld) -> StoreService {
    StoreService::new(effects.s3_layer(instance).layer(world.store.http()))
}
