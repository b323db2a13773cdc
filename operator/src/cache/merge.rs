//! Merges the watches of several namespaces into one stream, like that of a cluster-wide watch
//! (spec §3.9).
//!
//! A reader of such a stream takes the end of a list for the end of all objects. So the first lists
//! are held back until each watch has completed its own. A later list is converted into the changes
//! that it shows.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use kube::runtime::reflector::Store;
use kube::runtime::watcher::Event;
use kube::{Resource, ResourceExt};

use crate::plan::Part;

/// State of several watches of one kind, as far as it was not passed on yet.
pub(crate) struct Merge<K> {
    parts: BTreeMap<Part, Shown<K>>,
    /// True once the merged list was passed on.
    is_begun: bool,
}

/// State of one watch, by name.
struct Shown<K> {
    /// All objects, until the merged list is passed on.
    all: BTreeMap<String, K>,
    /// Objects of the running list.
    listing: Option<BTreeMap<String, K>>,
    /// True once a list was complete.
    is_listed: bool,
}

impl<K> Merge<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Send + Sync + 'static,
{
    /// Creates the state of the watches of these parts.
    pub(crate) fn of(parts: impl IntoIterator<Item = Part>) -> Self {
        let shown = || Shown { all: BTreeMap::new(), listing: None, is_listed: false };
        Self { parts: parts.into_iter().map(|part| (part, shown())).collect(), is_begun: false }
    }

    /// Applies an event of one part's watch. Returns the events of the merged stream. `told` is the
    /// store filled from the earlier ones.
    pub(crate) fn take(&mut self, part: &Part, event: Event<K>, told: &Store<K>) -> Vec<Event<K>> {
        let Some(shown) = self.parts.get_mut(part) else { return Vec::new() };
        match event {
            Event::Init => shown.listing = Some(BTreeMap::new()),
            Event::InitApply(object) => {
                shown.listing.get_or_insert_default().insert(object.name_any(), object);
            }
            Event::InitDone => {
                let listed = shown.listing.take().unwrap_or_default();
                if self.is_begun {
                    return changes(part, listed, told);
                }
                shown.all = listed;
                shown.is_listed = true;
                return self.begin();
            }
            event @ (Event::Apply(_) | Event::Delete(_)) if self.is_begun => return vec![event],
            Event::Apply(object) => {
                shown.all.insert(object.name_any(), object);
            }
            Event::Delete(object) => {
                shown.all.remove(&object.name_any());
            }
        }
        Vec::new()
    }

    /// Returns the merged list once each watch has completed its own.
    fn begin(&mut self) -> Vec<Event<K>> {
        if !self.parts.values().all(|shown| shown.is_listed) {
            return Vec::new();
        }
        self.is_begun = true;
        let all = self.parts.values_mut().flat_map(|shown| std::mem::take(&mut shown.all).into_values());
        [Event::Init].into_iter().chain(all.map(Event::InitApply)).chain([Event::InitDone]).collect()
    }
}

/// Converts a later list of a part into changes.
///
/// Deletions come first, because another object of the same name may have been created. An
/// unchanged object is skipped.
fn changes<K>(part: &Part, listed: BTreeMap<String, K>, told: &Store<K>) -> Vec<Event<K>>
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    // Sorted, because a store's own order differs in every run.
    let known = told.state().into_iter().filter(|it| part.covers(&it.namespace().unwrap_or_default()));
    let known: BTreeMap<String, Arc<K>> = known.map(|it| (it.name_any(), it)).collect();
    let gone = known.iter().filter(|(name, it)| listed.get(*name).is_none_or(|now| now.uid() != it.uid()));
    let gone: Vec<Event<K>> = gone.map(|(_, it)| Event::Delete(it.as_ref().clone())).collect();
    let is_as_before = |it: &K| {
        let before = known.get(&it.name_any());
        before.is_some_and(|before| before.uid() == it.uid() && before.resource_version() == it.resource_version())
    };
    let changed = listed.into_values().filter(|it| !is_as_before(it)).map(Event::Apply);
    gone.into_iter().chain(changed).collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::runtime::reflector;
    use kube::runtime::reflector::store::Writer;

    use super::*;

    fn part(namespace: &str) -> Part {
        Part::Namespace(namespace.to_owned())
    }

    fn object(namespace: &str, name: &str, uid: &str) -> ConfigMap {
        let mut object = ConfigMap::default();
        object.metadata.namespace = Some(namespace.to_owned());
        object.metadata.name = Some(name.to_owned());
        object.metadata.uid = Some(uid.to_owned());
        object
    }

    /// A reader of the merged stream: a store, and a line for each event.
    struct Reader {
        merge: Merge<ConfigMap>,
        store: Store<ConfigMap>,
        writer: Writer<ConfigMap>,
    }

    impl Reader {
        fn new() -> Self {
            let (store, writer) = reflector::store();
            Self { merge: Merge::of([part("a"), part("b")]), store, writer }
        }

        fn take(&mut self, namespace: &str, event: Event<ConfigMap>) -> Vec<String> {
            let told = self.merge.take(&part(namespace), event, &self.store);
            let place = |it: &ConfigMap| {
                let uid = it.uid().unwrap_or_default();
                format!("{}/{} {uid}", it.namespace().unwrap_or_default(), it.name_any())
            };
            let told = told.into_iter().map(|event| {
                self.writer.apply_watcher_event(&event);
                match event {
                    Event::Init => "begin".to_owned(),
                    Event::InitApply(it) => format!("list {}", place(&it)),
                    Event::InitDone => "end".to_owned(),
                    Event::Apply(it) => format!("put {}", place(&it)),
                    Event::Delete(it) => format!("take {}", place(&it)),
                }
            });
            told.collect()
        }

        fn list(&mut self, namespace: &str, objects: &[(&str, &str)]) -> Vec<String> {
            assert_eq!(self.take(namespace, Event::Init), [] as [&str; 0]);
            for (name, uid) in objects {
                let shown = self.take(namespace, Event::InitApply(object(namespace, name, uid)));
                assert_eq!(shown, [] as [&str; 0], "a list may be cut short");
            }
            self.take(namespace, Event::InitDone)
        }

        fn places(&self) -> Vec<String> {
            let all = self.store.state().into_iter();
            let mut places: Vec<String> =
                all.map(|it| format!("{}/{}", it.namespace().unwrap_or_default(), it.name_any())).collect();
            places.sort_unstable();
            places
        }
    }

    // covers: 3.9.lists
    #[test]
    fn nothing_is_told_before_each_watch_has_shown_all_of_its_own() {
        let mut reader = Reader::new();
        assert_eq!(reader.list("a", &[("one", "1"), ("two", "2")]), [] as [&str; 0]);
        assert_eq!(reader.take("a", Event::Delete(object("a", "two", "2"))), [] as [&str; 0]);
        assert_eq!(reader.take("a", Event::Apply(object("a", "new", "3"))), [] as [&str; 0]);
        // The list of the other namespace breaks off and begins again.
        reader.take("b", Event::Init);
        reader.take("b", Event::InitApply(object("b", "gone", "4")));
        let told = reader.list("b", &[("one", "5")]);
        assert_eq!(told, ["begin", "list a/new 3", "list a/one 1", "list b/one 5", "end"]);
        assert_eq!(reader.places(), ["a/new", "a/one", "b/one"]);
    }

    // covers: 3.9.lists
    #[test]
    fn the_list_of_one_watch_leaves_what_the_others_have_shown() {
        let mut reader = Reader::new();
        reader.list("a", &[("one", "1"), ("two", "2"), ("three", "3")]);
        reader.list("b", &[("one", "5")]);
        let told = reader.list("a", &[("one", "1"), ("two", "made again")]);
        assert_eq!(told, ["take a/three 3", "take a/two 2", "put a/two made again"], "one is as it was");
        assert_eq!(reader.places(), ["a/one", "a/two", "b/one"]);
        assert_eq!(reader.list("b", &[]), ["take b/one 5"]);
        assert_eq!(reader.places(), ["a/one", "a/two"]);
    }

    // covers: 3.9.lists
    #[test]
    fn single_changes_are_told_as_they_come() {
        let mut reader = Reader::new();
        reader.list("a", &[]);
        assert_eq!(reader.list("b", &[]), ["begin", "end"]);
        assert_eq!(reader.take("b", Event::Apply(object("b", "one", "1"))), ["put b/one 1"]);
        assert_eq!(reader.take("b", Event::Delete(object("b", "one", "1"))), ["take b/one 1"]);
        assert_eq!(reader.take("c", Event::Apply(object("c", "one", "1"))), [] as [&str; 0], "nobody watches there");
        assert!(reader.places().is_empty());
    }
}
