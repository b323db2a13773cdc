//! The watches: they run for ever, and tell the tables.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::future::{self, Future};

use daemon::backoff::WatchBackoff;
use futures::StreamExt;
use futures::stream::{self, AbortHandle, BoxStream, SelectAll};
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use stowage_api::wire::{self, Role};
use tokio::time::Instant;

use super::Registry;
use super::backend::{Failure, SecretName};
use super::freshness::{Sign, Watch};
use super::life::listening;
use super::stores::SeenBackend;

/// Where the watches look.
#[derive(Clone)]
pub struct Source {
    /// A client of the API server.
    pub client: Client,
    /// The operator namespace.
    pub namespace: String,
    /// How each watch is made; labels and fields are added to it. An API server without bookmarks
    /// needs one that asks for none.
    pub watch: watcher::Config,
}

type Told<K> = watcher::Result<Event<K>>;

/// What one of the watches tells.
enum News {
    Secrets(Told<Secret>),
    Backends(Box<Told<SeenBackend>>),
    StoreSecret(SecretName, Told<Secret>),
}

/// The watches that run.
struct Watches {
    registry: Registry,
    source: Source,
    running: SelectAll<BoxStream<'static, News>>,
    of_secrets: BTreeMap<SecretName, AbortHandle>,
}

impl Registry {
    /// Follows the API server until it is dropped. A watch that fails is tried again, ever more
    /// seldom, and what was known stays known meanwhile: [`Registry::age`] says how old it is.
    pub fn follow(&self, source: Source) -> impl Future<Output = Infallible> + Send + use<> {
        let registry = self.clone();
        async move {
            let mut watches = Watches::of(registry, source);
            loop {
                match watches.running.next().await {
                    Some(news) => watches.take(news),
                    // Two of them never end.
                    None => future::pending().await,
                }
            }
        }
    }

    fn note(&self, watch: &Watch, sign: Sign) {
        self.0.freshness.lock().note(watch, sign, Instant::now());
    }
}

/// The label selector of the internal Secrets. Those of tenants in the operator namespace are none.
fn roles() -> String {
    let internal = [
        Role::BucketRecord,
        Role::VirtualCredential,
        Role::AnonymousBinding,
        Role::AccessRecord,
        Role::AccessCredential,
    ];
    format!("{} in ({})", wire::ROLE, internal.map(Role::as_str).join(","))
}

impl Watches {
    fn of(registry: Registry, source: Source) -> Self {
        let mut watches = Self { registry, source, running: SelectAll::new(), of_secrets: BTreeMap::new() };
        let client = watches.client(Watch::Secrets);
        let secrets: Api<Secret> = Api::namespaced(client, &watches.source.namespace);
        let config = watches.source.watch.clone().labels(&roles());
        let secrets = watcher(secrets, config).backoff(WatchBackoff::new(Instant::now));
        let backends: Api<SeenBackend> = Api::all(watches.client(Watch::Backends));
        let backends = watcher(backends, watches.source.watch.clone()).backoff(WatchBackoff::new(Instant::now));
        watches.running.push(secrets.map(News::Secrets).boxed());
        watches.running.push(backends.map(|told| News::Backends(Box::new(told))).boxed());
        watches
    }

    /// A client whose signs of life are those of a watch.
    fn client(&self, watch: Watch) -> Client {
        let registry = self.registry.clone();
        listening(&self.source.client, move || registry.note(&watch, Sign::Heard))
    }

    fn take(&mut self, news: News) {
        match news {
            News::Secrets(told) => {
                if let Some(event) = self.heard(&Watch::Secrets, told) {
                    self.registry.apply(event);
                }
            }
            News::Backends(told) => {
                if let Some(event) = self.heard(&Watch::Backends, *told) {
                    self.registry.apply_backend(event);
                    self.follow_secrets();
                }
            }
            News::StoreSecret(name, told) => {
                let failure = told.as_ref().err().map(failure);
                if let Some(event) = self.heard(&Watch::StoreSecret(name.clone()), told) {
                    self.registry.apply_store_secret(&name, event);
                } else if let Some(why) = failure {
                    self.registry.tell(|tables| tables.store_secret_failed(&name, why));
                }
            }
        }
    }

    /// Notes that a watch has told something, or how it fails.
    fn heard<K>(&self, watch: &Watch, told: Told<K>) -> Option<Event<K>> {
        match told {
            Ok(event) => {
                let sign = match event {
                    Event::Init => Sign::Listing,
                    Event::InitDone => Sign::Listed,
                    Event::InitApply(_) | Event::Apply(_) | Event::Delete(_) => Sign::Heard,
                };
                self.registry.note(watch, sign);
                Some(event)
            }
            Err(error) => {
                let reason = failure(&error);
                tracing::warn!(?watch, %reason, "a watch failed, going on with what is known");
                None
            }
        }
    }

    /// Watches just those Secrets that backends name.
    fn follow_secrets(&mut self) {
        let wanted: BTreeSet<SecretName> = self.registry.ask(super::Tables::wanted);
        let Self { of_secrets, registry, .. } = self;
        of_secrets.retain(|name, handle| {
            let stays = wanted.contains(name);
            if !stays {
                handle.abort();
                registry.0.freshness.lock().forget(&Watch::StoreSecret(name.clone()));
            }
            stays
        });
        for name in wanted {
            if !self.of_secrets.contains_key(&name) {
                let handle = self.follow_secret(name.clone());
                self.of_secrets.insert(name, handle);
            }
        }
    }

    fn follow_secret(&mut self, name: SecretName) -> AbortHandle {
        let client = self.client(Watch::StoreSecret(name.clone()));
        let api: Api<Secret> = Api::namespaced(client, &name.namespace);
        let config = self.source.watch.clone().fields(&format!("metadata.name={}", name.name));
        let told = watcher(api, config).backoff(WatchBackoff::new(Instant::now));
        let (news, handle) = stream::abortable(told.map(move |told| News::StoreSecret(name.clone(), told)));
        self.running.push(news.boxed());
        handle
    }
}

/// Why a watch fails, in words of ours: what an error says itself may have been sent by anybody.
fn failure(error: &watcher::Error) -> Failure {
    match error {
        watcher::Error::WatchError(status) => Failure::Refused(status.code),
        watcher::Error::NoResourceVersion => Failure::Unreadable,
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => match error {
            kube::Error::Api(status) => Failure::Refused(status.code),
            kube::Error::SerdeError(_) => Failure::Unreadable,
            _ => Failure::Silence,
        },
    }
}
