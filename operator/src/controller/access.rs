//! Passes over accesses.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, Shared as SharedFuture};
use futures::stream::{self, StreamExt};
use kube::runtime::controller::{self, Action, Controller};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Resource, ResourceExt};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;
use tracing::Instrument;

use crate::api::BucketAccess;
use crate::kubernetes;
use crate::metrics::{ControllerMetrics, PassResult};
use crate::plan::grant::{Grant, GrantAct, GrantAnswer, GrantLook, GrantStep};
use crate::plan::{Change, Failure, Rest, Then};

use super::announcer::Announced;
use super::drive::{CarryOut, drive};
use super::feeds;
use super::jitter::jittered;
use super::objects::Access;
use super::shared::Shared;
use super::slots::Slots;

struct Context {
    shared: Arc<Shared>,
    store: Store<Access>,
    slots: Slots,
    metrics: ControllerMetrics,
}

/// Runs passes until `shutdown`. Where the cluster has no such kind there is never anything to do.
pub(super) async fn run(
    shared: Arc<Shared>,
    store: Store<Access>,
    wakes: UnboundedReceiver<ObjectRef<Access>>,
    shutdown: SharedFuture<BoxFuture<'static, ()>>,
) {
    let most = shared.config.max_concurrent_reconciles;
    let slots = Slots::new(most, shutdown.clone());
    let metrics = shared.metrics.controller("bucketaccess", most);
    let context = Arc::new(Context { shared, store: store.clone(), slots, metrics });
    Controller::for_stream(stream::pending(), store)
        .with_config(controller::Config::default().concurrency(0))
        .reconcile_on(feeds::receiver_stream(wakes))
        .graceful_shutdown_on(shutdown)
        .run(reconcile, |_, error: &Infallible, _| match *error {}, context)
        .for_each(|_| std::future::ready(()))
        .await;
}

async fn reconcile(access: Arc<Access>, context: Arc<Context>) -> Result<Action, Infallible> {
    let queued = context.metrics.queued();
    let Some(_slot) = context.slots.take(&access.namespace().unwrap_or_default()).await else {
        return Ok(Action::await_change());
    };
    let measured = queued.begin();
    let Some(access) = context.store.get(&ObjectRef::from_obj(access.as_ref())) else {
        return Ok(Action::await_change());
    };
    let raw = match &access.0 {
        Ok(raw) => context.shared.actor.written_accesses.latest(raw),
        Err(error) => {
            tracing::warn!(access = access.name_any(), %error, "this access can't be decoded and is left alone");
            return Ok(Action::await_change());
        }
    };
    let uid = raw.uid().unwrap_or_default();
    let (namespace, name) = (raw.namespace().unwrap_or_default(), raw.name_any());
    let span = tracing::info_span!("access", namespace, name, generation = raw.metadata.generation);
    let rest = Box::pin(context.pass(&raw)).instrument(span).await;
    measured.end(match rest.then {
        Then::AwaitChange => PassResult::Success,
        Then::After(_) | Then::Wait(_) => PassResult::RequeueAfter,
        Then::Retry(_) => PassResult::Error,
    });
    Ok(context.schedule(&uid, &rest.then))
}

/// Carries out the steps of one pass.
struct Hands<'a> {
    context: &'a Context,
    /// This pass has read a claim.
    asked: bool,
}

impl CarryOut<Grant> for Hands<'_> {
    async fn carry_out(&mut self, grant: &Grant, step: &GrantStep) -> GrantAnswer {
        let answer = match (step, self.too_soon(grant, step)) {
            (_, Some(wait)) => GrantAnswer::Failed(step.clone(), Failure::Paced(wait)),
            (GrantStep::Look(look), None) => self.context.shared.observer.answer_grant(grant, look).await,
            (GrantStep::Act(act), None) => self.context.act(grant, act).await,
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
        let (paces, uid) = (&self.context.shared.memory.asked, grant.access().uid.as_str());
        let wait = paces.wait(uid, Instant::now());
        if wait.is_none() {
            self.asked = true;
            paces.did(uid, Instant::now());
        }
        wait
    }
}

impl Context {
    async fn pass(&self, raw: &BucketAccess) -> Rest {
        let uid = raw.uid().unwrap_or_default();
        let setbacks = self.shared.memory.backoff.failures(&uid);
        let mut grant =
            self.shared.observer.begin_grant(raw).after_setbacks(setbacks).held_off_for(self.held_off(raw, &uid));
        self.shared.memory.begin_access(&grant.access().at);
        let rest = drive(&mut grant, &self.shared.clock, &mut Hands { context: self, asked: false }).await;
        for event in &rest.events {
            let announced = Announced { warning: event.warning, reason: &event.reason, note: &event.note };
            if let Err(error) = self.shared.announcer.publish(&announced, raw.object_ref(&())).await {
                tracing::debug!(reason = event.reason, why = kubernetes::describe(&error), "event not published");
            }
        }
        rest
    }

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
