//! The scenarios. Each creates its own setup, plays, and checks the result from outside.

mod access;
mod backend;
mod crashes;
mod crds;
mod departure;
mod election;
mod faults;
mod gateway;
mod namespace;
mod namespaced;
mod obc;
mod objects;
mod plan;
mod restart;
mod rollout;
mod rotation;
mod scene;
mod schedule;
mod two;
mod unreadable;
mod upgrade;
mod whole;

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::ValueEnum;
use stowage_testbed::clock::FakeClock;
use stowage_testbed::environment::Environment;
use stowage_testbed::failure::sentence;
use stowage_world::effects::Plan as Faults;
use stowage_world::scenes::{names, removal};

use crate::artefacts;
use crate::cluster_kind::ClusterKind;
use crate::replay;
use crate::report::ScenarioReport;

const NO_CLOCK: &str = "there is no faketime on this machine";

/// A scenario. Long ones come first, so that all workers end at about the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// A key is replaced while tenants use it constantly, and none of their requests fails.
    RotationOverlap,
    /// The operator is killed at each effect of a rotation, and started again.
    CrashRotate,
    /// The operator is killed at each effect from its start to a bound claim, and started again.
    CrashCreate,
    /// The operator is killed at each effect of deleting a claim with its bucket, in which there
    /// are versions and an unfinished upload, and started again.
    CrashDelete,
    /// Lost answers, refused writes, cut watches and hanging calls, each once, while a claim is
    /// created or deleted.
    LostAnswers,
    /// With leader election, the leader is killed, then a leader is terminated; another one takes
    /// over.
    Election,
    /// Accesses open exactly what the owner of a bucket consents to, for every S3 request that
    /// could reach it.
    Access,
    /// ObjectBucketClaims, as in charts for Rook and NooBaa, get buckets, ConfigMaps and Secrets.
    Obc,
    /// The API server accepts the project's CustomResourceDefinitions without a warning.
    CrdsAccepted,
    /// The API server accepts and rejects the objects of a table as expected.
    ObjectTable,
    /// The Secrets of a claim with its finalizer stripped by hand are revoked.
    StrippedFinalizer,
    /// A key with another program's finalizer delays the deletion of its claim and bucket, and the
    /// claim's status says so.
    KeptSecret,
    /// A namespace is deleted with the claims in it.
    NamespaceDeleted,
    /// Objects that an operator of the first version left in the cluster are served, with the same
    /// key.
    Upgrade,
    /// An operator serves one namespace, with rights in that one only.
    Namespaced,
    /// A claim is bound, deleted, created again, and gets its retained bucket back.
    BindAndDelete,
    /// A bucket that existed before is refused, then adopted as its backend allows, and left as it
    /// was found.
    Adoption,
    /// A backend is deleted before its claims.
    BackendFirst,
    /// Deletion policies are edited before and during deletion.
    PolicyEdits,
    /// A bucket with objects and an unfinished upload is emptied and deleted with its claim.
    ForcedDeletion,
    /// A bucket that is not empty keeps its claim from being deleted until the deletion policy is
    /// edited.
    RefusedDeletion,
    /// Two claims request one bucket: the second waits until the first releases it, and is then
    /// bound.
    NameConflict,
    /// A Secret that doesn't belong to the claim is left alone.
    SecretConflict,
    /// A tenant's Secret that the operator's types can't parse doesn't affect other tenants.
    Unreadable,
    /// The operator does what `plan` predicted while no operator was running.
    Plan,
    /// The operator is killed while it serves 20 new claims, and started again.
    Restart,
    /// Two operators work on the same claims; one of them is killed and restarted.
    TwoOperators,
    /// Calls between gateway and store fail, are refused or lose their answer; tenants see that,
    /// and the operator does not.
    GatewayFaults,
    /// Two gateways are replaced while tenants use them constantly, and none of their requests
    /// fails.
    GatewayRollout,
    /// Keys are replaced at the age of a week, by an operator with its clock set ahead and then
    /// back.
    ScheduledRotation,
}

impl Scenario {
    /// Returns the name on the command line and in reports.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Returns a description of the disturbance that is part of it.
    fn plan(self) -> &'static str {
        match self {
            Self::CrashRotate | Self::CrashCreate | Self::CrashDelete => "SIGKILL at each effect",
            Self::LostAnswers => "one fault for each claim",
            Self::Restart => "SIGKILL when the first of 20 claims is Bound",
            Self::GatewayFaults => gateway::PLAN,
            Self::GatewayRollout => "SIGTERM to each gateway once a new one is ready",
            Self::Election => "SIGKILL, then SIGTERM to the one that leads",
            Self::TwoOperators => "a second operator; SIGKILL when half of the claims are Bound",
            Self::ScheduledRotation => "the operator's clock 8 days ahead, right, 16 days ahead",
            Self::StrippedFinalizer => "SIGSTOP while the finalizer is stripped, then SIGCONT",
            _ => "",
        }
    }

    /// Returns the faults that it has from its first call on, on a cluster with a fault proxy.
    fn faults(self) -> Faults {
        match self {
            Self::Restart => restart::PLAN.parse().expect("a plan of this crate is well formed"),
            _ => Faults::default(),
        }
    }

    /// Returns the reason why it can't be played on a kind of cluster; `None` if it can.
    pub(crate) fn misfit(self, cluster: ClusterKind) -> Option<&'static str> {
        let goes_through_gateways = matches!(
            self,
            Self::RotationOverlap
                | Self::GatewayFaults
                | Self::GatewayRollout
                | Self::Access
                | Self::Obc
                | Self::Upgrade
        );
        let needs_own_cluster =
            self.has_faults() || goes_through_gateways || matches!(self, Self::ScheduledRotation | Self::Namespaced);
        let needs_process = matches!(
            self,
            Self::GatewayFaults
                | Self::GatewayRollout
                | Self::TwoOperators
                | Self::Election
                | Self::Namespaced
                | Self::Plan
                | Self::ScheduledRotation
        );
        match cluster {
            ClusterKind::Existing if needs_own_cluster => {
                Some("it needs a gateway, faults or a log of calls: cluster and store have to be made for the run")
            }
            ClusterKind::Kind if needs_process => Some(
                "it needs processes of this machine: two operators, two gateways, another clock, a gateway behind a proxy, a \
                 command, an operator with other rights",
            ),
            ClusterKind::Kind | ClusterKind::ControlPlane | ClusterKind::Existing => None,
        }
    }

    /// Returns the reason why this machine can't play it; `None` if it can.
    pub(crate) fn missing(self) -> Option<&'static str> {
        (self == Self::ScheduledRotation && FakeClock::find().is_none()).then_some(NO_CLOCK)
    }

    /// True if it brings faults itself.
    fn has_faults(self) -> bool {
        matches!(self, Self::CrashRotate | Self::CrashCreate | Self::CrashDelete | Self::LostAnswers)
    }

    /// True if it can be played with arbitrary faults: it has an operator and no faults of its own,
    /// and runs no subcommand, which would fail without an answer.
    pub(crate) fn takes_faults(self) -> bool {
        !self.has_faults() && !matches!(self, Self::CrdsAccepted | Self::ObjectTable | Self::Plan)
    }

    /// Returns the simulator's scenario with the same steps, if there is one. Scenarios with faults
    /// name it at each plan.
    fn like(self) -> Option<&'static str> {
        match self {
            Self::RotationOverlap => Some("rotate"),
            Self::NamespaceDeleted => Some("namespace"),
            Self::BindAndDelete => Some("adopt-owned"),
            Self::BackendFirst => Some("backend-first"),
            Self::ForcedDeletion => Some("purge-slices"),
            Self::RefusedDeletion => Some("delete-full"),
            Self::NameConflict => Some("conflict"),
            Self::SecretConflict => Some("delete-refused"),
            _ => None,
        }
    }

    /// Plays it and removes the objects that it created, even if it fails. A failure is documented
    /// in a folder of `artifacts`.
    pub(crate) async fn run(self, environment: &mut Environment, artifacts: Option<&Path>) -> ScenarioReport {
        let start = Instant::now();
        let judged = self.judged(environment).await;
        let kept = match (&judged, artifacts) {
            (Err(_), Some(directory)) => Some(artefacts::keep(environment, directory, &self.name()).await),
            _ => None,
        };
        let cleaned = environment.clean_up().await;
        let outcome = judged.and_then(|message| cleaned.map(|()| message));
        let (ok, mut message) = match outcome {
            Ok(message) => (true, message),
            Err(why) => (false, sentence(&why)),
        };
        if let Some(own_cluster) = environment.own_cluster.as_ref().filter(|_| !ok) {
            message.push_str(&format!("; {}", replay::command(&own_cluster.fault_proxy.play())));
        }
        match kept {
            Some(Ok(folder)) => message.push_str(&format!("; see {}", folder.display())),
            Some(Err(why)) => message.push_str(&format!("; and nothing is kept of it: {}", sentence(&why))),
            None => {}
        }
        let seconds = start.elapsed().as_secs_f64();
        let plan = if environment.faults.is_empty() { self.plan().to_owned() } else { environment.faults.to_string() };
        ScenarioReport { name: self.name(), ok, seconds, plan, message }
    }

    /// Plays it, and checks the logs of the servers.
    async fn judged(self, environment: &mut Environment) -> Result<String> {
        environment.begin(self.faults(), self.like()).await?;
        let message = self.play(environment).await?;
        environment.judge().await?;
        Ok(message)
    }

    async fn play(self, environment: &Environment) -> Result<String> {
        match self {
            Self::Access => access::play(environment).await,
            Self::Obc => obc::play(environment).await,
            Self::CrdsAccepted => crds::play(environment).await,
            Self::ObjectTable => objects::play(environment).await,
            Self::RotationOverlap => rotation::overlap(environment).await,
            Self::CrashRotate => crashes::rotate(environment).await,
            Self::CrashCreate => crashes::create(environment).await,
            Self::CrashDelete => crashes::delete(environment).await,
            Self::LostAnswers => faults::play(environment).await,
            Self::NamespaceDeleted => namespace::deleted(environment).await,
            Self::Namespaced => namespaced::play(environment).await,
            Self::Upgrade => upgrade::play(environment).await,
            Self::BindAndDelete => scene::play(environment, "bind", &names::taken_back()).await,
            Self::Adoption => scene::adoption(environment).await,
            Self::BackendFirst => backend::first(environment).await,
            Self::PolicyEdits => scene::play(environment, "policy", &removal::edited()).await,
            Self::ForcedDeletion => departure::forced(environment).await,
            Self::RefusedDeletion => scene::play(environment, "refused", &removal::let_go()).await,
            Self::StrippedFinalizer => departure::stripped(environment).await,
            Self::KeptSecret => departure::kept(environment).await,
            Self::NameConflict => scene::play(environment, "name", &names::one_name()).await,
            Self::SecretConflict => scene::play(environment, "secret", &names::secret_refused()).await,
            Self::Unreadable => unreadable::play(environment).await,
            Self::Plan => plan::play(environment).await,
            Self::Restart => restart::play(environment).await,
            Self::GatewayFaults => gateway::faults(environment).await,
            Self::GatewayRollout => rollout::gateways(environment).await,
            Self::Election => election::play(environment).await,
            Self::TwoOperators => two::operators(environment).await,
            Self::ScheduledRotation => match FakeClock::find() {
                Some(clock) => schedule::rotation(environment, &clock).await,
                None => bail!(NO_CLOCK),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use stowage_proof::explorer::Schedule;

    use super::*;

    #[test]
    fn what_is_to_be_replayed_in_the_simulator_is_there() {
        for like in Scenario::value_variants().iter().filter_map(|scenario| scenario.like()) {
            format!("{like} 1").parse::<Schedule>().unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
