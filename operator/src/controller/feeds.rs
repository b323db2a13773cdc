//! The watches: each fills a cache and wakes the objects that depend on what changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::stream::{self, BoxStream, Stream, StreamExt};
use futures::{TryStreamExt, future};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::core::{DeserializeGuard, PartialObjectMeta};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, ResourceExt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch as signal;
use tokio::task::JoinSet;

use crate::api::{BucketClaim, ClaimRef, S3Backend, wire};
use crate::cache::{SecretCache, claim_of};

use super::Shared;

/// A claim, or why it can't be decoded: one such object must not stop the watch of all.
pub(super) type Claim = DeserializeGuard<BucketClaim>;
/// A backend, or why it can't be decoded.
pub(super) type Backend = DeserializeGuard<S3Backend>;

/// A main stream with the store that it fills.
pub(super) type Main<K> = (BoxStream<'static, watcher::Result<K>>, Store<K>);

/// The streams that start passes by themselves.
pub(super) struct MainStreams {
    pub(super) claims: Main<Claim>,
    pub(super) backends: Main<Backend>,
}

/// Objects to look at because something that they depend on changed.
pub(super) struct Wakes {
    pub(super) claims: UnboundedReceiver<ObjectRef<Claim>>,
    pub(super) backends: UnboundedReceiver<ObjectRef<Backend>>,
}

/// The running watches; they end when this is dropped.
pub(super) struct Feeds {
    _tasks: JoinSet<()>,
    ready: Vec<signal::Receiver<bool>>,
}

impl Feeds {
    /// Waits until every cache has been filled once.
    pub(super) async fn ready(&self) {
        for ready in &self.ready {
            // An error means that the task is gone, and this future with it.
            let _ = ready.clone().wait_for(|ready| *ready).await;
        }
    }
}

/// Starts every watch.
pub(super) fn start(shared: &Arc<Shared>) -> (Feeds, Wakes, MainStreams) {
    let (wake_claims, claims) = unbounded_channel();
    let (wake_backends, backends) = unbounded_channel();
    let (claim_store, claim_writer) = reflector::store();
    let mut feeds = Feeds { _tasks: JoinSet::new(), ready: Vec::new() };
    let waker = Waker { shared: shared.clone(), claims: wake_claims, store: claim_store.clone() };
    start_secret_feeds(shared, &mut feeds, &waker);
    start_namespace_feed(shared, &mut feeds, &waker);
    let main = MainStreams {
        claims: (claim_stream(shared, claim_writer, wake_backends), claim_store),
        backends: backend_stream(shared, &mut feeds, waker),
    };
    (feeds, Wakes { claims, backends }, main)
}

/// Finds the claims that depend on something, and wakes them.
#[derive(Clone)]
struct Waker {
    shared: Arc<Shared>,
    claims: UnboundedSender<ObjectRef<Claim>>,
    store: Store<Claim>,
}

impl Waker {
    fn wake(&self, claim: &ClaimRef) {
        // Fails only when the controller has ended.
        let _ = self.claims.send(ObjectRef::new(&claim.name).within(&claim.namespace));
    }

    /// Wakes every claim that `concerned` says yes to, in order.
    fn wake_all(&self, concerned: impl Fn(&BucketClaim) -> bool) {
        let mut claims: Vec<ClaimRef> = self
            .store
            .state()
            .iter()
            .filter_map(|claim| claim.0.as_ref().ok().filter(|claim| concerned(claim)).map(claim_ref))
            .collect();
        claims.sort();
        claims.iter().for_each(|claim| self.wake(claim));
    }
}

fn claim_ref(claim: &BucketClaim) -> ClaimRef {
    ClaimRef { namespace: claim.namespace().unwrap_or_default(), name: claim.name_any() }
}

/// Internal Secrets of the operator namespace, consumer Secrets of all: both by label, so that no other Secret of
/// the cluster costs anything.
fn start_secret_feeds(shared: &Arc<Shared>, feeds: &mut Feeds, waker: &Waker) {
    let internal: Api<Secret> = Api::namespaced(shared.client.clone(), &shared.config.operator_namespace);
    let consumers: Api<Secret> = Api::all(shared.client.clone());
    let consumer_role = format!("{}={}", wire::ROLE, wire::Role::ConsumerSecret.as_str());
    let caches = [
        (internal, wire::ROLE.to_owned(), shared.observer.internal.clone()),
        (consumers, consumer_role, shared.observer.consumers.clone()),
    ];
    for (api, labels, cache) in caches {
        let waker = waker.clone();
        let stream = watch(api, watcher::Config::default().labels(&labels));
        feed(feeds, stream, move |event| secrets_changed(&waker, &cache, event));
    }
}

fn secrets_changed(waker: &Waker, cache: &SecretCache, event: Event<Secret>) {
    // Whoever waits for the name of a record that is gone tries again. A record that we deleted ourselves is no news
    // to the cache, but it is to them; and what was deleted while the watch was down shows in no event.
    let let_go = match &event {
        Event::Delete(secret) => waker.shared.claims_waiting_for(&secret.name_any()),
        Event::InitDone => waker.shared.all_waiting_claims(),
        Event::Init | Event::InitApply(_) | Event::Apply(_) => BTreeSet::new(),
    };
    for secret in cache.apply(event) {
        if let Some(claim) = claim_of(&secret) {
            waker.wake(&claim);
        }
        // A record that changed hands.
        for claim in waker.shared.claims_waiting_for(&secret.name_any()) {
            waker.wake(&claim);
        }
    }
    let_go.iter().for_each(|claim| waker.wake(claim));
}

fn start_namespace_feed(shared: &Arc<Shared>, feeds: &mut Feeds, waker: &Waker) {
    let api: Api<PartialObjectMeta<Namespace>> = Api::all(shared.client.clone());
    let (waker, cache) = (waker.clone(), shared.observer.namespaces.clone());
    let stream = watch(api, watcher::Config::default());
    feed(feeds, stream, move |event| {
        for namespace in cache.apply(event) {
            waker.wake_all(|claim| claim.metadata.namespace.as_deref() == Some(namespace.as_str()));
        }
    });
}

/// Runs a watch that only fills a cache and wakes others.
fn feed<K: Send + 'static>(
    feeds: &mut Feeds,
    stream: impl Stream<Item = watcher::Result<Event<K>>> + Send + 'static,
    mut take: impl FnMut(Event<K>) + Send + 'static,
) {
    let (sender, receiver) = signal::channel(false);
    feeds.ready.push(receiver);
    feeds._tasks.spawn(async move {
        let mut stream = stream.default_backoff().boxed();
        while let Some(event) = stream.next().await {
            match event {
                Ok(event) => {
                    let done = matches!(event, Event::InitDone);
                    take(event);
                    if done {
                        sender.send_replace(true);
                    }
                }
                Err(error) => tracing::warn!(%error, "watch failed, trying again"),
            }
        }
    });
}

/// Claims: fills the store, wakes backends whose count changes, and passes on what isn't the echo of our own write.
fn claim_stream(
    shared: &Arc<Shared>,
    writer: reflector::store::Writer<Claim>,
    backends: UnboundedSender<ObjectRef<Backend>>,
) -> BoxStream<'static, watcher::Result<Claim>> {
    let shared = shared.clone();
    let api: Api<Claim> = Api::all(shared.client.clone());
    let stream = watch(api, watcher::Config::default()).default_backoff().modify(drop_managed_fields).reflect(writer);
    let stream = stream.inspect_ok({
        let shared = shared.clone();
        move |event| claim_seen(&shared, &backends, event)
    });
    let fresh =
        move |claim: &Claim| future::ready(claim.0.as_ref().map_or(true, |claim| !shared.written.is_echo(claim)));
    stream.applied_objects().try_filter(fresh).boxed()
}

fn claim_seen(shared: &Shared, backends: &UnboundedSender<ObjectRef<Backend>>, event: &Event<Claim>) {
    let (Event::Apply(Claim { 0: Ok(claim) }) | Event::Delete(Claim { 0: Ok(claim) })) = event else { return };
    if let Some(backend) = claim.status.as_ref().and_then(|status| status.backend.as_ref()) {
        // Fails only when the controller has ended.
        let _ = backends.send(ObjectRef::new(&backend.name));
    }
    if matches!(event, Event::Delete(_)) {
        shared.written.forget(claim);
    }
}

/// Backends: fills store and cache, wakes the claims on a backend that changed in what they depend on.
fn backend_stream(shared: &Arc<Shared>, feeds: &mut Feeds, waker: Waker) -> Main<Backend> {
    let (store, writer) = reflector::store();
    let (sender, receiver) = unbounded_channel();
    let api: Api<Backend> = Api::all(shared.client.clone());
    let (cache, written) = (shared.observer.backends.clone(), shared.clone());
    let stream = watch(api, watcher::Config::default()).modify(drop_managed_fields).reflect(writer);
    feed(feeds, stream, move |event| {
        for name in cache.apply(&event) {
            waker.wake_all(|claim| depends_on(claim, &name));
        }
        if let Event::Apply(backend) | Event::InitApply(backend) = event
            && !backend.0.as_ref().is_ok_and(|backend| written.written_backends.is_echo(backend))
        {
            // Fails only when the controller has ended.
            let _ = sender.send(Ok(backend));
        }
    });
    (receiver_stream(receiver).boxed(), store)
}

fn depends_on(claim: &BucketClaim, backend: &str) -> bool {
    let pinned = claim.status.as_ref().and_then(|status| status.backend.as_ref());
    claim.spec.backend_ref.name == backend || pinned.is_some_and(|pinned| pinned.name == backend)
}

fn drop_managed_fields<K: ResourceExt>(object: &mut K) {
    object.managed_fields_mut().clear();
}

/// A channel as a stream; ends when every sender is gone.
pub(super) fn receiver_stream<T: Send + 'static>(receiver: UnboundedReceiver<T>) -> impl Stream<Item = T> + Send {
    stream::unfold(receiver, |mut receiver| async move { Some((receiver.recv().await?, receiver)) })
}
