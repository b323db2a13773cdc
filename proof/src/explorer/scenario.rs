//! Scenarios: the actions of people in a simulated world, step by step, and their goal.
//!
//! A scenario is plain data. Those built from a scene are also played against a real API server.

use std::fmt;
use std::time::Duration;

use stowage_world::Options;
use stowage_world::effects::{Fault, Outage};
use stowage_world::history::Facts;
use stowage_world::scenes::{Goal, Step, Target};

use super::script::Attempt;

/// A script of actions and its goal.
#[derive(Debug)]
pub struct Scenario {
    /// The name on the command line.
    pub name: &'static str,
    /// A one-line summary.
    pub about: &'static str,
    /// The phase of a claim's life that faults meet.
    pub phase: ScenarioPhase,
    /// The world to play in.
    pub world: fn() -> Options,
    /// The actions of people, in order.
    pub script: fn() -> Vec<ScenarioStep>,
    /// The state to reach.
    pub goal: Goal,
    /// Returns true if the world rests in a state that is not the goal, but that these faults must
    /// or may lead to here.
    ///
    /// States that faults lead to in every scenario are known elsewhere and need not be listed.
    pub otherwise: fn(&Facts, &[Fault]) -> bool,
    /// True if all runs without changes by other actors have the same end. False if it is open
    /// which claim wins a name.
    pub ends_alike: bool,
    /// Checks for further conditions of the goal, in spite of these faults; returns one sentence if
    /// a condition fails.
    pub check: fn(&Facts, &[Fault]) -> Result<(), String>,
}

impl Scenario {
    /// Returns true if the seed decides the order of some actions.
    pub fn has_orders(&self) -> bool {
        (self.script)().iter().any(|step| matches!(step, ScenarioStep::More(WorldStep::AnyOrder(_))))
    }

    /// Returns true if a step has a deadline that applies even while other claims are in trouble
    /// (L5).
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
    /// Like `Create`, with a bucket that existed before.
    Adopt,
    /// A key is replaced.
    Rotate,
    /// The spec of a bound claim changes.
    Edit,
    /// A claim is deleted.
    Delete,
    /// A claim is deleted with a bucket that has to be emptied.
    Purge,
    /// Something lost or broken is restored.
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
    /// An object is restored from a backup, under a new UID.
    Restore(Target),
    /// The internal Secrets are changed to those of an older version of the operator.
    Age,
    /// A tenant starts to use the consumer Secret of an access, given by namespace and name.
    AccessTenant(&'static str, &'static str),
    /// A tenant of a claim, given by namespace and name, starts to use the gateway of this index,
    /// which is not the first.
    TenantAt(&'static str, &'static str, usize),
    /// The tenant of a claim, given by namespace and name, keeps the key that its Secret contains
    /// now.
    Keep(&'static str, &'static str),
    /// The gateway of this index learns of each change with this delay from here on.
    FallBehind(usize, Duration),
    /// Tenants send requests to a gateway, one after the other.
    Requests {
        /// A description of the requests.
        what: &'static str,
        /// The index of the gateway, from 0.
        gateway: usize,
        /// The requests.
        attempts: fn() -> Vec<Attempt>,
    },
    /// One more operator starts. It is restarted after each crash.
    StartOperator,
    /// The operator that was started last is stopped, as by SIGTERM.
    StopOperator,
    /// The operator that was started first, of those that run, is stopped likewise.
    StopFirstOperator,
    /// These steps are taken in an order that the seed decides; the end must not depend on it (D2).
    AnyOrder(Vec<ScenarioStep>),
    /// A store's calls begin to fail.
    Outage(Outage),
    /// All outages of the stores at a host end.
    Recovery(&'static str),
    /// Waits for this goal, which must be reached within this time even while other claims are in
    /// trouble (L5). For times without faults.
    Soon(Goal, Duration),
    /// The clock jumps by this time, as if all machines had been off.
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
