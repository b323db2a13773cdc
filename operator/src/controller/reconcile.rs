//! The controller of every kind: waits for a slot for each woken object, then reconciles it.
//!
//! The file of a kind has only what is specific to it. kube's controller never runs two passes over
//! one object at once, and wakes an object again when its [`Action`] is due.

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

/// An object as its watch delivers it: decoded, or the decoding error.
pub(super) type Watched<K> = DeserializeGuard<<K as Kind>::Object>;

/// A kind of objects and its reconciler.
pub(super) trait Kind: Sized + Send + Sync + 'static {
    /// The object.
    type Object: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static;
    /// The end of a pass.
    type End: Send;

    /// Name of the controller in metrics.
    const CONTROLLER: &'static str;

    /// Returns the state shared by all controllers.
    fn shared(&self) -> &Shared;

    /// Maximum number of concurrent passes, not counting those that wait for a store.
    fn concurrency(&self) -> u16 {
        self.shared().config.max_concurrent_reconciles
    }

    /// Returns the watched object or this process's last write of it, if that is newer.
    fn latest(&self, seen: &Self::Object) -> Arc<Self::Object>;

    /// Logs that an object can't be decoded and is not reconciled.
    fn log_undecodable(&self, name: &str, error: &dyn Display);

    /// Returns the time until the next pass may begin; `None` if it may begin now. A pass that is
    /// held off is not counted in the metrics.
    fn hold_off(&self, _object: &Self::Object) -> Option<Duration> {
        None
    }

    /// Returns the tracing span of a pass.
    fn span(&self, object: &Self::Object) -> Span;

    /// Reconciles an object. Dropping the slot frees it.
    fn reconcile(&self, object: &Self::Object, slot: Slot<'_>) -> impl Future<Output = Self::End> + Send;

    /// Schedules the next pass.
    fn requeue(&self, uid: &str, end: Self::End) -> (PassResult, Action);

    /// Runs after every pass, to drop state that it stored for an object deleted meanwhile.
    fn after(&self, _object: &Watched<Self>, _latest: &Self::Object, _store: &Store<Watched<Self>>) {}

    /// Runs when a woken object does not exist.
    fn not_found(&self, _store: &Store<Watched<Self>>) {}
}

struct Context<K: Kind> {
    kind: K,
    store: Store<Watched<K>>,
    slots: Slots,
    metrics: ControllerMetrics,
}

/// Reconciles woken objects until `shutdown`. If the CRD is not installed, nothing is ever woken.
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
        // Concurrency is not limited here, as passes wait for a slot instead.
        .with_config(controller::Config::default().concurrency(0))
        .reconcile_on(receiver_stream(wakes))
        .graceful_shutdown_on(shutdown)
        .run(reconcile::<K>, |_, error: &Infallible, _| match *error {}, context.clone())
        .for_each(|done| {
            // Failures are in the log and in the status. A woken object that doesn't exist any more
            // is normal.
            if let Err(controller::Error::ObjectNotFound(_)) = done {
                context.kind.not_found(&context.store);
            }
            std::future::ready(())
        })
        .await;
}

/// Waits for a slot, then reconciles the current version of the object.
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
    // Boxed, so that the future of a pass that waits for its slot stays small.
    let end = Box::pin(kind.reconcile(&latest, slot)).instrument(kind.span(&latest)).await;
    let (result, action) = kind.requeue(&latest.uid().unwrap_or_default(), end);
    measured.end(result);
    kind.after(&object, &latest, store);
    Ok(action)
}

/// Schedules the next pass over a claim, an access or an ObjectBucketClaim. It begins on the slow
/// resync at the latest, unless the pass holds off or failed. `due` is an earlier time for a pass
/// that awaits a change.
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

/// Schedules a retry after the object's backoff.
fn error_policy(shared: &Shared, uid: &str, why: &str) -> Action {
    let delay = shared.memory.backoff.failed(uid);
    tracing::info!(why, seconds = delay.as_secs_f32(), "trying again later");
    Action::requeue(delay)
}

/// Turns a channel into a stream, which ends when every sender is dropped.
fn receiver_stream<T: Send + 'static>(receiver: UnboundedReceiver<T>) -> impl Stream<Item = T> + Send {
    stream::unfold(receiver, |mut receiver| async move { Some((receiver.recv().await?, receiver)) })
}
