//! The watches: they run forever and feed the tables.

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

/// The source of the watches.
#[derive(Clone)]
pub struct Source {
    /// A client of the API server.
    pub client: Client,
    /// The operator namespace.
    pub namespace: String,
    /// The configuration of each watch, to which label and field selectors are added. For an API
    /// server without bookmarks, disable them here.
    pub watch: watcher::Config,
}

type Told<K> = watcher::Result<Event<K>>;

/// An item from one of the watches.
enum News {
    Secrets(Told<Secret>),
    Backends(Box<Told<SeenBackend>>),
    StoreSecret(SecretName, Told<Secret>),
}

/// The running watches.
struct Watches {
    registry: Registry,
    source: Source,
    running: SelectAll<BoxStream<'static, News>>,
    of_secrets: BTreeMap<SecretName, AbortHandle>,
}

impl Registry {
    /// Follows the API server until the future is dropped. A watch that fails is retried with
    /// backoff. Meanwhile the last known state is kept, and [`Registry::age`] returns its age.
    pub fn follow(&self, source: Source) -> impl Future<Output = Infallible> + Send + use<> {
        let registry = self.clone();
        async move {
            let mut watches = Watches::of(registry, source);
            loop {
                match watches.running.next().await {
                    Some(news) => watches.take(news),
                    // Unreachable: two of the watches never end.
                    None => future::pending().await,
                }
            }
        }
    }

    fn note(&self, watch: &Watch, sign: Sign) {
        self.0.freshness.lock().note(watch, sign, Instant::now());
    }
}

/// Returns the label selector of the internal Secrets. Secrets of tenants in the operator namespace
/// don't match.
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

    /// Returns a client whose responses count as signs of life of a watch.
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

    /// Records that a watch has delivered something, or logs its failure.
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

    /// Watches exactly the Secrets that backends reference.
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

/// Returns the reason why a watch fails, in the gateway's own words: an error's text may be under a
/// stranger's control.
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
