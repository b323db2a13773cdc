//! The watch of BucketAccesses (spec §8).

use std::sync::Arc;

use futures::StreamExt;
use kube::ResourceExt;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::watcher::Event;
use tokio::sync::watch;

use super::feeds::{Feeds, is_unknown_kind};
use super::objects::{Access, access_ref, keep};
use super::shared::Shared;
use super::shown::Shown;
use crate::api::kept;

/// Starts the watch of BucketAccesses, which fills the store and the cache.
///
/// A change wakes the claims that the access names and the ObjectBucketClaim that it serves. It
/// wakes the access itself unless the event is the echo of our own write. If the CRD is not
/// installed yet, the list is retried from time to time and the feed counts as ready, so nothing
/// waits for it. Returns `None` if accesses are not served.
pub(super) fn start(shared: &Arc<Shared>, feeds: &mut Feeds) -> Option<Store<Access>> {
    if !shared.config.accesses {
        return None;
    }
    let (store, writer) = reflector::store();
    let kept = |access: &mut Access| keep(access, kept::access);
    let stream = feeds.reached(shared, kept, &store).reflect(writer);
    let mut seen = Seen { shared: shared.clone(), store: store.clone(), shown: Shown::default(), before: Vec::new() };
    let (sender, receiver) = watch::channel(false);
    feeds.ready.push(receiver);
    feeds.spawn(async move {
        let mut stream = stream.boxed();
        while let Some(event) = stream.next().await {
            match event {
                Ok(event) => seen.take(&event),
                Err(error) if is_unknown_kind(&error) => {
                    tracing::debug!(%error, "no BucketAccess is to be seen yet");
                    sender.send_replace(true);
                    continue;
                }
                Err(error) => {
                    tracing::warn!(%error, "watch failed, trying again");
                    continue;
                }
            }
            if seen.shared.observer.accesses.is_filled() {
                sender.send_replace(true);
            }
        }
    });
    Some(store)
}

/// State of the watch.
struct Seen {
    shared: Arc<Shared>,
    store: Store<Access>,
    shown: Shown<Access>,
    /// Accesses in the store before the current relist.
    before: Vec<Arc<Access>>,
}

impl Seen {
    fn take(&mut self, event: &Event<Access>) {
        let shared = &self.shared;
        for claim in shared.observer.accesses.apply(event) {
            shared.wakes.claim(&claim);
        }
        match event {
            Event::Init => self.before = self.store.state(),
            Event::Delete(access) => shared.forget_access(access),
            Event::InitDone => {
                // Objects deleted while the watch was down are missing from the list.
                shared.orphans.suspect_everything();
                for access in std::mem::take(&mut self.before) {
                    let now = self.store.get(&ObjectRef::from_obj(access.as_ref()));
                    if now.is_none_or(|now| now.uid() != access.uid()) {
                        shared.forget_access(&access);
                    }
                }
            }
            Event::InitApply(_) | Event::Apply(_) => {}
        }
        for access in self.shown.take(event, &self.store) {
            if !access.0.as_ref().is_ok_and(|access| shared.actor.written_accesses.is_echo(access)) {
                shared.wakes.access(&access_ref(access.as_ref()));
            }
            shared.wake_obc_of(access.as_ref());
        }
    }
}
