//! Passes over accesses.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use kube::runtime::controller::Action;
use kube::{Resource, ResourceExt};
use tokio::time::Instant;
use tracing::Span;

use crate::api::BucketAccess;
use crate::metrics::PassResult;
use crate::plan::grant::{Grant, GrantAct, GrantAnswer, GrantLook, GrantStep};
use crate::plan::{Change, Failure, Then};

use super::drive::{CarryOut, drive};
use super::reconcile::{Kind, requeue};
use super::shared::Shared;
use super::slots::Slot;

/// Accesses.
pub(super) struct Accesses {
    pub(super) shared: Arc<Shared>,
}

impl Kind for Accesses {
    type Object = BucketAccess;
    type End = Then;

    const CONTROLLER: &'static str = "bucketaccess";

    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn latest(&self, seen: &BucketAccess) -> Arc<BucketAccess> {
        self.shared.actor.written_accesses.latest(seen)
    }

    fn log_undecodable(&self, access: &str, error: &dyn Display) {
        tracing::warn!(access, %error, "this access can't be decoded and is left alone");
    }

    fn span(&self, access: &BucketAccess) -> Span {
        let (namespace, name) = (access.namespace().unwrap_or_default(), access.name_any());
        tracing::info_span!("access", namespace, name, generation = access.metadata.generation)
    }

    async fn reconcile(&self, raw: &BucketAccess, _slot: Slot<'_>) -> Then {
        let uid = raw.uid().unwrap_or_default();
        let setbacks = self.shared.memory.backoff.failures(&uid);
        let mut grant =
            self.shared.observer.begin_grant(raw).after_setbacks(setbacks).held_off_for(self.held_off(raw, &uid));
        self.shared.memory.begin_access(&grant.access().at);
        let rest = drive(&mut grant, &self.shared.clock, &mut Hands { accesses: self, asked: false }).await;
        self.shared.announcer.announce(&rest.events, &raw.object_ref(&())).await;
        rest.then
    }

    fn requeue(&self, uid: &str, then: Then) -> (PassResult, Action) {
        requeue(&self.shared, uid, then, None)
    }
}

/// Carries out the steps of one pass.
struct Hands<'a> {
    accesses: &'a Accesses,
    /// This pass has read a claim.
    asked: bool,
}

impl CarryOut<Grant> for Hands<'_> {
    async fn carry_out(&mut self, grant: &Grant, step: &GrantStep) -> GrantAnswer {
        let answer = match (step, self.too_soon(grant, step)) {
            (_, Some(wait)) => GrantAnswer::Failed(step.clone(), Failure::Paced(wait)),
            (GrantStep::Look(look), None) => self.accesses.shared.observer.answer_grant(grant, look).await,
            (GrantStep::Act(act), None) => self.accesses.act(grant, act).await,
        };
        if let GrantAnswer::Failed(step, failure) = &answer {
            tracing::warn!(%step, ?failure, "step failed");
        }
        answer
    }
}

impl Hands<'_> {
    /// The time to wait before this pass may read claims; `None` if it need not. A tenant
    /// has an access looked at as often as it likes, and each look may be at 64 claims.
    fn too_soon(&mut self, grant: &Grant, step: &GrantStep) -> Option<Duration> {
        if self.asked || !matches!(step, GrantStep::Look(GrantLook::Claim(_))) {
            return None;
        }
        let wait = self.accesses.shared.memory.asked.take(grant.access().uid.as_str(), Instant::now());
        self.asked = wait.is_none();
        wait
    }
}

impl Accesses {
    /// Time until the access is within its pace again; `None` where it is. As of a claim.
    fn held_off(&self, raw: &BucketAccess, uid: &str) -> Option<Duration> {
        let wait = self.shared.memory.pace.wait(uid, Instant::now())?;
        if raw.metadata.deletion_timestamp.is_some() {
            return None;
        }
        tracing::warn!(seconds = wait.as_secs(), "this access is written about too often and has to wait");
        Some(wait)
    }

    async fn act(&self, grant: &Grant, act: &GrantAct) -> GrantAnswer {
        tracing::debug!(step = %GrantStep::Act(act.clone()), "acting");
        let answer = self.shared.actor.perform_grant(grant.access(), act).await;
        if grant.is_paced() {
            self.shared.memory.pace.did(grant.access().uid.as_str(), Instant::now());
        }
        match &answer {
            GrantAnswer::Patched(Change::RaiseGeneration(trigger), _) => self.shared.metrics.rotated(*trigger),
            GrantAnswer::Failed(GrantStep::Act(GrantAct::Patch(_)), Failure::Kubernetes(_)) => {
                self.shared.memory.access_patch_unanswered(grant.access().at.clone());
            }
            _ => {}
        }
        answer
    }
}
