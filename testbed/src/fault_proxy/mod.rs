//! The fault proxy between the operator and its API server and store. It numbers the operator's
//! calls and injects the faults of a plan. Harness and tenants bypass it.

pub(crate) mod handle;

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use stowage_world::effects::CallKind;
use stowage_world::effects::{Call, CallOutcome, KubeVerb, Line, Plan};
use stowage_world::serve::Server;
use stowage_world::serve::proxy::{Proxy, Unplayable, Upstream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

pub use self::handle::FIRST_LIFE;
use self::handle::{Handle, Remote};
use crate::control_plane::ControlPlane;
use crate::store::Key;
use crate::users::User;

/// Any free port on the loopback address.
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The servers that the operator connects to in place of API server and store.
pub struct FaultProxy {
    proxy: Handle,
    /// The store's URL for the operator.
    endpoint: String,
    /// Proxies in this process, which serve until they are dropped.
    _servers: Vec<Server>,
    /// Life of the current operator, counted since the beginning.
    life: Cell<u32>,
    /// Number of operators that crashed by plan and were started again.
    crashes: watch::Sender<usize>,
    /// The current plan.
    play: RefCell<Play>,
}

/// The operators' calls since the beginning.
pub struct Calls {
    lines: Vec<Line>,
    /// Life of the current operator.
    life: u32,
}

/// A plan, and the simulator's scenario with the same steps.
#[derive(Clone, Debug, Default)]
pub struct Play {
    /// The plan.
    pub plan: Plan,
    /// Name of the simulator's scenario; `None` if none has the same steps.
    pub like: Option<&'static str>,
    /// True if patterns count from the point at which the scenario enables faults; false if they
    /// count from the operator's first call, as in the simulator.
    pub from_here: bool,
}

/// Checks that every fault of a plan can happen between real servers.
///
/// # Errors
/// Names the first fault that can't.
pub fn check(plan: &Plan) -> Result<(), Unplayable> {
    Proxy::new(plan.clone()).map(|_| ())
}

fn is_watch(line: &Line) -> bool {
    line.call.kind() == CallKind::Kube(KubeVerb::Watch) && line.world == Some(200)
}

impl FaultProxy {
    /// Serves API server and store from this process, without faults. Calls to the store with the
    /// gateway's key are not numbered. Also returns the path of the operator's kubeconfig, which
    /// has the operator as its only user.
    pub async fn here(plane: &ControlPlane, store: &str, gateway: &Key) -> Result<(Self, PathBuf)> {
        let proxy = Proxy::new(Plan::default())?;
        let failed = "can't serve the operator";
        let upstream = Upstream::kube(&plane.config(User::Operator).await?)?;
        let kube = proxy.serve_kube(LOOPBACK, upstream).await.context(failed)?;
        let store = store.parse().with_context(|| store.to_owned())?;
        let upstream = Upstream::s3(&store)?.unnumbered([gateway.id.clone()]);
        let s3 = proxy.serve_s3(LOOPBACK, upstream).await.context(failed)?;
        let (kubeconfig, endpoint) = (plane.operator_kubeconfig(&kube.url())?, s3.url());
        Ok((Self::new(Handle::Here(proxy), endpoint, vec![kube, s3]), kubeconfig))
    }

    /// Uses a proxy in a pod, with this store URL for the operator.
    pub fn there(proxy: Remote, endpoint: String) -> Self {
        Self::new(Handle::There(proxy), endpoint, Vec::new())
    }

    fn new(proxy: Handle, endpoint: String, servers: Vec<Server>) -> Self {
        let (life, crashes) = (Cell::new(0), watch::Sender::new(0));
        Self { proxy, endpoint, _servers: servers, life, crashes, play: RefCell::default() }
    }

    /// Returns the store's URL for the operator.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Begins a scenario while no operator runs: calls count from one. `like` names the simulator's
    /// scenario with the same steps.
    pub async fn begin(&self, plan: Plan, like: Option<&'static str>) -> Result<()> {
        self.proxy.begin(&plan).await?;
        self.life.set(0);
        self.play.replace(Play { plan, like, from_here: false });
        Ok(())
    }

    /// Replaces the plan of the running operator. Patterns count from one again; call numbers
    /// continue.
    pub async fn plan(&self, plan: Plan, like: &'static str) -> Result<()> {
        self.proxy.set_plan(&plan).await?;
        self.play.replace(Play { plan, like: Some(like), from_here: true });
        Ok(())
    }

    /// Prepares for the start of an operator, once the previous one is dead.
    pub async fn new_operator(&self) -> Result<()> {
        // `begin` has started the first life already.
        let life = if self.life.get() == 0 { FIRST_LIFE } else { self.proxy.next_life().await? };
        self.life.set(life);
        Ok(())
    }

    /// Completes when the plan crashes the operator. The proxy lets none of its calls pass from
    /// then on.
    pub async fn death(&self) -> Result<()> {
        // Skips lives that ended with their process or by a new plan.
        while self.proxy.crash().await?.effect.is_none() {
            sleep(self.proxy.look()).await;
        }
        Ok(())
    }

    /// Records that the operator crashed by plan and was started again.
    pub fn crashed(&self) {
        self.crashes.send_modify(|count| *count += 1);
    }

    /// Returns the number of such crashes so far.
    pub fn crashes(&self) -> usize {
        *self.crashes.borrow()
    }

    /// Returns a future that completes at the next crash after this call.
    pub fn next_crash(&self) -> impl Future<Output = ()> + use<> {
        let mut crashes = self.crashes.subscribe();
        async move {
            if crashes.changed().await.is_err() {
                // The sender is gone, so there will be no further crash.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Returns all calls begun since the beginning.
    pub async fn calls(&self) -> Result<Calls> {
        Ok(Calls { lines: self.proxy.calls().await?, life: self.life.get() })
    }

    /// Polls the calls until `such` returns true for them.
    pub async fn until(&self, limit: Duration, what: &str, such: impl Fn(&Calls) -> bool) -> Result<Calls> {
        let seen = async {
            loop {
                let calls = self.calls().await?;
                if such(&calls) {
                    return Ok(calls);
                }
                sleep(self.proxy.look()).await;
            }
        };
        timeout(limit, seen).await.map_err(|_| anyhow!("the operator did not {what} within {} s", limit.as_secs()))?
    }

    /// Returns an error if a part of the plan has met no call.
    pub async fn all_met(&self) -> Result<()> {
        let unmet = self.proxy.unfired().await?;
        ensure!(unmet.is_empty(), "no call met {unmet}");
        Ok(())
    }

    /// True if a part of the plan has met a call.
    pub async fn has_met_one(&self) -> Result<bool> {
        Ok(self.proxy.unfired().await?.entries.len() < self.play.borrow().plan.entries.len())
    }

    /// Returns the plan of the current scenario.
    pub fn play(&self) -> Play {
        self.play.borrow().clone()
    }
}

impl Calls {
    /// Returns the number of calls.
    pub fn count(&self) -> usize {
        self.lines.len()
    }

    /// Returns all calls.
    pub fn all(&self) -> &[Line] {
        &self.lines
    }

    /// Returns the calls from index `first` on.
    pub fn since(&self, first: usize) -> &[Line] {
        self.lines.get(first..).unwrap_or_default()
    }

    /// Returns the calls of the current operator.
    pub fn of_this_life(&self) -> &[Line] {
        self.since(self.lines.iter().take_while(|line| line.instance < self.life).count())
    }

    /// True if no call is pending.
    pub fn are_answered(&self) -> bool {
        self.lines.iter().all(|line| line.answer != CallOutcome::Pending)
    }

    /// True if the current operator has begun at least as many watches as the first one, and has
    /// called the store.
    pub fn has_begun(&self) -> bool {
        let watches = |life| self.lines.iter().filter(|line| line.instance == life && is_watch(line)).count();
        let asks = |line: &Line| line.instance == self.life && matches!(line.call, Call::S3(_)) && line.world.is_some();
        watches(self.life) >= watches(FIRST_LIFE) && self.lines.iter().any(asks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_somebodys_hands_is_refused_by_name() {
        for fault in ["vanish", "pause(20)", "twin", "step(-45)", "skew(gateway,+45)", "lag(20)"] {
            let refused = check(&format!("#1 {fault}").parse().unwrap());
            let name = fault.split('(').next().unwrap();
            assert!(refused.unwrap_err().to_string().starts_with(&format!("{name} ")), "{fault}");
        }
        assert!(check(&"kube:watch secrets@1 watch-gone; #3 crash(before)".parse().unwrap()).is_ok());
    }
}
