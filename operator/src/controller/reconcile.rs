//! The controller that runs every kind: an object is woken, waits for a slot, and is reconciled.
//!
//! A kind's file says only what is its own. kube's controller sees to it that no two passes over
//! one object run at once, and wakes the object again when its [`Action`] says so.

use std::convert::Infallible;
use std::fmt::{Debug, Display};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, Shared as SharedFuture};
use futures::stream::{self, Stream, StreamExt};
use k8s_openapi::serde::de::DeserializeOwned;
use kube::core::DeserializeGuard;
use kube::runtime::controller::{self, Action, Controller};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Resource, ResourceExt};
use tokio::sync::mpsc::UnboundedReceiver;
use tracing::{Instrument, Span};

use crate::metrics::{ControllerMetrics, PassResult};
use crate::plan::Then;

use super::jitter::jittered;
use super::shared::Shared;
use super::slots::{Slot, Slots};

/// An object as its watch delivers it: decoded, or why it can't be.
pub(super) type Watched<K> = DeserializeGuard<<K as Kind>::Object>;

/// A kind of objects, and how one of them is reconciled.
pub(super) trait Kind: Sized + Send + Sync + 'static {
    /// The object.
    type Object: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static;
    /// The end of a pass.
    type End: Send;

    /// Name of its controller in metrics.
    const CONTROLLER: &'static str;

    /// State that all controllers share.
    fn shared(&self) -> &Shared;

    /// Most passes that work at once, not counting those that wait for a store.
    fn concurrency(&self) -> u16 {
        self.shared().config.max_concurrent_reconciles
    }

    /// The later of what the watch shows and what this process wrote.
    fn latest(&self, seen: &Self::Object) -> Arc<Self::Object>;

    /// Logs that an object can't be decoded and is left alone.
    fn log_undecodable(&self, name: &str, error: &dyn Display);

    /// Time until the next pass may begin; `None` where it may begin now. A pass that may not begin
    /// is not counted.
    fn hold_off(&self, _object: &Self::Object) -> Option<Duration> {
        None
    }

    /// Span of a pass in the log.
    fn span(&self, object: &Self::Object) -> Span;

    /// Runs a pass over an object. The slot is its own until it is dropped.
    fn reconcile(&self, object: &Self::Object, slot: Slot<'_>) -> impl Future<Output = Self::End> + Send;

    /// Schedules the next pass after one that ended so.
    fn requeue(&self, uid: &str, end: Self::End) -> (PassResult, Action);

    /// Follows every pass: forgets what one put by of an object that went while it was under way.
    fn after(&self, _object: &Watched<Self>, _latest: &Self::Object, _store: &Store<Watched<Self>>) {}

    /// Follows the wake of an object that is gone.
    fn not_found(&self, _store: &Store<Watched<Self>>) {}
}

struct Context<K: Kind> {
    kind: K,
    store: Store<Watched<K>>,
    slots: Slots,
    metrics: ControllerMetrics,
}

/// Runs passes over the objects that are woken, until `shutdown`. Where the cluster has no such
/// kind there is never anything to do.
pub(super) async fn run_controller<K: Kind>(
    kind: K,
    store: Store<Watched<K>>,
    wakes: UnboundedReceiver<ObjectRef<Watched<K>>>,
    shutdown: SharedFuture<BoxFuture<'static, ()>>,
) {
    let most = kind.concurrency();
    let slots = Slots::new(most, shutdown.clone());
    let metrics = kind.shared().metrics.controller(K::CONTROLLER, most);
    let context = Arc::new(Context { kind, store: store.clone(), slots, metrics });
    Controller::for_stream(stream::pending(), store)
        // Without a bound: passes wait for a slot, see there.
        .with_config(controller::Config::default().concurrency(0))
        .reconcile_on(receiver_stream(wakes))
        .graceful_shutdown_on(shutdown)
        .run(reconcile::<K>, |_, error: &Infallible, _| match *error {}, context.clone())
        .for_each(|done| {
            // What went wrong is in the log and in the status; that a woken object is gone is no
            // error at all.
            if let Err(controller::Error::ObjectNotFound(_)) = done {
                context.kind.not_found(&context.store);
            }
            std::future::ready(())
        })
        .await;
}

/// Waits for a slot, then runs a pass over the object as it is by then.
async fn reconcile<K: Kind>(object: Arc<Watched<K>>, context: Arc<Context<K>>) -> Result<Action, Infallible> {
    let Context { kind, store, slots, metrics } = context.as_ref();
    let queued = metrics.queued();
    let Some(slot) = slots.take(&object.namespace().unwrap_or_default()).await else {
        return Ok(Action::await_change());
    };
    let measured = queued.begin();
    let Some(object) = store.get(&ObjectRef::from_obj(object.as_ref())) else {
        return Ok(Action::await_change());
    };
    let latest = match &object.0 {
        Ok(seen) => kind.latest(seen),
        Err(error) => {
            kind.log_undecodable(&object.name_any(), error);
            return Ok(Action::await_change());
        }
    };
    if let Some(wait) = kind.hold_off(&latest) {
        return Ok(Action::requeue(wait));
    }
    // Boxed, so that those who wait for a slot are small.
    let end = Box::pin(kind.reconcile(&latest, slot)).instrument(kind.span(&latest)).await;
    let (result, action) = kind.requeue(&latest.uid().unwrap_or_default(), end);
    measured.end(result);
    kind.after(&object, &latest, store);
    Ok(action)
}

/// Schedules the next pass over a claim, an access or an ObjectBucketClaim. One at rest has it when
/// it is `due`, on the slow resync at the latest.
pub(super) fn requeue(shared: &Shared, uid: &str, then: Then, due: Option<Duration>) -> (PassResult, Action) {
    let backoff = &shared.memory.backoff;
    match then {
        Then::AwaitChange => {
            backoff.reset(uid);
            let resync = jittered(shared.config.resync_interval);
            (PassResult::Success, Action::requeue(due.map_or(resync, |due| due.min(resync))))
        }
        Then::After(delay) => {
            backoff.reset(uid);
            (PassResult::RequeueAfter, Action::requeue(delay.min(jittered(shared.config.resync_interval))))
        }
        Then::Wait(delay) => (PassResult::RequeueAfter, Action::requeue(delay)),
        Then::Retry(why) => (PassResult::Error, error_policy(shared, uid, &why)),
    }
}

/// Tries an object again after its backoff.
fn error_policy(shared: &Shared, uid: &str, why: &str) -> Action {
    let delay = shared.memory.backoff.failed(uid);
    tracing::info!(why, seconds = delay.as_secs_f32(), "trying again later");
    Action::requeue(delay)
}

/// A channel as a stream; ends when every sender is gone.
fn receiver_stream<T: Send + 'static>(receiver: UnboundedReceiver<T>) -> impl Stream<Item = T> + Send {
    stream::unfold(receiver, |mut receiver| async move { Some((receiver.recv().await?, receiver)) })
}
