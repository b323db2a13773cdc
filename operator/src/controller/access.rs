//! Reconciles BucketAccesses.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use kube::runtime::controller::Action;
use kube::{Resource, ResourceExt};
use tokio::time::Instant;
use tracing::Span;

use crate::api::BucketAccess;
use crate::metrics::PassResult;
use crate::plan::access::{AccessAct, AccessAnswer, AccessLook, AccessStep, AccessView};
use crate::plan::{Change, Failure, Then};

use super::drive::{CarryOut, drive};
use super::reconcile::{Kind, requeue};
use super::shared::Shared;
use super::slots::Slot;

/// The [`Kind`] of BucketAccesses.
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
        let mut view =
            self.shared.observer.begin_access(raw).after_setbacks(setbacks).held_off_for(self.held_off(raw, &uid));
        self.shared.memory.begin_access(&view.access().at);
        let rest = drive(&mut view, &self.shared.clock, &mut Hands { accesses: self, asked: false }).await;
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
    /// Set once this pass has read a claim.
    asked: bool,
}

impl CarryOut<AccessView> for Hands<'_> {
    async fn carry_out(&mut self, view: &AccessView, step: &AccessStep) -> AccessAnswer {
        let answer = match (step, self.too_soon(view, step)) {
            (_, Some(wait)) => AccessAnswer::Failed(step.clone(), Failure::Paced(wait)),
            (AccessStep::Look(look), None) => self.accesses.shared.observer.answer_access(view, look).await,
            (AccessStep::Act(act), None) => self.accesses.act(view, act).await,
        };
        if let AccessAnswer::Failed(step, failure) = &answer {
            tracing::warn!(%step, ?failure, "step failed");
        }
        answer
    }
}

impl Hands<'_> {
    /// Returns the time to wait before this pass may read claims, `None` if it may do so now.
    ///
    /// A tenant can trigger passes over an access as often as it likes, and each pass may read 64
    /// claims.
    fn too_soon(&mut self, view: &AccessView, step: &AccessStep) -> Option<Duration> {
        if self.asked || !matches!(step, AccessStep::Look(AccessLook::Claim(_))) {
            return None;
        }
        let wait = self.accesses.shared.memory.asked.take(view.access().uid.as_str(), Instant::now());
        self.asked = wait.is_none();
        wait
    }
}

impl Accesses {
    /// Returns the time until the access may be written again, `None` if it may be now.
    ///
    /// An access that is being deleted is never held off, like a claim.
    fn held_off(&self, raw: &BucketAccess, uid: &str) -> Option<Duration> {
        let wait = self.shared.memory.pace.wait(uid, Instant::now())?;
        if raw.metadata.deletion_timestamp.is_some() {
            return None;
        }
        tracing::warn!(seconds = wait.as_secs(), "this access is written about too often and has to wait");
        Some(wait)
    }

    async fn act(&self, view: &AccessView, act: &AccessAct) -> AccessAnswer {
        tracing::debug!(step = %AccessStep::Act(act.clone()), "acting");
        let answer = self.shared.actor.perform_access(view.access(), act).await;
        if view.is_paced() {
            self.shared.memory.pace.did(view.access().uid.as_str(), Instant::now());
        }
        match &answer {
            AccessAnswer::Patched(Change::RaiseGeneration(trigger), _) => self.shared.metrics.rotated(*trigger),
            AccessAnswer::Failed(AccessStep::Act(AccessAct::Patch(_)), Failure::Kubernetes(_)) => {
                self.shared.memory.access_patch_unanswered(view.access().at.clone());
            }
            _ => {}
        }
        answer
    }
}
