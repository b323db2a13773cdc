//! A simulation: a process, what its user does, what must come of it; and one run of it.

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

/// How long a process that died is down.
const DOWNTIME: Duration = Duration::from_secs(1);
/// Longest that an end is waited for, in virtual time.
const PATIENCE: Duration = Duration::from_secs(3600);
/// How often it is looked whether the end has come.
const GLANCE: Duration = Duration::from_millis(100);
/// A process rests when it has changed nothing for this long.
const REST: Duration = Duration::from_secs(30);
/// Most calls in a run: one that makes more goes round and round.
const MOST_CALLS: u64 = 20_000;

/// What a life of the process is given: its production code needs no more, and no less.
pub struct Process {
    /// A client for the Kubernetes API, which faults may meet.
    pub client: kube::Client,
    /// The store, which faults may meet: an HTTP service for whichever S3 client the process has.
    /// The account is [`KEY`](crate::KEY) with [`SECRET`](crate::SECRET).
    pub store: StoreService,
    /// The process's wall clock.
    pub clock: WallClock,
    /// Turns true when the process is to end, which it is at the end of a run only.
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

/// A process, its user, and what must come of them under every fault. Cheap to clone.
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

/// What came of one run.
#[derive(Debug)]
pub struct Run {
    /// Calls before faults could begin.
    pub before: u64,
    /// Calls until the end had come.
    pub until: u64,
    /// All calls.
    pub lines: Vec<Line>,
    /// Promises that were broken.
    pub broken: Vec<Broken>,
    /// Whether each fault of the plan met a call.
    pub met: bool,
}

/// A promise that a run broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Its name: an oracle's, or `end`, `rest`, `panic`.
    pub promise: String,
    /// What is wrong.
    pub message: String,
}

impl Broken {
    fn new(promise: &str, message: impl Into<String>) -> Self {
        Self { promise: promise.to_owned(), message: message.into() }
    }
}

impl Simulation {
    /// A simulation in which all that is drawn follows from the seed: nothing runs, nobody acts,
    /// every end will do.
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

    /// Definitions that the cluster serves.
    #[must_use]
    pub fn crds(self, crds: impl IntoIterator<Item = CustomResourceDefinition>) -> Self {
        Self { crds: Arc::new(crds.into_iter().collect()), ..self }
    }

    /// The process: its future is a life of it, dropped where it dies, and begun anew a second
    /// later.
    #[must_use]
    pub fn process<F, Fut>(self, main: F) -> Self
    where
        F: Fn(Process) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        Self { process: Arc::new(move |process| Box::pin(main(process))), ..self }
    }

    /// What there is before the process starts.
    #[must_use]
    pub fn before<F, Fut>(self, before: F) -> Self
    where
        F: Fn(SimulatedWorld) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        Self { before: Arc::new(move |world| Box::pin(before(world))), ..self }
    }

    /// What the user does once the process is at rest. From then on faults happen.
    #[must_use]
    pub fn user<F, Fut>(self, user: F) -> Self
    where
        F: Fn(SimulatedWorld) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        Self { user: Arc::new(move |world| Box::pin(user(world))), ..self }
    }

    /// What has to have come about in the end: a run in which it hasn't within an hour of simulated
    /// time breaks the promise `end`.
    #[must_use]
    pub fn until(self, wanted: impl Fn(&SimulatedWorld) -> bool + Send + Sync + 'static) -> Self {
        Self { wanted: Arc::new(wanted), ..self }
    }

    /// One more promise to be judged.
    #[must_use]
    pub fn oracle<O: Oracle + 'static>(mut self, make: impl Fn() -> O + Send + Sync + 'static) -> Self {
        self.oracles.push(Arc::new(move || Box::new(make())));
        self
    }

    /// How many plans of three faults are drawn besides all single ones; 100 unless told otherwise.
    #[must_use]
    pub fn random(self, plans: usize) -> Self {
        Self { random: plans, ..self }
    }

    /// Faults, by their names, that the controller makes no promise under. A report says that they
    /// were left out.
    #[must_use]
    pub fn without(mut self, faults: impl IntoIterator<Item = &'static str>) -> Self {
        self.without.extend(faults);
        self
    }

    /// What a process does once before its first run, see [`WarmUp`]: for statics that draw random
    /// numbers.
    #[must_use]
    pub fn after(self, warm_up: &'static WarmUp) -> Self {
        Self { warm_up: Some(warm_up), ..self }
    }

    /// One run with these faults, in a world of its own, on a thread of its own.
    ///
    /// # Panics
    /// If a definition that was given is not valid.
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
        // Its user comes when it has nothing to do.
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

/// Waits until nothing is changed any more; `false` if something still is after [`PATIENCE`].
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

/// Lives, dies and lives again, until told to stop.
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
        // However it ends, by a crash or by itself, it is started again, as a kubelet does.
        let _ended = one_life(&effects, &instance, life(&instance), async |twin: Instance| life(&twin).await).await;
        tokio::time::sleep(DOWNTIME).await;
    }
}
