//! Passes over ObjectBucketClaims.

use std::convert::Infallible;
use std::sync::Arc;

use futures::future::{BoxFuture, Shared as SharedFuture};
use futures::stream::{self, StreamExt};
use kube::runtime::controller::{self, Action, Controller};
use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;
use tracing::Instrument;

use crate::api::{Obc, ObjectBucketClaim};
use crate::cache::ObcCaches;
use crate::kubernetes;
use crate::metrics::{ControllerMetrics, PassResult};
use crate::plan::Then;
use crate::plan::obc::{ObcAnswer, ObcRest, ObcSetting, ObcStep, ObcView};

use super::announcer::Announced;
use super::drive::{CarryOut, drive};
use super::feeds;
use super::jitter::jittered;
use super::objects::ObcObject;
use super::shared::Shared;
use super::slots::Slots;

struct Context {
    shared: Arc<Shared>,
    caches: Arc<ObcCaches>,
    setting: Arc<ObcSetting>,
    slots: Slots,
    metrics: ControllerMetrics,
}

/// Runs passes until `shutdown`. Where the cluster has no such kind there is never anything to do.
pub(super) async fn run(
    shared: Arc<Shared>,
    provisioner: String,
    caches: Arc<ObcCaches>,
    wakes: UnboundedReceiver<ObjectRef<ObcObject>>,
    shutdown: SharedFuture<BoxFuture<'static, ()>>,
) {
    let most = shared.config.max_concurrent_reconciles;
    let setting = Arc::new(ObcSetting {
        provisioner,
        gateway: shared.config.gateway.clone(),
        operator: shared.observer.setting.operator(),
    });
    let slots = Slots::new(most, shutdown.clone());
    let metrics = shared.metrics.controller("objectbucketclaim", most);
    let store = caches.obcs.clone();
    let context = Arc::new(Context { shared, caches, setting, slots, metrics });
    Controller::for_stream(stream::pending(), store)
        .with_config(controller::Config::default().concurrency(0))
        .reconcile_on(feeds::receiver_stream(wakes))
        .graceful_shutdown_on(shutdown)
        .run(reconcile, |_, error: &Infallible, _| match *error {}, context)
        .for_each(|_| std::future::ready(()))
        .await;
}

async fn reconcile(obc: Arc<ObcObject>, context: Arc<Context>) -> Result<Action, Infallible> {
    let queued = context.metrics.queued();
    let Some(_slot) = context.slots.take(&obc.namespace().unwrap_or_default()).await else {
        return Ok(Action::await_change());
    };
    let measured = queued.begin();
    let Some(obc) = context.caches.obcs.get(&ObjectRef::from_obj(obc.as_ref())) else {
        return Ok(Action::await_change());
    };
    let raw = match &obc.0 {
        Ok(raw) => context.caches.written.obcs.latest(raw),
        Err(error) => {
            tracing::warn!(obc = obc.name_any(), %error, "this ObjectBucketClaim can't be decoded and is left alone");
            return Ok(Action::await_change());
        }
    };
    let uid = raw.uid().unwrap_or_default();
    let (namespace, name) = (raw.namespace().unwrap_or_default(), raw.name_any());
    if raw.metadata.deletion_timestamp.is_none()
        && let Some(wait) = context.shared.memory.pace.wait(&uid, Instant::now())
    {
        tracing::warn!(namespace, name, "this ObjectBucketClaim is written about too often");
        return Ok(Action::requeue(wait));
    }
    let span = tracing::info_span!("obc", namespace, name);
    let rest = Box::pin(context.pass(&raw)).instrument(span).await;
    measured.end(match rest.then {
        Then::AwaitChange => PassResult::Success,
        Then::After(_) | Then::Wait(_) => PassResult::RequeueAfter,
        Then::Retry(_) => PassResult::Error,
    });
    Ok(context.schedule(&uid, &rest.then))
}

/// Carries out the steps of one pass.
struct Hands<'a>(&'a Context);

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

impl Context {
    async fn pass(&self, raw: &ObjectBucketClaim) -> ObcRest {
        let obc = Obc::parse(raw);
        let cached = self.caches.around(&obc);
        let mut view = ObcView::new(self.setting.clone(), obc, cached);
        let rest = drive(&mut view, &self.shared.clock, &mut Hands(self)).await;
        for event in &rest.events {
            let announced = Announced { warning: event.warning, reason: &event.reason, note: &event.note };
            if let Err(error) = self.shared.announcer.publish(&announced, raw.object_ref(&())).await {
                tracing::debug!(reason = event.reason, why = kubernetes::describe(&error), "event not published");
            }
        }
        if let Some(told) = &rest.told {
            self.caches.told(view.obc().uid(), told.clone());
        }
        rest
    }

    fn schedule(&self, uid: &str, then: &Then) -> Action {
        let (backoff, resync) = (&self.shared.memory.backoff, self.shared.config.resync_interval);
        match then {
            Then::AwaitChange => {
                backoff.reset(uid);
                Action::requeue(jittered(resync))
            }
            Then::After(delay) => {
                backoff.reset(uid);
                Action::requeue((*delay).min(jittered(resync)))
            }
            Then::Wait(delay) => Action::requeue(*delay),
            Then::Retry(why) => {
                let delay = backoff.failed(uid);
                tracing::info!(why, seconds = delay.as_secs_f32(), "trying again later");
                Action::requeue(delay)
            }
        }
    }
}
