//! The checks, in order: each one begins in the state in which the one before ended.

use std::path::Path;

use anyhow::{Result, bail, ensure};
use futures::future::try_join_all;
use kube::api::{DeleteParams, PropagationPolicy};
use serde_json::Value;
use stowage_testbed::console::{print, tell};
use tokio::time::Instant;

use super::cluster::{Kind, Place, until};
use super::environment::Environment;
use super::faces;
use super::replicas::Replicas;
use super::sites::Sites;
use crate::clients::catalogue::Client as Operator;

/// Number of websites created at once.
const WEBSITES: usize = 6;
/// Number of times that the harness writes to the registry meanwhile.
const TIMES: usize = 40;
/// Name of the Lease.
const LEASE: &str = "websites.example.org";
/// The website that is checked in detail.
const FIRST: &str = "site-0";

/// A check.
#[derive(Clone, Copy, Debug)]
enum Check {
    Elected,
    Reconciled,
    Conflicts,
    Events,
    Secret,
    Repeated,
    Drift,
    Handover,
    Restart,
    Deletion,
    Namespace,
    Reset,
    Release,
}

impl Check {
    /// All checks, in order.
    const ALL: [Self; 13] = [
        Self::Elected,
        Self::Reconciled,
        Self::Conflicts,
        Self::Events,
        Self::Secret,
        Self::Repeated,
        Self::Drift,
        Self::Handover,
        Self::Restart,
        Self::Deletion,
        Self::Namespace,
        Self::Reset,
        Self::Release,
    ];

    /// Describes the check in the report.
    fn words(self) -> &'static str {
        match self {
            Self::Elected => "one of two replicas holds the Lease",
            Self::Reconciled => "websites made at once get page, bucket, finalizer and status",
            Self::Conflicts => "nobody's writes to a shared ConfigMap are lost",
            Self::Events => "events have both faces",
            Self::Secret => "a watched Secret reaches every page, by the index",
            Self::Repeated => "a repeated event is counted",
            Self::Drift => "what others wrote to an owned object is undone",
            Self::Handover => "after kill -9 of the leader the other replica goes on",
            Self::Restart => "watches outlive a restart of the server",
            Self::Deletion => "deletion waits for the finalizer, and garbage collection follows",
            Self::Namespace => "a namespace with websites goes",
            Self::Reset => "watches that are told 410 begin anew",
            Self::Release => "the leader that is told to end gives up the Lease",
        }
    }
}

/// An operator in an environment.
pub(super) struct Play {
    environment: Environment,
    sites: Sites,
    /// `None` once they have ended.
    replicas: Option<Replicas>,
    faces: Vec<Value>,
}

impl Play {
    /// Starts the operator's replicas.
    pub(super) async fn begin(environment: Environment, operator: &Operator, home: &Path) -> Result<Self> {
        let sites = Sites::new(environment.cluster(), &operator.name);
        sites.furnish("first").await?;
        let replicas = Some(Replicas::start(operator, home, &environment.kubeconfig()?, &sites.system)?);
        Ok(Self { environment, sites, replicas, faces: Vec::new() })
    }

    /// Runs every check that is possible in this environment, and returns the objects that the
    /// operator left, masked.
    ///
    /// # Errors
    /// Returns the first check that failed.
    pub(super) async fn all(&mut self, name: &str) -> Result<Vec<Value>> {
        for check in Check::ALL {
            if matches!((check, &self.environment), (Check::Restart | Check::Reset, Environment::ControlPlane(_))) {
                tell(&format!("{name} left out: {}: only the simulator is restarted and reset", check.words()));
                continue;
            }
            let begun = Instant::now();
            let more = match self.one(check).await {
                Ok(more) => more,
                Err(error) => return Err(error.context(check.words())),
            };
            print(&format!("{name} ok {:.1} s: {}{more}", begun.elapsed().as_secs_f64(), check.words()))?;
        }
        Ok(std::mem::take(&mut self.faces))
    }

    /// Returns the last lines of the logs of operator and server.
    pub(super) fn last_words(&self) -> Vec<String> {
        let mut words = self.replicas.as_ref().map(Replicas::last_words).unwrap_or_default();
        words.extend(self.environment.log());
        words
    }

    /// Runs a check, and returns further details for the report.
    async fn one(&mut self, check: Check) -> Result<String> {
        let Some(replicas) = &mut self.replicas else { bail!("the operator has ended") };
        let (sites, environment) = (&self.sites, &mut self.environment);
        match check {
            Check::Elected => elected(replicas, sites).await?,
            Check::Reconciled => return reconciled(sites, environment).await,
            Check::Conflicts => conflicts(sites).await?,
            Check::Events => faces::of_events(sites, FIRST).await?,
            Check::Secret => {
                sites.motto("second").await?;
                try_join_all(names().iter().map(|name| sites.stands(name, "second"))).await?;
            }
            Check::Repeated => {
                faces::counted(sites, FIRST).await?;
                self.faces = faces::of_website(sites, FIRST).await?;
            }
            Check::Drift => drift(sites).await?,
            Check::Handover => {
                let before = holder(sites).await?;
                replicas.hand_over(async || sites.make(environment, "after-handover", "second").await).await?;
                ensure!(holder(sites).await? != before, "the Lease still names {before}");
            }
            Check::Restart => restart(replicas, sites, environment).await?,
            Check::Deletion => {
                sites.remove(FIRST, DeleteParams::background()).await?;
                let foreground = Some(PropagationPolicy::Foreground);
                sites
                    .remove("site-1", DeleteParams { propagation_policy: foreground, ..DeleteParams::default() })
                    .await?;
            }
            Check::Namespace => {
                sites.clear().await?;
                let (left, expected) = (sites.registered().await?, sites.expected(&[], TIMES));
                ensure!(left == expected, "the registry still has {left}");
            }
            Check::Reset => reset(replicas, sites, environment).await?,
            Check::Release => {
                if let Some(replicas) = self.replicas.take() {
                    replicas.end().await?;
                }
                let holder = holder(sites).await?;
                ensure!(holder.is_empty(), "the Lease still names {holder}");
            }
        }
        Ok(String::new())
    }
}

fn names() -> Vec<String> {
    (0..WEBSITES).map(|number| format!("site-{number}")).collect()
}

/// Returns the holder of the Lease.
async fn holder(sites: &Sites) -> Result<String> {
    let lease = sites.cluster.get(Place(Kind::Lease, &sites.system, LEASE)).await?;
    let Some(lease) = lease else { bail!("there is no Lease {LEASE}") };
    Ok(lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned())
}

async fn elected(replicas: &mut Replicas, sites: &Sites) -> Result<()> {
    replicas.leader().await?;
    ensure!(!holder(sites).await?.is_empty(), "the Lease names nobody");
    Ok(())
}

async fn reconciled(sites: &Sites, environment: &Environment) -> Result<String> {
    let names = names();
    let made = try_join_all(names.iter().map(|name| sites.make(environment, name, "first")));
    let (_, conflicts) = tokio::try_join!(made, sites.count(TIMES))?;
    Ok(format!(" (the harness met {conflicts} conflicts beside it)"))
}

async fn conflicts(sites: &Sites) -> Result<()> {
    let (found, expected) = (sites.registered().await?, sites.expected(&names(), TIMES));
    ensure!(found == expected, "the registry has {found}, not {expected}");
    Ok(())
}

async fn drift(sites: &Sites) -> Result<()> {
    let page = Place(Kind::ConfigMap, &sites.namespace, "site-0-page");
    sites.cluster.apply(page, serde_json::json!({"data": {"page": "graffiti"}})).await?;
    sites.stands(FIRST, "second").await
}

async fn restart(replicas: &mut Replicas, sites: &Sites, environment: &mut Environment) -> Result<()> {
    let leader = replicas.leader().await?;
    if let Environment::Simulator(simulator) = environment {
        simulator.restart().await?;
    }
    until("the server is back", async || holder(sites).await.map(Some)).await?;
    sites.make(environment, "after-restart", "second").await?;
    ensure!(replicas.leader().await? == leader, "the leader ended, though the restart was a short one");
    Ok(())
}

/// Resets the simulator and begins again. The Lease is deleted too, and either replica may become
/// the leader.
async fn reset(replicas: &mut Replicas, sites: &Sites, environment: &Environment) -> Result<()> {
    if let Environment::Simulator(simulator) = environment {
        simulator.reset().await?;
    }
    sites.furnish("third").await?;
    // A replica ends when another one has created the Lease; it is restarted, as by a kubelet.
    let made = sites.make(environment, "after-reset", "third");
    tokio::pin!(made);
    loop {
        tokio::select! {
            done = &mut made => return done,
            () = tokio::time::sleep(std::time::Duration::from_millis(200)) => replicas.tend()?,
        }
    }
}
