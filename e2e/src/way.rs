//! The operator's way to API server and store: a proxy in this process numbers its calls and lets the faults of a plan
//! befall them. The harness and the tenants go past it.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use stowage_sim::effects::call::CallKind;
use stowage_sim::effects::{Call, EffectPattern, KubeVerb, Line, Plan};
use stowage_sim::explorer::{Schedule, run};
use stowage_sim::serve::Server;
use stowage_sim::serve::proxy::{Proxy, Upstream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::control_plane::{ControlPlane, User};

/// Any free port, for this machine alone.
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Between two looks at the calls, which are announced to nobody.
const LOOK: Duration = Duration::from_millis(5);
/// With this seed a schedule is replayed: here nothing is drawn from it.
const SEED: u64 = 1;
/// The number of the first operator's life.
const FIRST_LIFE: u32 = 1;

/// The servers that the operator takes for API server and store.
pub(crate) struct Way {
    proxy: Proxy,
    /// Serve as long as they are kept.
    _kube: Server,
    s3: Server,
    kubeconfig: PathBuf,
    /// Which operator is on its way, counted since the beginning.
    life: Cell<u32>,
    /// How many operators have died as planned and were started again.
    crashes: watch::Sender<usize>,
    /// What is planned now.
    play: RefCell<Play>,
}

/// A plan, and the simulator's scenario in which the same is done.
#[derive(Default)]
struct Play {
    plan: Plan,
    like: Option<&'static str>,
    /// Whether patterns count from where the scenario lets faults begin; else from the operator's first call, as there.
    from_here: bool,
}

/// Whether all that is planned can happen between real servers.
///
/// # Errors
/// Names the fault that can't.
pub(crate) fn check(plan: &Plan) -> Result<(), String> {
    Proxy::new(plan.clone()).map(|_| ()).map_err(|error| error.to_string())
}

fn is_watch(line: &Line) -> bool {
    line.call.kind() == CallKind::Kube(KubeVerb::Watch) && line.world == Some(200)
}

impl Way {
    /// Serves both, without faults.
    pub(crate) async fn start(plane: &ControlPlane, store: &str) -> Result<Self, String> {
        let proxy = Proxy::new(Plan::default()).map_err(|error| error.to_string())?;
        let failed = |error: std::io::Error| format!("can't serve the operator: {error}");
        let upstream = Upstream::kube(&plane.config(User::Operator).await?).map_err(|error| error.to_string())?;
        let kube = proxy.serve_kube(LOOPBACK, upstream).await.map_err(failed)?;
        let store = store.parse().map_err(|error| format!("{store}: {error}"))?;
        let upstream = Upstream::s3(&store).map_err(|error| error.to_string())?;
        let s3 = proxy.serve_s3(LOOPBACK, upstream).await.map_err(failed)?;
        let kubeconfig = plane.operator_kubeconfig(&kube.url())?;
        let (life, crashes) = (Cell::new(0), watch::Sender::new(0));
        Ok(Self { proxy, _kube: kube, s3, kubeconfig, life, crashes, play: RefCell::default() })
    }

    /// The operator's kubeconfig, with itself for the only user.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The store's URL for the operator.
    pub(crate) fn endpoint(&self) -> String {
        self.s3.url()
    }

    /// A scenario begins, where no operator runs: calls count from one. `like` is the simulator's that does the same.
    pub(crate) fn begin(&self, plan: Plan, like: Option<&'static str>) -> Result<(), String> {
        self.proxy.begin(plan.clone()).map_err(|error| error.to_string())?;
        self.life.set(0);
        self.play.replace(Play { plan, like, from_here: false });
        Ok(())
    }

    /// From now on this is the plan for the operator that runs: patterns count from one, numbers go on.
    pub(crate) fn plan(&self, plan: Plan, like: &'static str) -> Result<(), String> {
        self.proxy.set_plan(plan.clone()).map_err(|error| error.to_string())?;
        self.play.replace(Play { plan, like: Some(like), from_here: true });
        Ok(())
    }

    /// An operator is about to start; what ran before is dead.
    pub(crate) fn new_operator(&self) {
        // A beginning is the beginning of a life.
        let life = if self.life.get() == 0 { FIRST_LIFE } else { self.proxy.next_life() };
        self.life.set(life);
    }

    /// Comes to an end when the operator is to die as planned. From then on nothing that it asks for is carried out.
    pub(crate) async fn death(&self) {
        // Lives that end with their process, or with a plan, are not meant.
        while self.proxy.crash().await.effect.is_none() {}
    }

    /// The operator has died as planned, and was started again.
    pub(crate) fn crashed(&self) {
        self.crashes.send_modify(|count| *count += 1);
    }

    /// How many have up to now.
    pub(crate) fn crashes(&self) -> usize {
        *self.crashes.borrow()
    }

    /// A wait for the next crash, from here on.
    pub(crate) fn next_crash(&self) -> impl Future<Output = ()> + use<> {
        let mut crashes = self.crashes.subscribe();
        async move {
            if crashes.changed().await.is_err() {
                // Nobody is left to tell of a crash.
                std::future::pending::<()>().await;
            }
        }
    }

    /// The calls from this number on, as far as they have begun.
    pub(crate) fn calls(&self, first: usize) -> Vec<Line> {
        self.proxy.effects().trace().lines().iter().skip(first).cloned().collect()
    }

    /// Whether the operator has begun as many watches as the first one had, and asked the store for something.
    pub(crate) fn has_begun(&self) -> bool {
        let calls = self.calls(0);
        let watches = |life| calls.iter().filter(|line| line.instance == life && is_watch(line)).count();
        let life = self.life.get();
        let asks = |line: &Line| line.instance == life && matches!(line.call, Call::S3(_)) && line.world.is_some();
        watches(life) >= watches(FIRST_LIFE) && calls.iter().any(asks)
    }

    /// Number of the first call of the operator that runs now.
    pub(crate) fn begun(&self) -> usize {
        let life = self.life.get();
        self.calls(0).iter().take_while(|line| line.instance < life).count()
    }

    /// Waits until the calls from this number on are such.
    pub(crate) async fn until(
        &self,
        first: usize,
        limit: Duration,
        what: &str,
        such: impl Fn(&[Line]) -> bool,
    ) -> Result<Vec<Line>, String> {
        let seen = async {
            loop {
                let calls = self.calls(first);
                if such(&calls) {
                    return calls;
                }
                sleep(LOOK).await;
            }
        };
        timeout(limit, seen).await.map_err(|_| format!("the operator did not {what} within {} s", limit.as_secs()))
    }

    /// Fails when a part of the plan has met no call.
    pub(crate) fn all_met(&self) -> Result<(), String> {
        let unmet = self.proxy.effects().unfired();
        if unmet.is_empty() { Ok(()) } else { Err(format!("no call met {unmet}")) }
    }

    /// Whether a part of the plan has met a call.
    pub(crate) fn has_met_one(&self) -> bool {
        self.proxy.effects().unfired().entries.len() < self.play.borrow().plan.entries.len()
    }

    /// All calls since the beginning, one line each.
    pub(crate) fn effects(&self) -> String {
        self.proxy.effects().trace().to_string()
    }

    /// The command that plays the same in the simulator, or that there is none.
    pub(crate) fn replay(&self) -> String {
        self.play.borrow().replay()
    }
}

impl Play {
    fn replay(&self) -> String {
        let scenario = self.like.and_then(|name| format!("{name} {SEED}").parse::<Schedule>().ok());
        let Some(scenario) = scenario else {
            return format!("the simulator has no scenario with these steps; the plan was '{}'", self.plan);
        };
        let mut plan = self.plan.clone();
        if self.from_here {
            count_from_first_call(&mut plan, &scenario);
        }
        format!("stowage-sim replay '{}'", Schedule { plan, ..scenario })
    }
}

/// Patterns of the simulator count also the calls before faults may begin.
fn count_from_first_call(plan: &mut Plan, scenario: &Schedule) {
    let undisturbed = run(scenario);
    let lines = undisturbed.history.trace.lines();
    let before: Vec<&Line> = lines.iter().filter(|line| line.number <= undisturbed.before).collect();
    for entry in &mut plan.entries {
        if let EffectPattern::Call { call, occurrence: Some(occurrence) } = &mut entry.effect {
            let matched = before.iter().filter(|line| call.matches(&line.call)).count();
            *occurrence = occurrence.saturating_add(matched as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_replays_a_plan_is_a_line_that_the_simulator_reads() {
        let plan: Plan = "s3:CreateBucket@1 lost-answer; #17 crash(before)".parse().unwrap();
        let command = Play { plan: plan.clone(), like: Some("create"), from_here: true }.replay();
        let line = command.strip_prefix("stowage-sim replay '").and_then(|line| line.strip_suffix('\'')).unwrap();
        let schedule: Schedule = line.parse().unwrap();
        assert_eq!((schedule.scenario.name, schedule.plan), ("create", plan));
    }

    /// A rotation patches record, consumer Secret and old key; in the simulator the record was patched before.
    #[test]
    fn what_counts_from_here_is_counted_from_the_first_call_there() {
        let plan: Plan = "kube:patch secrets@3 crash(before); s3:CreateBucket lost-answer".parse().unwrap();
        let told = Play { plan, like: Some("rotate"), from_here: true }.replay();
        let expected = "stowage-sim replay 'rotate 1 kube:patch secrets@4 crash(before); s3:CreateBucket lost-answer'";
        assert_eq!(told, expected);
    }

    #[test]
    fn where_no_scenario_is_alike_that_is_said() {
        let plan: Plan = "#1 hang".parse().unwrap();
        let told = Play { plan, ..Play::default() }.replay();
        assert_eq!(told, "the simulator has no scenario with these steps; the plan was '#1 hang'");
    }

    #[test]
    fn what_needs_somebodys_hands_is_refused_by_name() {
        for fault in ["vanish", "pause(20)", "twin", "step(-45)", "skew(gateway,+45)", "lag(20)"] {
            let refused = check(&format!("#1 {fault}").parse().unwrap());
            let name = fault.split('(').next().unwrap();
            assert!(refused.unwrap_err().starts_with(&format!("{name} ")), "{fault}");
        }
        assert_eq!(check(&"kube:watch secrets@1 watch-gone; #3 crash(before)".parse().unwrap()), Ok(()));
    }
}
