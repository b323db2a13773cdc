//! A simulation (a process, its user, and the promises to keep), and one run of it.

mod exploration;

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use faults::{Effects, Instance, Line, Plan};
use futures::future::BoxFuture;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use seeded::{Seeded, WallClock, WarmUp};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::lives::one_life;
use crate::oracle::Oracle;
use crate::others::{self, Others, StoreService};
use crate::world::SimulatedWorld;

pub use self::exploration::{ExplorationReport, Failure};

/// Time that a process is down after it died.
const DOWNTIME: Duration = Duration::from_secs(1);
/// Maximum virtual time to wait for the wanted state, or for an idle process.
const PATIENCE: Duration = Duration::from_secs(3600);
/// Interval for checking if the wanted state is reached.
const GLANCE: Duration = Duration::from_millis(100);
/// A process is idle when it has made no Kubernetes write and no S3 call for this long.
const REST: Duration = Duration::from_secs(30);
/// Maximum number of calls in a run; a process that makes more is assumed to loop.
const MOST_CALLS: u64 = 20_000;

/// Inputs of one life of the process: everything that its production code needs.
pub struct Process {
    /// A client for the Kubernetes API, subject to faults.
    pub client: kube::Client,
    /// An HTTP service of the store for any S3 client, subject to faults. The account is
    /// [`KEY`](crate::KEY) with [`SECRET`](crate::SECRET).
    pub store: StoreService,
    /// The process's wall clock.
    pub clock: WallClock,
    /// Becomes true when the process is to end, which happens at the end of a run only.
    pub shutdown: watch::Receiver<bool>,
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").finish_non_exhaustive()
    }
}

type Act = Arc<dyn Fn(SimulatedWorld) -> BoxFuture<'static, ()> + Send + Sync>;
type Main = Arc<dyn Fn(Process) -> BoxFuture<'static, ()> + Send + Sync>;
type Wanted = Arc<dyn Fn(&SimulatedWorld) -> bool + Send + Sync>;
type MakeOracle = Arc<dyn Fn() -> Box<dyn Oracle> + Send + Sync>;

/// A process, its user, and the promises that must hold under every fault. Cheap to clone.
#[derive(Clone)]
pub struct Simulation {
    seed: u64,
    crds: Arc<Vec<CustomResourceDefinition>>,
    process: Main,
    before: Act,
    user: Act,
    wanted: Wanted,
    oracles: Vec<MakeOracle>,
    warm_up: Option<&'static WarmUp>,
    random: usize,
    without: Vec<&'static str>,
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation").field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// The result of one run.
#[derive(Debug)]
pub struct Run {
    /// Number of calls before the user acted, which is when faults may begin.
    pub before: u64,
    /// Number of calls when the wanted state was reached, or was given up.
    pub until: u64,
    /// All calls.
    pub lines: Vec<Line>,
    /// Promises that were broken.
    pub broken: Vec<Broken>,
    /// True if each fault of the plan met a call.
    pub met: bool,
}

/// A violation of a promise by a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The name of an oracle, or `end` (the wanted state was not reached), `rest` (the process did
    /// not become idle) or `panic`.
    pub promise: String,
    /// A description of the violation.
    pub message: String,
}

impl Broken {
    fn new(promise: &str, message: impl Into<String>) -> Self {
        Self { promise: promise.to_owned(), message: message.into() }
    }
}

impl Simulation {
    /// Creates a simulation whose random numbers all follow from the seed.
    ///
    /// By default the process does nothing, the user does nothing, and every final state is
    /// accepted.
    pub fn seeded(seed: u64) -> Self {
        Self {
            seed,
            crds: Arc::default(),
            process: Arc::new(|_| Box::pin(std::future::pending())),
            before: Arc::new(|_| Box::pin(async {})),
            user: Arc::new(|_| Box::pin(async {})),
            wanted: Arc::new(|_| true),
            oracles: Vec::new(),
            warm_up: None,
            random: 100,
            without: Vec::new(),
        }
    }

    /// Sets the definitions that the cluster serves. A second call replaces them.
    #[must_use]
    pub fn crds(self, crds: impl IntoIterator<Item = CustomResourceDefinition>) -> Self {
        Self { crds: Arc::new(crds.into_iter().collect()), ..self }
    }

    /// Sets the process. `main` is called for each life; its future is dropped on a crash, and
    /// `main` is called again a second later.
    #[must_use]
    pub fn process<F, Fut>(self, main: F) -> Self
    where
        F: Fn(Process) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        Self { process: Arc::new(move |process| Box::pin(main(process))), ..self }
    }

    /// Sets the preparation of the world, before the process starts.
    #[must_use]
    pub fn before<F, Fut>(self, before: F) -> Self
    where
        F: Fn(SimulatedWorld) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        Self { before: Arc::new(move |world| Box::pin(before(world))), ..self }
    }

    /// Sets the actions of the user, who waits until the process is idle. An exploration injects
    /// faults from then on.
    #[must_use]
    pub fn user<F, Fut>(self, user: F) -> Self
    where
        F: Fn(SimulatedWorld) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        Self { user: Arc::new(move |world| Box::pin(user(world))), ..self }
    }

    /// Sets the state that must be reached, and kept.
    ///
    /// A run that doesn't reach it within an hour of simulated time breaks the promise `end`.
    #[must_use]
    pub fn until(self, wanted: impl Fn(&SimulatedWorld) -> bool + Send + Sync + 'static) -> Self {
        Self { wanted: Arc::new(wanted), ..self }
    }

    /// Adds an oracle, which judges each run. `make` is called for each run.
    #[must_use]
    pub fn oracle<O: Oracle + 'static>(mut self, make: impl Fn() -> O + Send + Sync + 'static) -> Self {
        self.oracles.push(Arc::new(move || Box::new(make())));
        self
    }

    /// Sets the number of random plans of up to three faults, which are played besides all single
    /// faults; 100 by default.
    #[must_use]
    pub fn random(self, plans: usize) -> Self {
        Self { random: plans, ..self }
    }

    /// Leaves out faults, by name, under which the controller makes no promise. A report lists
    /// them.
    #[must_use]
    pub fn without(mut self, faults: impl IntoIterator<Item = &'static str>) -> Self {
        self.without.extend(faults);
        self
    }

    /// Sets the [`WarmUp`] that a process runs once before its first run, for statics that draw
    /// random numbers.
    #[must_use]
    pub fn after(self, warm_up: &'static WarmUp) -> Self {
        Self { warm_up: Some(warm_up), ..self }
    }

    /// Plays one run with this plan of faults, in a new world and on a new thread.
    ///
    /// # Panics
    /// If a definition passed to [`Simulation::crds`] is not valid.
    pub fn run(&self, plan: &Plan) -> Run {
        for definition in self.crds.iter() {
            kube_sim::ReadDefinition::new(definition).expect("the definitions of a simulation are valid");
        }
        let seeded = Seeded::new(self.seed);
        let seeded = self.warm_up.map_or(seeded, |warm_up| seeded.after(warm_up));
        seeded.run_and(|| self.play(plan.clone()), |ended| ended.unwrap_or_else(|panic| Run::of_panic(panic.as_ref())))
    }

    async fn play(&self, plan: Plan) -> Run {
        let world = SimulatedWorld::new(self.seed);
        for definition in self.crds.iter() {
            world.cluster.install_crd(definition).expect("it was read before");
        }
        let others = Arc::new(Others::new(world.clone(), self.oracles.iter().map(|make| make()).collect()));
        let effects = Effects::within(plan, others.clone());
        effects.bound(MOST_CALLS);
        (self.before)(world.clone()).await;
        let stop = watch::Sender::new(false);
        let lives = tokio::spawn(live(self.process.clone(), effects.clone(), others.clone(), stop.subscribe()));
        // The user acts once the process is idle.
        rests(&effects, &others).await;
        let before = effects.count();
        (self.user)(world.clone()).await;
        let mut broken = Vec::new();
        if !self.comes_to_its_end(&others).await {
            broken.push(Broken::new("end", format!("what is wanted has not come about in {PATIENCE:?}")));
        }
        let met = effects.unfired().is_empty();
        effects.calm();
        let until = effects.count();
        if !rests(&effects, &others).await || effects.exhausted() {
            broken.push(Broken::new("rest", "it goes on changing things though all is as wanted"));
        } else if !(self.wanted)(&world) && broken.is_empty() {
            broken.push(Broken::new("end", "what was wanted came about, and did not stay so"));
        }
        stop.send_replace(true);
        lives.abort();
        let mut oracles = std::mem::take(&mut *others.oracles.lock());
        for oracle in &mut oracles {
            let name = oracle.name();
            broken.extend(oracle.judge(&world).into_iter().map(|message| Broken::new(name, message)));
        }
        broken.extend(seeded::panics().into_iter().map(|panic| Broken::new("panic", panic)));
        Run { before, until, lines: effects.take_trace().lines().to_vec(), broken, met }
    }

    async fn comes_to_its_end(&self, others: &Others) -> bool {
        let deadline = Instant::now() + PATIENCE;
        while !(self.wanted)(&others.world) {
            if Instant::now() > deadline {
                return false;
            }
            tokio::time::sleep(GLANCE).await;
            others.run_controllers();
        }
        true
    }
}

impl Run {
    fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        let broken = vec![Broken::new("panic", text.unwrap_or("without words"))];
        Self { before: 0, until: 0, lines: Vec::new(), broken, met: true }
    }
}

/// Waits until the process is idle. Returns false if it is still active after [`PATIENCE`].
async fn rests(effects: &Effects, others: &Others) -> bool {
    let deadline = Instant::now() + PATIENCE;
    let mut before = None;
    while Instant::now() < deadline {
        tokio::time::sleep(REST).await;
        others.run_controllers();
        let counters = effects.trace().counters();
        let writes = Some((others.world.cluster.resource_version(), counters.kubernetes_writes, counters.s3_calls));
        if std::mem::replace(&mut before, writes) == writes {
            return true;
        }
    }
    false
}

/// Runs the process and restarts it after each death, until `stop` is true.
async fn live(main: Main, effects: Effects, others: Arc<Others>, stop: watch::Receiver<bool>) {
    let life = |instance: &Instance| {
        (main)(Process {
            client: others::client(&effects, instance, &others.world),
            store: others::store(&effects, instance, &others.world),
            clock: others.clock(),
            shutdown: stop.clone(),
        })
    };
    while !*stop.borrow() {
        let instance = effects.instance();
        // A kubelet restarts a process however it ended, by a crash or by itself.
        let _ended = one_life(&effects, &instance, life(&instance), async |twin: Instance| life(&twin).await).await;
        tokio::time::sleep(DOWNTIME).await;
    }
}
