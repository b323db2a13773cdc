//! Plays the chosen scenarios on their clusters, and prints results as they end.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, anyhow};
use futures::future::try_join_all;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use stowage_testbed::console::{Output, print, tell, unless_interrupted};
use stowage_testbed::control_plane::{ControlPlane, Programs};
use stowage_testbed::definitions;
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::own_cluster::OwnCluster;
use stowage_testbed::kind;
use stowage_testbed::log::Log;
use stowage_testbed::operator::Launcher;
use stowage_testbed::simulated::REGION;
use stowage_testbed::store::{Key, Store};
use stowage_testbed::users::User;
use stowage_world::effects::Plan as Faults;

use crate::report::{LeftOut, RunReport, ScenarioReport};
use crate::scenarios::Scenario;

/// Settings of a run.
pub(crate) struct Plan {
    pub(crate) scenarios: Vec<Scenario>,
    /// Scenarios that are not played, with the reason.
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) place: Place,
    /// Longest time to wait for each expected event.
    pub(crate) patience: Duration,
    pub(crate) output: Output,
    /// Directory for the artefacts of failed scenarios.
    pub(crate) artifacts: Option<PathBuf>,
    /// Faults for the operator's calls, on a cluster of the harness' own.
    pub(crate) faults: Faults,
    /// True if the operator is to crash at every point of each effect; false for one of them.
    pub(crate) thorough: bool,
}

/// Clusters and stores for scenarios.
pub(crate) enum Place {
    /// An existing store, with scenarios played one after the other. Operators are child processes.
    Existing { cluster: Reached, store: TheirStore, command: Vec<String> },
    /// `jobs` control planes that are started for the run, each playing scenarios one after the
    /// other, with operators and gateways by these commands. Operators can't share a control plane,
    /// because each serves all claims.
    ControlPlane { programs: Programs, command: Vec<String>, gateway: Vec<String>, jobs: usize },
    /// `jobs` kind clusters that are created for the run.
    Kind { settings: kind::Settings, jobs: usize },
}

/// The cluster beside an existing store.
pub(crate) enum Reached {
    /// An existing cluster.
    There { kubeconfig: PathBuf, context: Option<String> },
    /// A control plane that is started for the run from these programs.
    Started(Programs),
}

/// An existing store.
pub(crate) struct TheirStore {
    pub(crate) endpoint: String,
    pub(crate) region: String,
    pub(crate) key: Key,
}

impl Place {
    fn name(&self) -> &'static str {
        match self {
            Self::Existing { cluster: Reached::There { .. }, .. } => "existing",
            Self::Existing { cluster: Reached::Started(_), .. } | Self::ControlPlane { .. } => "control-plane",
            Self::Kind { .. } => "kind",
        }
    }
}

/// Plays the scenarios until all have ended or a signal interrupts them, and removes the objects
/// that they created.
///
/// # Errors
/// Fails if a scenario fails or can't be started, or if the run is interrupted.
pub(crate) async fn run(plan: Plan) -> Result<()> {
    let ledger = Ledger::new(&plan);
    match &plan.place {
        Place::Existing { cluster, store, command } => beside_store(&plan, cluster, store, command, &ledger).await?,
        Place::ControlPlane { jobs, .. } | Place::Kind { jobs, .. } => {
            let jobs = (1..=(*jobs).min(plan.scenarios.len())).map(|job| on_own_cluster(&plan, &ledger, job));
            unless_interrupted(try_join_all(jobs)).await?;
        }
    }
    for LeftOut { name, why } in &plan.left_out {
        tell(&format!("left out {name}: {why}"));
    }
    let report = ledger.report();
    if plan.output == Output::Json {
        print(&serde_json::to_string_pretty(&report)?)?;
    }
    match report.failed() {
        0 => Ok(()),
        failed => Err(anyhow!("{failed} of {} scenarios failed", report.scenarios.len())),
    }
}

/// Plays the scenarios on a cluster for the existing store. A control plane that is started for it
/// ends when this returns.
async fn beside_store(
    plan: &Plan,
    cluster: &Reached,
    store: &TheirStore,
    command: &[String],
    ledger: &Ledger<'_>,
) -> Result<()> {
    match cluster {
        Reached::There { kubeconfig, context } => {
            let environment = existing_environment(plan, kubeconfig, context.clone(), store, command).await?;
            on_existing(plan, environment, ledger).await
        }
        Reached::Started(programs) => {
            let plane = unless_interrupted(ControlPlane::start(programs, plan.patience)).await?;
            tell(&format!("control-plane was ready after {:.1} s", plane.ready_after.as_secs_f64()));
            let admin = Some(User::Admin.name().to_owned());
            let environment = existing_environment(plan, &plane.kubeconfig(), admin, store, command).await?;
            on_existing(plan, environment, ledger).await
        }
    }
}

async fn on_existing(plan: &Plan, mut environment: Environment, ledger: &Ledger<'_>) -> Result<()> {
    environment.store.probe().await?;
    let new_definitions = definitions::install(&environment).await?;
    // In any case, the environment is restored before the result is returned.
    let played = unless_interrupted(play(plan, &mut environment, ledger)).await;
    let cleaned = environment.clean_up().await;
    let uninstalled = definitions::uninstall(&environment, &new_definitions).await;
    played.and(cleaned).and(uninstalled)
}

/// Runs one worker. The environment owns the worker's cluster, so the cluster is removed even if
/// this future is dropped.
async fn on_own_cluster(plan: &Plan, ledger: &Ledger<'_>, job: usize) -> Result<()> {
    let name = format!("{}-{job}", prefix());
    let (own_cluster, launcher) = match &plan.place {
        Place::ControlPlane { programs, command, gateway, .. } => {
            OwnCluster::of_processes(programs, command, gateway, plan.patience).await?
        }
        Place::Kind { settings, .. } => OwnCluster::of_kind(settings, &name, plan.patience).await?,
        Place::Existing { .. } => return Err(anyhow!("a store that is there is no cluster of the harness' own")),
    };
    tell(&format!("{} {job} was ready after {:.1} s", plan.place.name(), own_cluster.ready_after().as_secs_f64()));
    let kept = own_cluster.kept();
    let mut environment = own_environment(plan, own_cluster, launcher, name).await?;
    definitions::install(&environment).await?;
    let played = play(plan, &mut environment, ledger).await;
    if let Some(kept) = kept {
        tell(&kept);
    }
    played
}

async fn play(plan: &Plan, environment: &mut Environment, ledger: &Ledger<'_>) -> Result<()> {
    while let Some((index, scenario)) = ledger.next() {
        let outcome = scenario.run(environment, plan.artifacts.as_deref()).await;
        ledger.note(index, outcome)?;
    }
    Ok(())
}

/// Queue of scenarios and list of results, shared by all workers.
struct Ledger<'a> {
    plan: &'a Plan,
    next: Cell<usize>,
    outcomes: RefCell<Vec<(usize, ScenarioReport)>>,
}

impl<'a> Ledger<'a> {
    fn new(plan: &'a Plan) -> Self {
        Self { plan, next: Cell::new(0), outcomes: RefCell::default() }
    }

    /// Takes the next scenario of the queue.
    fn next(&self) -> Option<(usize, Scenario)> {
        let index = self.next.get();
        let scenario = *self.plan.scenarios.get(index)?;
        self.next.set(index + 1);
        Some((index, scenario))
    }

    fn note(&self, index: usize, outcome: ScenarioReport) -> Result<()> {
        match self.plan.output {
            Output::Text => print(&outcome.to_string())?,
            Output::Json => tell(&outcome.to_string()),
        }
        self.outcomes.borrow_mut().push((index, outcome));
        Ok(())
    }

    /// Returns the results in the order in which the scenarios were chosen.
    fn report(&self) -> RunReport {
        let mut outcomes = self.outcomes.borrow().clone();
        outcomes.sort_by_key(|(index, _)| *index);
        let scenarios = outcomes.into_iter().map(|(_, outcome)| outcome).collect();
        RunReport { stage: self.plan.place.name().to_owned(), scenarios, left_out: self.plan.left_out.clone() }
    }
}

async fn existing_environment(
    plan: &Plan,
    kubeconfig: &Path,
    context: Option<String>,
    store: &TheirStore,
    command: &[String],
) -> Result<Environment> {
    let TheirStore { endpoint, region, key } = store;
    let file = Kubeconfig::read_from(kubeconfig).with_context(|| kubeconfig.display().to_string())?;
    let options = KubeConfigOptions { context: context.clone(), ..KubeConfigOptions::default() };
    let config = kube::Config::from_custom_kubeconfig(file, &options).await?;
    let client = Client::try_from(config)?;
    Ok(Environment {
        tenant: client.clone(),
        client,
        store: Store::new(endpoint, region, key)?,
        endpoint: endpoint.clone(),
        operator_key: key.clone(),
        launcher: Launcher::Process { command: command.to_vec(), kubeconfig: kubeconfig.to_owned(), context },
        patience: plan.patience,
        prefix: prefix(),
        log: Log::default(),
        own_cluster: None,
        faults: Faults::default(),
        thorough: false,
    })
}

async fn own_environment(
    plan: &Plan,
    own_cluster: OwnCluster,
    launcher: Launcher,
    prefix: String,
) -> Result<Environment> {
    let (store, key) = own_cluster.store();
    Ok(Environment {
        client: own_cluster.client(User::Admin).await?,
        tenant: own_cluster.client(User::Tenant).await?,
        endpoint: own_cluster.fault_proxy.endpoint().to_owned(),
        store: Store::new(&store, REGION, key)?,
        operator_key: own_cluster.operator_key().clone(),
        launcher,
        patience: plan.patience,
        prefix,
        log: Log::default(),
        own_cluster: Some(own_cluster),
        faults: plan.faults.clone(),
        thorough: plan.thorough,
    })
}

/// Returns a prefix for this run: unique, and short, because it is part of bucket names.
fn prefix() -> String {
    let moment = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    format!("e2e-{:x}", moment & 0xff_ffff_ffff)
}
