//! The scenarios: each makes its own stage, plays, and checks what can be seen from outside.

mod access;
mod adoption;
mod backend;
mod bind;
mod conflicts;
mod crashes;
mod crds;
mod departure;
mod edits;
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
mod schedule;
mod two;
mod unreadable;
mod upgrade;
mod whole;

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::ValueEnum;
use stowage_world::effects::Plan as Faults;

use crate::artefacts;
use crate::clock::FakeClock;
use crate::failure::sentence;
use crate::report::ScenarioReport;
use crate::stage_kind::StageKind;
use crate::testbed::Testbed;

const NO_CLOCK: &str = "there is no faketime on this machine";

/// What can be played. Those that take long come first, so that workers end at about the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// A key is replaced while tenants use it all the time, and none of their requests fails.
    RotationOverlap,
    /// The operator is killed at each effect of a rotation, and started again.
    CrashRotate,
    /// The same from its start to a bound claim.
    CrashCreate,
    /// The same while a claim goes with its bucket, in which there are versions and an unfinished
    /// upload.
    CrashDelete,
    /// Answers are lost, writes refused, watches cut, calls hang: each once, while a claim comes or
    /// goes.
    LostAnswers,
    /// Of operators that elect one, the leader is killed, and then told to end; another follows.
    Election,
    /// Accesses open what the owner of a bucket consents to, through every door of S3, and nothing
    /// beyond.
    Access,
    /// ObjectBucketClaims, as charts for Rook and NooBaa have them, get buckets and what is read
    /// from them.
    Obc,
    /// The API server takes the project's CustomResourceDefinitions without a warning.
    CrdsAccepted,
    /// It answers the table of good and bad objects as expected.
    ObjectTable,
    /// What is left of a claim whose finalizer was stripped by hand is revoked.
    StrippedFinalizer,
    /// A key that somebody's finalizer keeps holds up its claim, which says so, and its bucket.
    KeptSecret,
    /// A namespace is deleted with the claims in it.
    NamespaceDeleted,
    /// What an operator of the first version left in the cluster is served on, with the same key.
    Upgrade,
    /// An operator serves one namespace, with rights in that one alone.
    Namespaced,
    /// A claim is bound, deleted, and gets its retained bucket back.
    BindAndDelete,
    /// A bucket that was there before is refused, then taken over as its backend allows, and left
    /// as it was found.
    Adoption,
    /// A backend is deleted before its claims.
    BackendFirst,
    /// Deletion policies are edited before and during deletion.
    PolicyEdits,
    /// A bucket with objects and an unfinished upload is emptied and deleted with its claim.
    ForcedDeletion,
    /// A bucket that is not empty keeps its claim until that is let go.
    RefusedDeletion,
    /// Of two claims to one bucket one waits, and is woken when the other lets go.
    NameConflict,
    /// A Secret that isn't the claim's is left alone.
    SecretConflict,
    /// A tenant's Secret that the operator's types can't read keeps nobody else from being served.
    Unreadable,
    /// What `plan` says comes next, while no operator runs, is what one then does.
    Plan,
    /// The operator is killed while it creates 20 claims, and started again.
    Restart,
    /// Two operators work on the same claims; one of them is killed and comes back.
    TwoOperators,
    /// Calls between gateway and store are lost, refused and never answered: tenants see that, and
    /// the operator does not.
    GatewayFaults,
    /// Two gateways are replaced while tenants use them all the time, and none of their requests
    /// fails.
    GatewayRollout,
    /// Keys are replaced because they are a week old, by an operator whose clock is ahead, and then
    /// set back.
    ScheduledRotation,
}

impl Scenario {
    /// As on the command line and in reports.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// The disturbance that is part of it.
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

    /// Faults that it has from its first call on, where any can happen.
    fn faults(self) -> Faults {
        match self {
            Self::Restart => restart::PLAN.parse().expect("a plan of this crate is well formed"),
            _ => Faults::default(),
        }
    }

    /// Why it can't be played on a stage; `None` where it can.
    pub(crate) fn misfit(self, stage: StageKind) -> Option<&'static str> {
        let goes_through_gateways = matches!(
            self,
            Self::RotationOverlap
                | Self::GatewayFaults
                | Self::GatewayRollout
                | Self::Access
                | Self::Obc
                | Self::Upgrade
        );
        let needs_rig =
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
        match stage {
            StageKind::Existing if needs_rig => {
                Some("it needs a gateway, faults or a log of calls: cluster and store have to be made for the run")
            }
            StageKind::Kind if needs_process => Some(
                "it needs processes of this machine: two operators, two gateways, another clock, a gateway behind a proxy, a \
                 command, an operator with other rights",
            ),
            StageKind::Kind | StageKind::ControlPlane | StageKind::Existing => None,
        }
    }

    /// What it needs of this machine and is not there; `None` where nothing is missing.
    pub(crate) fn missing(self) -> Option<&'static str> {
        (self == Self::ScheduledRotation && FakeClock::find().is_none()).then_some(NO_CLOCK)
    }

    /// Whether faults are part of it.
    fn has_faults(self) -> bool {
        matches!(self, Self::CrashRotate | Self::CrashCreate | Self::CrashDelete | Self::LostAnswers)
    }

    /// Whether it can be played with any faults: it has an operator, and none of its own. A command
    /// fails where its question gets no answer.
    pub(crate) fn takes_faults(self) -> bool {
        !self.has_faults() && !matches!(self, Self::CrdsAccepted | Self::ObjectTable | Self::Plan)
    }

    /// The simulator's scenario with the same steps, if there is one. Those with faults tell at
    /// each.
    fn like(self) -> Option<&'static str> {
        match self {
            Self::RotationOverlap => Some("rotate"),
            Self::NamespaceDeleted => Some("namespace"),
            Self::BindAndDelete => Some("adopt-owned"),
            Self::BackendFirst => Some("backend-first"),
            Self::ForcedDeletion => Some("purge-slices"),
            Self::RefusedDeletion => Some("delete-full"),
            Self::NameConflict => Some("conflict"),
            _ => None,
        }
    }

    /// Plays it and takes away what it made, also when it fails; then a folder in `artifacts` tells
    /// more.
    pub(crate) async fn run(self, testbed: &mut Testbed, artifacts: Option<&Path>) -> ScenarioReport {
        let start = Instant::now();
        let judged = self.judged(testbed).await;
        let kept = match (&judged, artifacts) {
            (Err(_), Some(directory)) => Some(artefacts::keep(testbed, directory, &self.name()).await),
            _ => None,
        };
        let cleaned = testbed.clean_up().await;
        let outcome = judged.and_then(|message| cleaned.map(|()| message));
        let (ok, mut message) = match outcome {
            Ok(message) => (true, message),
            Err(why) => (false, sentence(&why)),
        };
        if let Some(rig) = testbed.rig.as_ref().filter(|_| !ok) {
            message.push_str(&format!("; {}", rig.way.replay()));
        }
        match kept {
            Some(Ok(folder)) => message.push_str(&format!("; see {}", folder.display())),
            Some(Err(why)) => message.push_str(&format!("; and nothing is kept of it: {}", sentence(&why))),
            None => {}
        }
        let seconds = start.elapsed().as_secs_f64();
        let plan = if testbed.faults.is_empty() { self.plan().to_owned() } else { testbed.faults.to_string() };
        ScenarioReport { name: self.name(), ok, seconds, plan, message }
    }

    /// Plays it, and has what was seen from outside judged.
    async fn judged(self, testbed: &mut Testbed) -> Result<String> {
        testbed.begin(self.faults(), self.like()).await?;
        let message = self.play(testbed).await?;
        testbed.judge().await?;
        Ok(message)
    }

    async fn play(self, testbed: &Testbed) -> Result<String> {
        match self {
            Self::Access => access::play(testbed).await,
            Self::Obc => obc::play(testbed).await,
            Self::CrdsAccepted => crds::play(testbed).await,
            Self::ObjectTable => objects::play(testbed).await,
            Self::RotationOverlap => rotation::overlap(testbed).await,
            Self::CrashRotate => crashes::rotate(testbed).await,
            Self::CrashCreate => crashes::create(testbed).await,
            Self::CrashDelete => crashes::delete(testbed).await,
            Self::LostAnswers => faults::play(testbed).await,
            Self::NamespaceDeleted => namespace::deleted(testbed).await,
            Self::Namespaced => namespaced::play(testbed).await,
            Self::Upgrade => upgrade::play(testbed).await,
            Self::BindAndDelete => bind::play(testbed).await,
            Self::Adoption => adoption::play(testbed).await,
            Self::BackendFirst => backend::first(testbed).await,
            Self::PolicyEdits => edits::policy(testbed).await,
            Self::ForcedDeletion => departure::forced(testbed).await,
            Self::RefusedDeletion => departure::refused(testbed).await,
            Self::StrippedFinalizer => departure::stripped(testbed).await,
            Self::KeptSecret => departure::kept(testbed).await,
            Self::NameConflict => conflicts::name(testbed).await,
            Self::SecretConflict => conflicts::secret(testbed).await,
            Self::Unreadable => unreadable::play(testbed).await,
            Self::Plan => plan::play(testbed).await,
            Self::Restart => restart::play(testbed).await,
            Self::GatewayFaults => gateway::faults(testbed).await,
            Self::GatewayRollout => rollout::gateways(testbed).await,
            Self::Election => election::play(testbed).await,
            Self::TwoOperators => two::operators(testbed).await,
            Self::ScheduledRotation => match FakeClock::find() {
                Some(clock) => schedule::rotation(testbed, &clock).await,
                None => bail!(NO_CLOCK),
            },
        }
    }
}

/// Makes sure that the cluster has the project's definitions; tells which it didn't have before.
pub(crate) use crds::{install, uninstall};

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
