//! Reconciles ObjectBucketClaims.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use kube::runtime::controller::Action;
use kube::{Resource, ResourceExt};
use tokio::time::Instant;
use tracing::Span;

use crate::api::{Obc, ObjectBucketClaim};
use crate::cache::ObcCaches;
use crate::metrics::PassResult;
use crate::plan::Then;
use crate::plan::obc::{ObcAnswer, ObcSetting, ObcStep, ObcView};

use super::drive::{CarryOut, drive};
use super::reconcile::{Kind, requeue};
use super::shared::Shared;
use super::slots::Slot;

/// The [`Kind`] of ObjectBucketClaims.
pub(super) struct Obcs {
    shared: Arc<Shared>,
    caches: Arc<ObcCaches>,
    setting: Arc<ObcSetting>,
}

impl Obcs {
    /// Creates the controller's state for one provisioner.
    pub(super) fn new(shared: Arc<Shared>, caches: Arc<ObcCaches>, provisioner: String) -> Self {
        let gateway = shared.config.gateway.clone();
        let operator = shared.observer.setting.operator();
        Self { shared, caches, setting: Arc::new(ObcSetting { provisioner, gateway, operator }) }
    }
}

impl Kind for Obcs {
    type Object = ObjectBucketClaim;
    type End = Then;

    const CONTROLLER: &'static str = "objectbucketclaim";

    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn latest(&self, seen: &ObjectBucketClaim) -> Arc<ObjectBucketClaim> {
        self.caches.written.obcs.latest(seen)
    }

    fn log_undecodable(&self, obc: &str, error: &dyn Display) {
        tracing::warn!(obc, %error, "this ObjectBucketClaim can't be decoded and is left alone");
    }

    /// Delays the pass over an ObjectBucketClaim that is written too often.
    ///
    /// Passes over a BucketClaim are never skipped like this, because a revocation must not wait.
    /// For an ObjectBucketClaim, a revocation is requested on its BucketClaim or BucketAccess
    /// instead.
    fn hold_off(&self, obc: &ObjectBucketClaim) -> Option<Duration> {
        if obc.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let wait = self.shared.memory.pace.wait(&obc.uid().unwrap_or_default(), Instant::now())?;
        let (namespace, name) = (obc.namespace().unwrap_or_default(), obc.name_any());
        tracing::warn!(namespace, name, "this ObjectBucketClaim is written about too often");
        Some(wait)
    }

    fn span(&self, obc: &ObjectBucketClaim) -> Span {
        let (namespace, name) = (obc.namespace().unwrap_or_default(), obc.name_any());
        tracing::info_span!("obc", namespace, name)
    }

    async fn reconcile(&self, raw: &ObjectBucketClaim, _slot: Slot<'_>) -> Then {
        let obc = Obc::parse(raw);
        let cached = self.caches.around(&obc);
        let mut view = ObcView::new(self.setting.clone(), obc, cached);
        let rest = drive(&mut view, &self.shared.clock, &mut Hands(self)).await;
        self.shared.announcer.announce(&rest.events, &raw.object_ref(&())).await;
        if let Some(told) = &rest.told {
            self.caches.told(view.obc().uid(), told.clone());
        }
        rest.then
    }

    fn requeue(&self, uid: &str, then: Then) -> (PassResult, Action) {
        requeue(&self.shared, uid, then, None)
    }
}

/// Carries out the steps of one pass.
struct Hands<'a>(&'a Obcs);

impl CarryOut<ObcView> for Hands<'_> {
    async fn carry_out(&mut self, view: &ObcView, step: &ObcStep) -> ObcAnswer {
        let shared = &self.0.shared;
        let answer = match step {
            ObcStep::Look(look) => {
                let answer = shared.observer.answer_obc(view.obc(), look).await;
                answer.unwrap_or_else(|failure| ObcAnswer::Failed(step.clone(), failure))
            }
            ObcStep::Act(act) => {
                tracing::debug!(%step, "acting");
                let answer = shared.actor.perform_obc(view.obc(), &self.0.setting.label(), act).await;
                if !view.obc().deleting {
                    shared.memory.pace.did(view.obc().uid(), Instant::now());
                }
                answer
            }
        };
        if let ObcAnswer::Failed(step, failure) = &answer {
            tracing::warn!(%step, ?failure, "step failed");
        }
        answer
    }
}
