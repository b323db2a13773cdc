//! A scenario: what people do in a simulated world, step by step, and what is to come of it.
//!
//! Plain data. Those that are made of a scene are played against a real API server, too.

use std::fmt;
use std::time::Duration;

use stowage_world::Options;
use stowage_world::effects::{Fault, Outage};
use stowage_world::history::Facts;
use stowage_world::scenes::{Goal, Step, Target};

use super::script::Attempt;

/// What people do, and what is to come of it.
#[derive(Debug)]
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is about, in one line.
    pub about: &'static str,
    /// The phase of a claim's life that faults meet.
    pub phase: ScenarioPhase,
    /// The world that it plays in.
    pub world: fn() -> Options,
    /// What people do, in order.
    pub script: fn() -> Vec<ScenarioStep>,
    /// What it comes to.
    pub goal: Goal,
    /// Whether all rests in a way that is no goal, but what these faults must or may lead to here.
    /// What they lead to in every scenario need not be said.
    pub otherwise: fn(&Facts, &[Fault]) -> bool,
    /// Whether all runs in which nobody does anything else end alike; not where it is open who wins
    /// a name.
    pub ends_alike: bool,
    /// What else must hold where it has come to its goal, in spite of these faults; says in one
    /// sentence what doesn't.
    pub check: fn(&Facts, &[Fault]) -> Result<(), String>,
}

impl Scenario {
    /// Whether it has acts whose order the seed decides.
    pub fn has_orders(&self) -> bool {
        (self.script)().iter().any(|step| matches!(step, ScenarioStep::More(WorldStep::AnyOrder(_))))
    }

    /// Whether it has something that must come soon, whatever ails others (L5).
    pub fn has_haste(&self) -> bool {
        (self.script)().iter().any(|step| matches!(step, ScenarioStep::More(WorldStep::Soon(..))))
    }
}

/// A phase of a claim's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScenarioPhase {
    /// From a claim to a bound claim.
    Create,
    /// The same with a bucket that was there before.
    Adopt,
    /// A key is replaced.
    Rotate,
    /// The spec of a bound claim changes.
    Edit,
    /// A claim goes.
    Delete,
    /// A claim goes with its bucket.
    Purge,
    /// What was lost or broken comes back.
    Recover,
}

impl fmt::Display for ScenarioPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Create => "create",
            Self::Adopt => "adopt",
            Self::Rotate => "rotate",
            Self::Edit => "edit",
            Self::Delete => "delete",
            Self::Purge => "purge",
            Self::Recover => "recover",
        })
    }
}

/// One step of a scenario.
pub type ScenarioStep = Step<WorldStep>;

/// A step that only a simulated world can take.
#[derive(Clone, Debug)]
pub enum WorldStep {
    /// An object comes back from a backup, under a new UID.
    Restore(Target),
    /// The internal Secrets are made to be those of an older version of the operator.
    Age,
    /// A tenant begins to work with the consumer Secret of an access: namespace and name.
    AccessTenant(&'static str, &'static str),
    /// A tenant of a claim begins to work at another gateway than the first, counted from 0.
    TenantAt(&'static str, &'static str, usize),
    /// The tenant of a claim puts the key aside that its Secret holds now: namespace and name.
    Keep(&'static str, &'static str),
    /// A gateway, counted from 0, hears of each change this late from here on.
    FallBehind(usize, Duration),
    /// Tenants ask a gateway, counted from 0, for these things, one after the other.
    Requests {
        /// What they do, in words.
        what: &'static str,
        /// The gateway.
        gateway: usize,
        /// What they ask for.
        attempts: fn() -> Vec<Attempt>,
    },
    /// One more operator starts. It is started again after each crash.
    StartOperator,
    /// The operator that was started last is stopped as SIGTERM does.
    StopOperator,
    /// The same of the one that was started first, of those that run.
    StopFirstOperator,
    /// These are taken in an order that the seed decides; the end must be the same (D2).
    AnyOrder(Vec<ScenarioStep>),
    /// A store falls ill.
    Outage(Outage),
    /// What ails the stores of a host is over.
    Recovery(&'static str),
    /// Nothing is done until this holds, which has to come within this time, whatever ails others
    /// (L5). For times when no faults happen.
    Soon(Goal, Duration),
    /// The clock jumps this far: as when all machines were off.
    Leap(Duration),
}

impl fmt::Display for WorldStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Restore(target) => write!(f, "{target} comes back from a backup"),
            Self::Age => f.write_str("the internal Secrets are an older version's"),
            Self::AccessTenant(namespace, name) => {
                write!(f, "a tenant of the access {namespace}/{name} begins to work")
            }
            Self::TenantAt(namespace, name, gateway) => {
                write!(f, "a tenant of {namespace}/{name} begins to work at gateway {gateway}")
            }
            Self::Keep(namespace, name) => write!(f, "the tenant of {namespace}/{name} puts its key aside"),
            Self::FallBehind(gateway, lag) => write!(f, "gateway {gateway} falls {} s behind", lag.as_secs()),
            Self::Requests { what, gateway, .. } => write!(f, "at gateway {gateway}, {what}"),
            Self::StartOperator => f.write_str("an operator is started"),
            Self::StopOperator => f.write_str("an operator is stopped"),
            Self::StopFirstOperator => f.write_str("the operator that runs longest is stopped"),
            Self::AnyOrder(steps) => write!(f, "{} acts follow, in any order", steps.len()),
            Self::Outage(outage) => match outage.operation {
                Some(operation) => write!(f, "{operation} at {} begins to fail: {}", outage.host, outage.fault),
                None => write!(f, "{} begins to fail: {}", outage.host, outage.fault),
            },
            Self::Recovery(host) => write!(f, "{host} recovers"),
            Self::Soon(goal, time) => write!(f, "within {} s {}", time.as_secs(), goal.what),
            Self::Leap(time) => write!(f, "{} days later", time.as_secs() / 86_400),
        }
    }
}
