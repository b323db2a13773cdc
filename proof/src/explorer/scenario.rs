//! A scenario: what people do, step by step, and what is to come of it.
//!
//! Plain data, so that one scenario can be played on any stage: in the simulated world, and against
//! a real API server.

use std::fmt;
use std::time::Duration;

use serde_json::Value;
use stowage_world::Options;
use stowage_world::effects::{Fault, Outage};
use stowage_world::history::Facts;

use super::script::Attempt;
use super::target::Target;
use super::told;

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
        (self.script)().iter().any(|step| matches!(step, ScenarioStep::AnyOrder(_)))
    }

    /// Whether it has something that must come soon, whatever ails others (L5).
    pub fn has_haste(&self) -> bool {
        (self.script)().iter().any(|step| matches!(step, ScenarioStep::Soon(..)))
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

/// Something that is to come to hold.
#[derive(Clone, Copy)]
pub struct Goal {
    /// In words: `the claim is bound`.
    pub what: &'static str,
    /// Whether it holds.
    pub holds: fn(&Facts) -> bool,
}

impl Goal {
    /// A goal in words and as a question.
    pub const fn new(what: &'static str, holds: fn(&Facts) -> bool) -> Self {
        Self { what, holds }
    }
}

impl fmt::Debug for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }
}

/// One thing that somebody does, or waits for.
#[derive(Clone, Debug)]
pub enum ScenarioStep {
    /// A user applies manifests.
    Apply(String),
    /// A user merges a patch into an object.
    Patch(Target, Value),
    /// A user deletes an object.
    Delete(Target),
    /// Somebody does something at the store.
    Store(StoreStep),
    /// An object comes back from a backup, under a new UID.
    Restore(Target),
    /// The internal Secrets are made to be those of an older version of the operator.
    Age,
    /// A tenant begins to work with the consumer Secret of a claim: namespace and name.
    Tenant(&'static str, &'static str),
    /// The same with the consumer Secret of an access.
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
    /// From here on the plan's faults meet calls.
    Begin,
    /// Nothing is done until this holds.
    Until(Goal),
    /// The same, and it has to come within this time, whatever ails others (L5). For times when no
    /// faults happen.
    Soon(Goal, Duration),
    /// Nothing is done for this long.
    Pass(Duration),
    /// The clock jumps this far: as when all machines were off.
    Leap(Duration),
}

/// What somebody does at the store, past the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreStep {
    /// Makes a bucket for an account.
    PutBucket {
        /// The account.
        account: &'static str,
        /// The bucket.
        bucket: &'static str,
    },
    /// Has a bucket let another account in, as its owner may by a policy.
    LetIn {
        /// The bucket.
        bucket: &'static str,
        /// The account.
        account: &'static str,
    },
    /// Writes an object.
    PutObject {
        /// The bucket.
        bucket: &'static str,
        /// The key.
        key: &'static str,
    },
    /// Turns versioning on.
    EnableVersioning {
        /// The bucket.
        bucket: &'static str,
    },
    /// Begins an upload in parts and leaves it.
    StartUpload {
        /// The bucket.
        bucket: &'static str,
        /// The key.
        key: &'static str,
    },
    /// Puts a legal hold on an object.
    Hold {
        /// The bucket.
        bucket: &'static str,
        /// The key.
        key: &'static str,
    },
    /// Takes it off again.
    Release {
        /// The bucket.
        bucket: &'static str,
        /// The key.
        key: &'static str,
    },
    /// Deletes a bucket with all that is in it.
    RemoveBucket {
        /// The bucket.
        bucket: &'static str,
    },
    /// Makes a bucket in the store at this endpoint what it is in the usual one: tags and newest
    /// objects.
    CopyBucket {
        /// The bucket.
        bucket: &'static str,
        /// The other store's endpoint.
        endpoint: &'static str,
    },
    /// Makes a bucket in the store at this endpoint, with nothing in it and no tags.
    PutBucketAt {
        /// The account that it is of.
        account: &'static str,
        /// The bucket.
        bucket: &'static str,
        /// The other store's endpoint.
        endpoint: &'static str,
    },
    /// Gives an account another pair of keys.
    AddKey {
        /// The account.
        account: &'static str,
        /// The access key id.
        id: &'static str,
        /// The secret key.
        key: &'static str,
    },
    /// Withdraws a key.
    RevokeKey {
        /// The access key id.
        id: &'static str,
    },
}

impl fmt::Display for StoreStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PutBucket { account, bucket } => write!(f, "{account} makes bucket {bucket}"),
            Self::LetIn { bucket, account } => write!(f, "{bucket} lets {account} in"),
            Self::PutObject { bucket, key } => write!(f, "somebody writes {bucket}/{key}"),
            Self::EnableVersioning { bucket } => write!(f, "somebody turns versioning of {bucket} on"),
            Self::StartUpload { bucket, key } => write!(f, "somebody begins an upload of {bucket}/{key}"),
            Self::Hold { bucket, key } => write!(f, "somebody puts a legal hold on {bucket}/{key}"),
            Self::Release { bucket, key } => write!(f, "somebody takes the legal hold off {bucket}/{key}"),
            Self::RemoveBucket { bucket } => write!(f, "somebody deletes bucket {bucket} and all in it"),
            Self::CopyBucket { bucket, endpoint } => write!(f, "somebody copies bucket {bucket} to {endpoint}"),
            Self::PutBucketAt { account, bucket, endpoint } => {
                write!(f, "{account} makes bucket {bucket} at {endpoint}")
            }
            Self::AddKey { account, id, .. } => write!(f, "{account} is given the key {id}"),
            Self::RevokeKey { id } => write!(f, "the key {id} is withdrawn"),
        }
    }
}

impl fmt::Display for ScenarioStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Apply(yaml) => f.write_str(&told::applied(yaml)),
            Self::Patch(target, patch) => f.write_str(&told::patched(*target, patch)),
            Self::Delete(target) => write!(f, "a user deletes {target}"),
            Self::Store(step) => step.fmt(f),
            Self::Restore(target) => write!(f, "{target} comes back from a backup"),
            Self::Age => f.write_str("the internal Secrets are an older version's"),
            Self::Tenant(namespace, name) => write!(f, "a tenant of {namespace}/{name} begins to work"),
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
            Self::Begin => f.write_str("from here on faults happen"),
            Self::Until(goal) => write!(f, "until {}", goal.what),
            Self::Soon(goal, time) => write!(f, "within {} s {}", time.as_secs(), goal.what),
            Self::Pass(time) => write!(f, "{} s pass", time.as_secs()),
            Self::Leap(time) => write!(f, "{} days later", time.as_secs() / 86_400),
        }
    }
}
