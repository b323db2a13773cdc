//! The watches: each fills a cache and wakes the objects that depend on a change.

use std::convert::Infallible;
use std::sync::Arc;

use daemon::backoff::WatchBackoff;
use futures::future;
use futures::stream::{Stream, StreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::core::{DeserializeGuard, PartialObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::{Api, ResourceExt};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::api::{RecordName, kept, wire};
use crate::cache::SecretCache;
use crate::plan::{Part, Stored};

use super::objects::{Backend, Claim, claim_ref, keep};
use super::reached::{self, Presence, Reached};
use super::shared::Shared;
use super::shown::Shown;

/// Page size of lists of objects that tenants write, each of which may have more than a megabyte.
///
/// The rest of a page that is too large is not read (see `kubernetes`), but the server has built
/// all of it.
pub(super) const PAGE: u32 = 25;

/// The running watches; they end when this is dropped.
pub(super) struct Feeds {
    tasks: JoinSet<()>,
    pub(super) ready: Vec<watch::Receiver<bool>>,
    presence: Presence,
}

impl Feeds {
    /// Waits until every cache has been filled once.
    pub(super) async fn ready(&self) {
        for ready in &self.ready {
            // An error means that the task has ended, see `failed`.
            let _ = ready.clone().wait_for(|ready| *ready).await;
        }
    }

    /// Waits for a watch to panic, and resumes the panic.
    ///
    /// Without that, changes of its objects would be missed silently.
    pub(super) async fn failed(&mut self) -> Infallible {
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended
                && let Ok(panic) = error.try_into_panic()
            {
                std::panic::resume_unwind(panic);
            }
        }
        future::pending().await
    }

    /// Watches a kind in all served namespaces. `store` is the store that the watch fills.
    pub(super) fn reached<K: Reached>(
        &self,
        shared: &Shared,
        keep: fn(&mut K),
        store: &Store<K>,
    ) -> reached::Events<K> {
        let config = Config::default().page_size(PAGE);
        reached::of_all((&shared.client, &self.presence), &shared.config.reach, &config, keep, store.clone())
    }

    /// Runs a task until this is dropped.
    pub(super) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Runs a watch that only fills a cache and wakes objects. `stream` does the backoff.
    fn run<K: Send + 'static>(
        &mut self,
        stream: impl Stream<Item = watcher::Result<Event<K>>> + Send + 'static,
        mut take: impl FnMut(Event<K>) + Send + 'static,
    ) {
        let (sender, receiver) = watch::channel(false);
        self.ready.push(receiver);
        self.tasks.spawn(async move {
            let mut stream = stream.boxed();
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
}

/// Starts every watch but that of claims, which starts after these caches are filled.
///
/// `recovered` receives the names of backends whose store answers again. Also returns the store of
/// backends.
pub(super) fn start(shared: &Arc<Shared>, recovered: UnboundedReceiver<String>) -> (Feeds, Store<Backend>) {
    let presence = Presence::of(&shared.config.reach);
    let mut feeds = Feeds { tasks: JoinSet::new(), ready: Vec::new(), presence };
    feed_secrets(shared, &mut feeds);
    feed_namespaces(shared, &mut feeds);
    feed_usage(shared, &mut feeds);
    feed_recoveries(shared, &mut feeds, recovered);
    let backends = feed_backends(shared, &mut feeds);
    (feeds, backends)
}

/// Watches the internal Secrets in the operator's namespace and the consumer Secrets in all served
/// namespaces.
///
/// Both are selected by label, so that the cluster's other Secrets cost nothing.
fn feed_secrets(of: &Arc<Shared>, feeds: &mut Feeds) {
    let shared = of.clone();
    let internal: Api<Secret> = Api::namespaced(shared.client.clone(), &shared.config.operator_namespace);
    let stream = watcher(internal, Config::default().labels(wire::ROLE)).backoff(WatchBackoff::new(Instant::now));
    feeds.run(stream, move |event| {
        internal_seen(&shared, &event);
        secrets_changed(&shared, &shared.observer.internal, &Part::All, event);
    });
    let consumer_role = format!("{}={}", wire::ROLE, wire::Role::ConsumerSecret.as_str());
    for part in of.config.reach.parts() {
        let config = Config::default().labels(&consumer_role).page_size(PAGE);
        let stream = reached::of_part((&of.client, &feeds.presence), &part, config, |_: &mut Secret| {});
        let shared = of.clone();
        feeds.run(stream, move |event| secrets_changed(&shared, &shared.observer.consumers, &part, event));
    }
}

/// Reports Secrets that may be orphans.
///
/// This includes the echo of our own write, because the claim may have been deleted during it.
fn internal_seen(shared: &Shared, event: &Event<Secret>) {
    match event {
        Event::Apply(secret) => shared.orphans.seen(&Stored(Arc::new(secret.clone()))),
        Event::InitDone => shared.orphans.suspect_everything(),
        Event::Init | Event::InitApply(_) | Event::Delete(_) => {}
    }
}

fn secrets_changed(shared: &Shared, cache: &SecretCache, part: &Part, event: Event<Secret>) {
    for secret in cache.apply_part(part, event) {
        if let Some(claim) = Stored(secret.clone()).claim()
            && is_at(shared, &secret, &claim.namespace)
            && !shared.memory.is_patch_unanswered(&claim)
        {
            shared.wakes.claim(&claim);
            shared.wake_accesses_of(&claim);
        }
        if let Some(access) = Stored(secret.clone()).access()
            && is_at(shared, &secret, &access.namespace)
            && !shared.memory.is_access_patch_unanswered(&access)
        {
            shared.wakes.access(&access);
        }
        shared.internal_changed(&Stored(secret));
    }
}

/// Returns true if a Secret may belong to a claim or access of this namespace.
///
/// It has to be internal or in that namespace: anybody can write the labels.
fn is_at(shared: &Shared, secret: &Secret, place: &str) -> bool {
    let namespace = secret.metadata.namespace.as_deref();
    namespace == Some(&shared.config.operator_namespace) || namespace == Some(place)
}

/// Watches namespaces: all, or each served one by its name, so that no right on others is needed.
fn feed_namespaces(of: &Arc<Shared>, feeds: &mut Feeds) {
    let api: Api<PartialObjectMeta<Namespace>> = Api::all(of.client.clone());
    let presence = feeds.presence.clone();
    for part in of.config.reach.parts() {
        let config = match &part {
            Part::All => Config::default(),
            Part::Namespace(name) => Config::default().fields(&format!("metadata.name={name}")),
        };
        let (shared, presence) = (of.clone(), presence.clone());
        let stream = watcher(api.clone(), config).backoff(WatchBackoff::new(Instant::now));
        feeds.run(stream, move |event| {
            let is_told = !matches!(event, Event::Init | Event::InitApply(_));
            for namespace in shared.observer.namespaces.apply(&part, event) {
                shared.wakes.claims_in(&namespace);
                shared.wake_accesses_in(&namespace);
            }
            if is_told && let Part::Namespace(name) = &part {
                presence.seen(name, shared.observer.namespaces.get(name).is_some());
            }
        });
    }
}

/// Returns true if the API server doesn't know the kind or denies access to it.
///
/// During an upgrade the operator may start before the new CRDs and the new RBAC rules are applied.
pub(super) fn is_unknown_kind(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => matches!(status.code, 403 | 404),
        _ => false,
    }
}

/// Watches the ConfigMaps with the usage that gateways measure.
///
/// The watch starts once a claim has a quota, and nothing waits for it.
fn feed_usage(shared: &Arc<Shared>, feeds: &mut Feeds) {
    let namespace = shared.config.usage_namespace.as_ref().unwrap_or(&shared.config.operator_namespace);
    let api: Api<ConfigMap> = Api::namespaced(shared.client.clone(), namespace);
    let config = Config::default().labels(&format!("{}={}", wire::USAGE, wire::Usage::Snapshot.as_str()));
    let shared = shared.clone();
    feeds.tasks.spawn(async move {
        shared.observer.usage.are_wanted().await;
        let mut stream = watcher(api, config).backoff(WatchBackoff::new(Instant::now)).boxed();
        while let Some(event) = stream.next().await {
            match event {
                Ok(event) => wake_holders(&shared, &shared.observer.usage.apply(&event)),
                Err(error) => tracing::warn!(%error, "watch failed, trying again"),
            }
        }
    });
}

fn wake_holders(shared: &Shared, records: &[RecordName]) {
    for record in records {
        let secret = shared.observer.internal.get(&shared.config.operator_namespace, record.as_str());
        if let Some(claim) = secret.and_then(|secret| secret.claim()) {
            shared.wakes.claim(&claim);
        }
    }
}

/// Wakes the claims of a store that answers again.
fn feed_recoveries(shared: &Arc<Shared>, feeds: &mut Feeds, mut recovered: UnboundedReceiver<String>) {
    let wakes = shared.wakes.clone();
    feeds.tasks.spawn(async move {
        while let Some(backend) = recovered.recv().await {
            wakes.claims_on(&backend);
        }
    });
}

/// Watches backends: fills the store and the cache.
///
/// A change wakes the claims on the backend, and the backend itself unless the event is the echo of
/// our own write.
fn feed_backends(shared: &Arc<Shared>, feeds: &mut Feeds) -> Store<Backend> {
    let (store, writer) = reflector::store();
    let api: Api<Backend> = Api::all(shared.client.clone());
    let stream = watcher(api, Config::default()).backoff(WatchBackoff::new(Instant::now));
    let stream = stream.modify(|backend| keep(backend, kept::backend)).reflect(writer);
    let (shared, filled, mut shown) = (shared.clone(), store.clone(), Shown::default());
    feeds.run(stream, move |event| {
        for name in shared.observer.backends.apply(&event) {
            if shared.observer.backends.get(&name).is_none() {
                shared.forget_backend(&name);
                // The backend's own controller has state to drop as well.
                shared.wakes.backend(&name);
            }
            shared.wakes.claims_on(&name);
            shared.observer.accesses.on_backend(&name).iter().for_each(|access| shared.wakes.access(access));
        }
        for backend in shown.take(&event, &filled) {
            if !backend.0.as_ref().is_ok_and(|backend| shared.written_backends.is_echo(backend)) {
                shared.wakes.backend(&backend.name_any());
            }
        }
    });
    store
}

/// Watches claims: fills the store.
///
/// A change wakes the backends whose count of claims it changes, and the claim itself unless the
/// event is the echo of our own write.
pub(super) fn feed_claims(shared: &Arc<Shared>, feeds: &mut Feeds, writer: Writer<Claim>, store: Store<Claim>) {
    let kept = |claim: &mut Claim| keep(claim, kept::claim);
    let stream = feeds.reached(shared, kept, &store).reflect(writer);
    let (shared, mut shown, mut before) = (shared.clone(), Shown::default(), Vec::new());
    feeds.run(stream, move |event| {
        match &event {
            Event::Init => before = store.state(),
            Event::InitDone => forget_gone(&shared, std::mem::take(&mut before), &store),
            Event::InitApply(_) | Event::Apply(_) | Event::Delete(_) => {}
        }
        claim_seen(&shared, &event);
        for claim in shown.take(&event, &store) {
            let at = claim_ref(claim.as_ref());
            if !claim.0.as_ref().is_ok_and(|claim| shared.written.is_echo(claim)) {
                shared.wakes.claim(&at);
            }
            shared.wake_accesses_of(&at);
            shared.wake_obc_of(claim.as_ref());
        }
    });
}

/// Forgets claims that were deleted while the watch was down, and so are missing from the new list.
fn forget_gone(shared: &Shared, before: Vec<Arc<Claim>>, store: &Store<Claim>) {
    for claim in before {
        let now = store.get(&ObjectRef::from_obj(claim.as_ref()));
        if now.is_none_or(|now| now.uid() != claim.uid()) {
            shared.forget_claim(&claim);
        }
    }
}

fn claim_seen(shared: &Shared, event: &Event<Claim>) {
    count_again(shared, event);
    if let Event::InitApply(DeserializeGuard(Ok(claim))) | Event::Apply(DeserializeGuard(Ok(claim))) = event
        && claim.spec.quota.is_some()
    {
        shared.observer.usage.want();
    }
    match event {
        Event::Delete(claim) => {
            shared.orphans.claim_gone(&claim.uid().unwrap_or_default());
            shared.wake_accesses_of(&claim_ref(claim));
            shared.forget_claim(claim);
        }
        // Objects deleted while the watch was down are missing from the list.
        Event::InitDone => shared.orphans.suspect_everything(),
        Event::Init | Event::InitApply(_) | Event::Apply(_) => {}
    }
}

/// Wakes the backends whose count of claims may have changed.
fn count_again(shared: &Shared, event: &Event<Claim>) {
    let (Event::InitApply(DeserializeGuard(Ok(claim)))
    | Event::Apply(DeserializeGuard(Ok(claim)))
    | Event::Delete(DeserializeGuard(Ok(claim)))) = event
    else {
        return;
    };
    // A claim that has moved no longer counts on its former backend.
    let left = shared.memory.counted_on(claim);
    if matches!(event, Event::InitApply(_)) {
        return;
    }
    let backend = claim.status.as_ref().and_then(|status| status.backend.as_ref()).map(|backend| &backend.name);
    left.iter().chain(backend).for_each(|backend| shared.wakes.backend(backend));
}
