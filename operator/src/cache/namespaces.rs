//! Cache of namespaces: labels and UIDs, for allow-lists by selector and for consent to accesses.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Event;
use parking_lot::Mutex;

use crate::api::NamespaceUid;
use crate::plan::{Asker, Part};

/// Labels and UID of every namespace.
#[derive(Default)]
pub(crate) struct NamespaceCache(Mutex<Namespaces>);

type Labels = BTreeMap<String, String>;

#[derive(Default)]
struct Namespaces {
    known: BTreeMap<String, (NamespaceUid, Labels)>,
    names: BTreeMap<NamespaceUid, String>,
    /// Names seen by each running list.
    listings: BTreeMap<Part, BTreeSet<String>>,
}

impl NamespaceCache {
    /// Applies an event of the watch of a part: all namespaces, or one by its name. Returns the
    /// names of namespaces whose labels changed, or that were created again.
    pub(crate) fn apply(&self, part: &Part, event: Event<PartialObjectMeta<Namespace>>) -> Vec<String> {
        let mut namespaces = self.0.lock();
        match event {
            Event::Init => {
                namespaces.listings.insert(part.clone(), BTreeSet::new());
                Vec::new()
            }
            Event::InitApply(namespace) | Event::Apply(namespace) => namespaces.put(part, &namespace),
            Event::Delete(namespace) => {
                namespaces.take(&namespace.name_any());
                Vec::new()
            }
            Event::InitDone => {
                let listed = namespaces.listings.remove(part).unwrap_or_default();
                let is_gone = |name: &&String| part.covers(name) && !listed.contains(*name);
                let gone: Vec<String> = namespaces.known.keys().filter(is_gone).cloned().collect();
                gone.iter().for_each(|name| namespaces.take(name));
                Vec::new()
            }
        }
    }

    /// Returns the labels of a namespace; `None` until the watch has shown the namespace.
    pub(crate) fn labels(&self, namespace: &str) -> Option<Labels> {
        self.0.lock().known.get(namespace).map(|(_, labels)| labels.clone())
    }

    /// Returns the namespace of this name, if it is cached.
    pub(crate) fn get(&self, namespace: &str) -> Option<Asker> {
        let namespaces = self.0.lock();
        namespaces.known.get(namespace).map(|(uid, labels)| asker(namespace, uid, labels))
    }

    /// Returns the namespace of this UID, if it is cached.
    pub(crate) fn of_uid(&self, uid: &NamespaceUid) -> Option<Asker> {
        let namespaces = self.0.lock();
        let name = namespaces.names.get(uid)?;
        namespaces.known.get(name).map(|(uid, labels)| asker(name, uid, labels))
    }
}

fn asker(namespace: &str, uid: &NamespaceUid, labels: &Labels) -> Asker {
    Asker { namespace: namespace.to_owned(), uid: uid.clone(), labels: labels.clone() }
}

impl Namespaces {
    fn put(&mut self, part: &Part, namespace: &PartialObjectMeta<Namespace>) -> Vec<String> {
        let name = namespace.name_any();
        if let Some(listing) = self.listings.get_mut(part) {
            listing.insert(name.clone());
        }
        let now = (NamespaceUid::new(namespace.uid().unwrap_or_default()), namespace.labels().clone());
        if self.known.get(&name) == Some(&now) {
            return Vec::new();
        }
        self.take(&name);
        self.names.insert(now.0.clone(), name.clone());
        self.known.insert(name.clone(), now);
        vec![name]
    }

    fn take(&mut self, name: &str) {
        if let Some((uid, _)) = self.known.remove(name) {
            self.names.remove(&uid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespace(name: &str, uid: &str) -> PartialObjectMeta<Namespace> {
        let mut namespace: PartialObjectMeta<Namespace> = PartialObjectMeta::default();
        namespace.metadata.name = Some(name.to_owned());
        namespace.metadata.uid = Some(uid.to_owned());
        namespace
    }

    // covers: 3.9.lists
    #[test]
    fn each_namespace_is_followed_by_a_watch_of_its_own() {
        let cache = NamespaceCache::default();
        let [a, b] = ["a", "b"].map(|name| Part::Namespace(name.to_owned()));
        for (part, name) in [(&a, "a"), (&b, "b")] {
            cache.apply(part, Event::Init);
            assert_eq!(cache.apply(part, Event::InitApply(namespace(name, name))), [name]);
        }
        cache.apply(&a, Event::InitDone);
        cache.apply(&b, Event::InitDone);
        assert!(cache.get("a").is_some() && cache.get("b").is_some());
        cache.apply(&a, Event::Init);
        cache.apply(&a, Event::InitDone);
        assert!(cache.get("a").is_none(), "it went while nobody watched");
        assert!(cache.of_uid(&NamespaceUid::new("b")).is_some());
    }
}
