//! The operator's way to API server and store: a proxy numbers its calls and lets the faults of a
//! plan befall them. The harness and the tenants go past it.

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

/// Any free port, for this machine alone.
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The servers that the operator takes for API server and store.
pub struct FaultProxy {
    proxy: Handle,
    /// The store's URL for the operator.
    endpoint: String,
    /// Those in this process serve as long as they are kept.
    _servers: Vec<Server>,
    /// Which operator is on its way, counted since the beginning.
    life: Cell<u32>,
    /// How many operators have died as planned and were started again.
    crashes: watch::Sender<usize>,
    /// What is planned now.
    play: RefCell<Play>,
}

/// What operators have asked for since the beginning.
pub struct Calls {
    lines: Vec<Line>,
    /// That of the operator that runs now.
    life: u32,
}

/// A plan, and the simulator's scenario in which the same is done.
#[derive(Clone, Debug, Default)]
pub struct Play {
    /// The plan.
    pub plan: Plan,
    /// The scenario's name; `None` where the simulator has none with the same steps.
    pub like: Option<&'static str>,
    /// Whether patterns count from where the scenario lets faults begin; else from the operator's
    /// first call, as there.
    pub from_here: bool,
}

/// Whether all that is planned can happen between real servers.
///
/// # Errors
/// Names the fault that can't.
pub fn check(plan: &Plan) -> Result<(), Unplayable> {
    Proxy::new(plan.clone()).map(|_| ())
}

fn is_watch(line: &Line) -> bool {
    line.call.kind() == CallKind::Kube(KubeVerb::Watch) && line.world == Some(200)
}

impl FaultProxy {
    /// Serves both from this process, without faults. Calls to the store by the gateway's key are
    /// not the operator's. Gives also the operator's kubeconfig, with itself for the only user.
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

    /// The way through a proxy in a pod, with this URL of the store.
    pub fn there(proxy: Remote, endpoint: String) -> Self {
        Self::new(Handle::There(proxy), endpoint, Vec::new())
    }

    fn new(proxy: Handle, endpoint: String, servers: Vec<Server>) -> Self {
        let (life, crashes) = (Cell::new(0), watch::Sender::new(0));
        Self { proxy, endpoint, _servers: servers, life, crashes, play: RefCell::default() }
    }

    /// The store's URL for the operator.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// A scenario begins, where no operator runs: calls count from one. `like` is the simulator's
    /// that does the same.
    pub async fn begin(&self, plan: Plan, like: Option<&'static str>) -> Result<()> {
        self.proxy.begin(&plan).await?;
        self.life.set(0);
        self.play.replace(Play { plan, like, from_here: false });
        Ok(())
    }

    /// From now on this is the plan for the operator that runs: patterns count from one, numbers go
    /// on.
    pub async fn plan(&self, plan: Plan, like: &'static str) -> Result<()> {
        self.proxy.set_plan(&plan).await?;
        self.play.replace(Play { plan, like: Some(like), from_here: true });
        Ok(())
    }

    /// An operator is about to start; what ran before is dead.
    pub async fn new_operator(&self) -> Result<()> {
        // A beginning is the beginning of a life.
        let life = if self.life.get() == 0 { FIRST_LIFE } else { self.proxy.next_life().await? };
        self.life.set(life);
        Ok(())
    }

    /// Comes to an end when the operator is to die as planned. From then on nothing that it asks
    /// for is carried out.
    pub async fn death(&self) -> Result<()> {
        // Lives that end with their process, or with a plan, are not meant.
        while self.proxy.crash().await?.effect.is_none() {
            sleep(self.proxy.look()).await;
        }
        Ok(())
    }

    /// The operator has died as planned, and was started again.
    pub fn crashed(&self) {
        self.crashes.send_modify(|count| *count += 1);
    }

    /// How many have up to now.
    pub fn crashes(&self) -> usize {
        *self.crashes.borrow()
    }

    /// A wait for the next crash, from here on.
    pub fn next_crash(&self) -> impl Future<Output = ()> + use<> {
        let mut crashes = self.crashes.subscribe();
        async move {
            if crashes.changed().await.is_err() {
                // Nobody is left to tell of a crash.
                std::future::pending::<()>().await;
            }
        }
    }

    /// All calls since the beginning, as far as they have begun.
    pub async fn calls(&self) -> Result<Calls> {
        Ok(Calls { lines: self.proxy.calls().await?, life: self.life.get() })
    }

    /// Waits until the calls are such.
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

    /// Fails when a part of the plan has met no call.
    pub async fn all_met(&self) -> Result<()> {
        let unmet = self.proxy.unfired().await?;
        ensure!(unmet.is_empty(), "no call met {unmet}");
        Ok(())
    }

    /// Whether a part of the plan has met a call.
    pub async fn has_met_one(&self) -> Result<bool> {
        Ok(self.proxy.unfired().await?.entries.len() < self.play.borrow().plan.entries.len())
    }

    /// The plan of the present scenario.
    pub fn play(&self) -> Play {
        self.play.borrow().clone()
    }
}

impl Calls {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.lines.len()
    }

    /// All of them.
    pub fn all(&self) -> &[Line] {
        &self.lines
    }

    /// Those from this one on.
    pub fn since(&self, first: usize) -> &[Line] {
        self.lines.get(first..).unwrap_or_default()
    }

    /// Those of the operator that runs now.
    pub fn of_this_life(&self) -> &[Line] {
        self.since(self.lines.iter().take_while(|line| line.instance < self.life).count())
    }

    /// Whether none is on its way.
    pub fn are_answered(&self) -> bool {
        self.lines.iter().all(|line| line.answer != CallOutcome::Pending)
    }

    /// Whether the operator has begun as many watches as the first one had, and asked the store for
    /// something.
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
