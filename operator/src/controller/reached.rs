//! Watches of all served namespaces: one cluster-wide watch, or one per namespace (spec §3.9).

use std::collections::BTreeMap;
use std::fmt::Debug;

use daemon::backoff::WatchBackoff;
use futures::FutureExt;
use futures::stream::{self, BoxStream, Stream, StreamExt};
use k8s_openapi::serde::de::DeserializeOwned;
use kube::core::NamespaceResourceScope;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::Store;
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::{Client, Resource};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::cache::Merge;
use crate::kubernetes;
use crate::plan::{Part, Reach};

/// A namespaced kind that can be watched.
pub(super) trait Reached:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug + Send + Sync + 'static
{
}

impl<K> Reached for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Debug
        + Send
        + Sync
        + 'static
{
}

/// The merged events of the watches of a kind.
pub(super) type Events<K> = BoxStream<'static, watcher::Result<Event<K>>>;

/// Existence of each served namespace, as far as known. Clones share their state.
#[derive(Clone)]
pub(super) struct Presence(BTreeMap<String, watch::Sender<Option<bool>>>);

impl Presence {
    /// Creates the state in which nothing is known yet.
    pub(super) fn of(reach: &Reach) -> Self {
        let namespaces = reach.parts().into_iter().filter_map(|part| match part {
            Part::All => None,
            Part::Namespace(name) => Some((name, watch::Sender::new(None))),
        });
        Self(namespaces.collect())
    }

    /// Records whether a namespace exists, and logs a change.
    pub(super) fn seen(&self, name: &str, is_there: bool) {
        let Some(sender) = self.0.get(name) else { return };
        match sender.send_replace(Some(is_there)) {
            None if !is_there => {
                tracing::warn!(namespace = name, "there is no such namespace: it is served once there is");
            }
            Some(true) if !is_there => {
                tracing::warn!(namespace = name, "the namespace is gone: it is served once it is there again");
            }
            Some(false) if is_there => tracing::info!(namespace = name, "the namespace is there now, and served"),
            None | Some(_) => {}
        }
    }

    /// Returns the events of one part's watch.
    ///
    /// A missing namespace counts as an empty list, so nothing waits for it. It is not listed
    /// before it exists, as that request could well be forbidden.
    fn gated<K: Send + 'static>(&self, part: &Part, shown: Events<K>) -> Events<K> {
        let Part::Namespace(name) = part else { return shown };
        let Some(sender) = self.0.get(name) else { return shown };
        let (mut known, mut there) = (sender.subscribe(), sender.subscribe());
        let nothing = async move {
            // An error means that the namespace watch has ended. Nothing is waited for then.
            let is_there = known.wait_for(Option::is_some).await.is_ok_and(|known| *known == Some(true));
            let list = if is_there { Vec::new() } else { vec![Ok(Event::Init), Ok(Event::InitDone)] };
            stream::iter(list)
        };
        let shown = async move {
            let _ = there.wait_for(|known| *known == Some(true)).await;
            shown
        };
        nothing.flatten_stream().chain(shown.flatten_stream()).boxed()
    }
}

/// Watches one part with its own backoff, so that a failing watch delays no other. `keep` trims
/// each object.
pub(super) fn of_part<K: Reached>(
    (client, presence): (&Client, &Presence),
    part: &Part,
    config: Config,
    keep: fn(&mut K),
) -> Events<K> {
    let shown = watcher(kubernetes::within(client, part), config).backoff(WatchBackoff::new(Instant::now)).modify(keep);
    presence.gated(part, shown.boxed())
}

/// Merges the watches of all parts into one stream of events. `told` is the store that it fills.
pub(super) fn of_all<K: Reached>(
    (client, presence): (&Client, &Presence),
    reach: &Reach,
    config: &Config,
    keep: fn(&mut K),
    told: Store<K>,
) -> Events<K> {
    if reach.is_whole() {
        return of_part((client, presence), &Part::All, config.clone(), keep);
    }
    let parts = reach.parts().into_iter().map(|part| {
        let shown = of_part((client, presence), &part, config.clone(), keep);
        shown.map(move |event| event.map(|event| (part.clone(), event))).boxed()
    });
    merged(Merge::of(reach.parts()), stream::select_all(parts), told).boxed()
}

fn merged<K: Reached>(
    mut merge: Merge<K>,
    shown: impl Stream<Item = watcher::Result<(Part, Event<K>)>> + Send + 'static,
    told: Store<K>,
) -> impl Stream<Item = watcher::Result<Event<K>>> + Send + 'static {
    // Each event is applied before the next is polled, so that `told` is up to date then.
    let events = shown.map(move |shown| match shown {
        Ok((part, event)) => stream::iter(merge.take(&part, event, &told).into_iter().map(Ok).collect::<Vec<_>>()),
        Err(error) => stream::iter(vec![Err(error)]),
    });
    events.flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn presence() -> Presence {
        Presence::of(&Reach::Namespaces(BTreeSet::from(["a".to_owned()])))
    }

    fn words(events: Vec<watcher::Result<Event<ConfigMap>>>) -> Vec<&'static str> {
        let word = |event: watcher::Result<Event<ConfigMap>>| match event.expect("no error") {
            Event::Init => "begin",
            Event::InitDone => "end",
            Event::Apply(_) => "put",
            Event::InitApply(_) | Event::Delete(_) => "another",
        };
        events.into_iter().map(word).collect()
    }

    fn shown() -> Events<ConfigMap> {
        stream::iter([Ok(Event::Apply(ConfigMap::default()))]).boxed()
    }

    // covers: 3.9.absent
    #[tokio::test]
    async fn a_namespace_that_is_not_there_has_nothing_in_it_and_is_waited_for() {
        let presence = presence();
        let mut events = presence.gated(&Part::Namespace("a".to_owned()), shown());
        assert!(events.next().now_or_never().is_none(), "it isn't known yet whether it is there");
        presence.seen("a", false);
        let list = [events.next().await, events.next().await].into_iter().flatten().collect();
        assert_eq!(words(list), ["begin", "end"]);
        assert!(events.next().now_or_never().is_none(), "it isn't there");
        presence.seen("a", true);
        assert_eq!(words(events.collect().await), ["put"]);
    }

    // covers: 3.9.absent
    #[tokio::test]
    async fn one_that_is_there_is_as_its_watch_shows_it() {
        let presence = presence();
        presence.seen("a", true);
        let events = presence.gated(&Part::Namespace("a".to_owned()), shown());
        assert_eq!(words(events.collect().await), ["put"]);
        assert_eq!(words(presence.gated(&Part::All, shown()).collect().await), ["put"]);
    }

    // covers: 3.9.lists
    #[tokio::test]
    async fn a_watch_that_shows_nothing_yet_keeps_the_merged_one_waiting() {
        let of = |name: &str| Part::Namespace(name.to_owned());
        let list = |part: Part| [Event::Init, Event::InitDone].map(|event| Ok((part.clone(), event)));
        let (told, _writer) = kube::runtime::reflector::store::<ConfigMap>();
        let one = stream::iter(list(of("a"))).chain(stream::pending());
        let mut events = merged(Merge::of([of("a"), of("b")]), one, told.clone()).boxed();
        assert!(events.next().now_or_never().is_none());
        let both = stream::iter(list(of("a")).into_iter().chain(list(of("b"))));
        assert_eq!(words(merged(Merge::of([of("a"), of("b")]), both, told).collect().await), ["begin", "end"]);
    }
}
